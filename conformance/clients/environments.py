"""The clients of the matrix, each installed by its package's name into a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

INSTALL_SECONDS_MAX = 600.0
SCRIPTS = Path(__file__).parent


class NotInstalled(Exception):
    """The client cannot be installed here; the message has the end of what the installer said."""


@dataclass(frozen=True)
class Client:
    """`wanted` is what the package's installer is asked for; `kind` the face of the client that is checked."""

    package: str
    wanted: str
    language: str
    kind: str

    @property
    def folder_name(self) -> str:
        return f"{self.language}-{self.wanted.strip('=~@.*') or 'newest'}"


_PYTHON_VERSIONS = ("==4.3.1", "==4.5.1", "==4.7.0", "==4.9.0", "==4.14.*", "")
_JAVASCRIPT_VERSIONS = ("@~3.17.0", "@latest")

CLIENTS: tuple[Client, ...] = (
    *(
        Client("azure-cosmos", version, "python", kind)
        for version in _PYTHON_VERSIONS
        for kind in ("blocking", "asyncio")
    ),
    *(Client("@azure/cosmos", version, "javascript", "") for version in _JAVASCRIPT_VERSIONS),
)


def prepare(client: Client, build: Path) -> Path:
    """Install the client, unless that was done before, and return its folder. The newest is looked for every time."""
    folder = build / client.folder_name
    ready = folder / "ready"
    is_newest = client.wanted in ("", "@latest")
    if ready.exists() and not is_newest:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    if client.language == "python":
        if not _python_of(folder).exists():
            _run([sys.executable, "-m", "venv", str(folder)])
        # Old versions import six, which the newest azure-core does not bring any more.
        packages = [f"{client.package}{client.wanted}", "aiohttp", "six"]
        _run([str(_python_of(folder)), "-m", "pip", "install", "--quiet", "--upgrade", *packages])
    else:
        options = ["--no-audit", "--no-fund", "--silent", "--prefix", str(folder)]
        _run(["npm", "install", *options, f"{client.package}{client.wanted}"])
    ready.touch()
    return folder


def command_of(client: Client, folder: Path, *, endpoint: str, key: str) -> list[str]:
    if client.language == "python":
        return [str(_python_of(folder)), str(SCRIPTS / "check_python.py"), client.kind, endpoint, key]
    return ["node", str(SCRIPTS / "check_javascript.js"), str(folder), endpoint, key]


def environment_of(client: Client) -> dict[str, str]:
    # The certificate is the server's own, made a moment ago; Python clients learn that from an argument.
    more = {"NODE_TLS_REJECT_UNAUTHORIZED": "0", "NODE_NO_WARNINGS": "1"} if client.language == "javascript" else {}
    return {**os.environ, **more}


def _python_of(folder: Path) -> Path:
    return folder / "bin" / "python"


def _run(command: Sequence[str]) -> None:
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NotInstalled(f"{command[0]} cannot be run: {problem}") from None
    if finished.returncode:
        raise NotInstalled(f"{' '.join(command[:4])} failed: {(finished.stderr or finished.stdout)[-300:].strip()}")
