"""Whether a written item is indexed, as a request or a script's option says it."""

from __future__ import annotations

from typing import Final

from asterism.errors import MalformedRequest

# The Python client sends numbers; these are what its names for them say.
_DIRECTIVES: Final = {"default": None, "include": True, "exclude": False, "0": None, "1": False, "2": True}


def indexing_of(told: str | None) -> bool | None:
    """None leaves it to the container's policy."""
    if told is None:
        return None
    try:
        return _DIRECTIVES[told.strip().lower()]
    except KeyError:
        raise MalformedRequest(
            reason=f"The indexing directive '{told[:64]}' is none of Default, Include and Exclude."
        ) from None
