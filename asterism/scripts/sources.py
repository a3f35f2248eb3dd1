"""The JavaScript that every sandbox starts with, and the conversion of a user's text to a function in it."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

# A comment before the first function may contain the word; the engine reports a wrong guess as a syntax error.
_FIRST_FUNCTION = re.compile(r"^\s*(?:async\s+)?function\b\s*\*?\s*([A-Za-z_$][\w$]*)", re.MULTILINE)


@cache
def _file_text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def script_prelude() -> str:
    """Return an expression whose value is the sandbox's port, for stored procedures and triggers."""
    later = {name: _part(f"{name}.js") for name in ("queries", "spatial")}
    return _wrapped(_file_text("core.js"), f"const LATER_PARTS = {json.dumps(later)};", _file_text("prelude.js"))


@cache
def function_prelude() -> str:
    """Return the same for user-defined functions."""
    return _wrapped(_file_text("core.js"), _file_text("udf.js"))


def _part(name: str) -> str:
    """Return a part of the prelude that is loaded on demand, as a function of the prelude's tools."""
    return f'(function (tools) {{\n"use strict";\n{_file_text(name)}\n}})'


def _wrapped(*texts: str) -> str:
    text = "\n".join(texts)
    return f'(function () {{\n"use strict";\n{text}\n}})()'


def expression_text(body: str) -> str:
    """Return `body` without the semicolons that may follow a function but not an expression in parentheses."""
    return body.strip().rstrip(";").rstrip()


def first_function_name(body: str) -> str | None:
    found = _FIRST_FUNCTION.search(body)
    return None if found is None else found.group(1)
