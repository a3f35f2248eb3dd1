"""Pages: Jinja2 templates, everything from the data escaped, and the headers that fence a page in."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from asterism import __version__
from asterism.apis.portal.figures import bytes_text, count_text, masked
from asterism.apis.portal.static_files import StaticFiles
from asterism.apis.transports.http import HeaderList, Response

_FOLDER: Final = Path(__file__).parent / "templates"
_NONCE_BYTES: Final = 16
FIRST_TEMPLATES: Final = ("base.html", "sign_in.html", "home.html")
HTML: Final = ("content-type", "text/html; charset=utf-8")

# The editor makes style elements of its own, which carry the nonce of the page; no script stands in a page.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

COMMON_HEADERS: Final[HeaderList] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
]


class Renderer:
    def __init__(self, static_files: StaticFiles, random_bytes: Callable[[int], bytes]) -> None:
        self._static_files = static_files
        self._random_bytes = random_bytes
        self._environment = environment = Environment(
            loader=FileSystemLoader(_FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            # The templates are part of the package and do not change while it runs.
            auto_reload=False,
        )
        environment.globals.update(static=static_files.address, module=self._module, version=__version__, mask=masked)
        # The fields of an index have an order.
        environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
        environment.filters.update(bytes=bytes_text, count=count_text)

    def prepare(self) -> None:
        """Compile the templates that a visitor needs first; other pages compile theirs when they are asked for."""
        for template in FIRST_TEMPLATES:
            self._environment.get_template(template)

    def _module(self, name: str) -> Markup:
        """Return the element of a script. Without the links, a browser would find out file by file what it imports."""
        address, *imported = self._static_files.modules(name)
        links = (Markup('<link rel="modulepreload" href="{}">').format(each) for each in imported)
        return Markup("").join([Markup('<script type="module" src="{}"></script>').format(address), *links])

    def page(self, template: str, context: dict[str, Any], *, status: int = 200) -> Response:
        nonce = base64.b64encode(self._random_bytes(_NONCE_BYTES)).decode("ascii")
        text = self._environment.get_template(template).render(nonce=nonce, **context)
        headers = [
            HTML,
            ("cache-control", "no-store"),
            ("content-security-policy", _POLICY.format(nonce=nonce)),
            *COMMON_HEADERS,
        ]
        return Response(status, headers, text.encode("utf-8", "replace"))
