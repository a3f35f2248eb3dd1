"""The JavaScript that every sandbox begins with, and how a user's text becomes a function in it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

# A comment before the first function may hold the word; the engine reports a wrong guess as a syntax error.
_FIRST_FUNCTION = re.compile(r"^\s*(?:async\s+)?function\b\s*\*?\s*([A-Za-z_$][\w$]*)", re.MULTILINE)


@cache
def _file_text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def script_prelude() -> str:
    """An expression whose value is the sandbox's port, for stored procedures and triggers."""
    return _wrapped("core.js", "spatial.js", "prelude.js")


@cache
def function_prelude() -> str:
    """The same for user-defined functions."""
    return _wrapped("core.js", "udf.js")


def _wrapped(*names: str) -> str:
    text = "\n".join(_file_text(name) for name in names)
    return f'(function () {{\n"use strict";\n{text}\n}})()'


def expression_text(body: str) -> str:
    """`body` without what may follow a function but not an expression in parentheses."""
    return body.strip().rstrip(";").rstrip()


def first_function_name(body: str) -> str | None:
    found = _FIRST_FUNCTION.search(body)
    return None if found is None else found.group(1)
