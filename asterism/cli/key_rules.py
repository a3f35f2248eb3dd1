"""The rules of synthetic partition keys on the command line, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from asterism.cli.failure import CommandFailed


def rules_of(text: str, paths: Sequence[str]) -> dict[str, Any]:
    """Read rules by path; a rule alone is that of the only path. The server checks what is in them."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise CommandFailed(f"the rule of the synthetic key is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise CommandFailed('the rule of the synthetic key must be an object, such as {"parts": ["/customer", "/day"]}')
    if not given or any(name.startswith("/") for name in given):
        return given
    if len(paths) != 1:
        raise CommandFailed('give the rule of a hierarchical key with its path, such as {"/day": {"parts": ["/at"]}}')
    return {paths[0]: given}


def rule_from_options(
    parts: Sequence[str], separator: str, random: int | None, hash_: int | None, of: str | None, *, absent: bool
) -> dict[str, Any]:
    """Make a rule of the options of a command. The server checks it as a whole."""
    if not parts:
        raise CommandFailed("give the properties that the key is made of: --part /deviceId --part /at:day")
    if random is not None and hash_ is not None:
        raise CommandFailed("a key has one suffix: give --random or --hash")
    if (hash_ is None) != (of is None):
        raise CommandFailed("--hash N and --of /PATH belong together: the suffix is a hash of that property")
    rule: dict[str, Any] = {"parts": [_part_of(part) for part in parts], "separator": separator}
    if random is not None:
        rule["suffix"] = {"kind": "random", "count": random}
    elif hash_ is not None:
        rule["suffix"] = {"kind": "hash", "path": of, "count": hash_}
    return {**rule, "missing": "absent" if absent else "refuse"}


def _part_of(text: str) -> dict[str, Any]:
    path, colon, form = text.rpartition(":")
    if not colon:
        return {"path": text}
    number = form[:-1]
    if form[-1:] in ("d", "f") and number.isascii() and number.isdigit():
        return {"path": path, "digits" if form[-1] == "d" else "decimals": int(number)}
    return {"path": path, "bucket": form}
