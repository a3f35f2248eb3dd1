"""The indexing directive of a write, from a header of its request or a script's option."""

from __future__ import annotations

from typing import Final

from asterism.errors import MalformedRequest

# The Python client sends numbers, as its names for them are defined.
_DIRECTIVES: Final = {"default": None, "include": True, "exclude": False, "0": None, "1": False, "2": True}


def indexing_of(directive: str | None) -> bool | None:
    """Return whether to index the item; None leaves it to the container's policy."""
    if directive is None:
        return None
    try:
        return _DIRECTIVES[directive.strip().lower()]
    except KeyError:
        raise MalformedRequest(
            reason=f"The indexing directive '{directive[:64]}' is invalid: it is Default, Include or Exclude."
        ) from None
