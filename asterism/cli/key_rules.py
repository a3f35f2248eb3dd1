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
