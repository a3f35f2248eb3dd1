"""Scripts, styles and libraries of the portal, read once; their address changes with their content."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from asterism.apis.transports.http import HeaderList, Response

_FOLDER: Final = Path(__file__).parent / "static"
PREFIX: Final = "/static/"
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# A year: the digest in the address makes another address of another content.
_CACHED: Final = "public, max-age=31536000, immutable"
_DIGEST_CHARACTERS: Final = 12
_IMPORT: Final = re.compile(rb'^(?:import|export) [^;]*?"\./([\w/.-]+)";', re.MULTILINE)


class StaticFiles:
    def __init__(self, folder: Path = _FOLDER) -> None:
        names = sorted(path for path in folder.rglob("*") if path.suffix in _TYPES)
        self._files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in names}
        digest = hashlib.sha256()
        for name, content in self._files.items():
            digest.update(name.encode())
            digest.update(content)
        self._digest = digest.hexdigest()[:_DIGEST_CHARACTERS]

    def address(self, name: str) -> str:
        """Return the address of a file for a page; KeyError for a file that does not exist, so that a test notices."""
        self._files[name]
        return f"{PREFIX}{self._digest}/{name}"

    def modules(self, name: str) -> list[str]:
        """Return the addresses of a script and of all that it imports, so that a page can ask for them at once."""
        found, waiting = [name], [name]
        while waiting:
            imported = _IMPORT.findall(self._files[waiting.pop()])
            new = [text for text in map(bytes.decode, imported) if text not in found]
            found += dict.fromkeys(new)
            # Libraries are bundles without imports of their own.
            waiting += [text for text in new if "/" not in text]
        return [self.address(module) for module in found]

    def answer(self, path: str, headers: HeaderList) -> Response | None:
        """Return a file, whatever the digest in its address: a page of the version before still gets its scripts."""
        digest, _, name = path.removeprefix(PREFIX).partition("/")
        content = self._files.get(name)
        if content is None:
            return None
        is_present = digest == self._digest
        kind = _TYPES[Path(name).suffix]
        return Response(
            200, [("content-type", kind), ("cache-control", _CACHED if is_present else "no-store"), *headers], content
        )
