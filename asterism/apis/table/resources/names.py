"""Names of tables, by the rules of the two services that the door speaks for."""

from __future__ import annotations

import re
from typing import Final

from asterism.apis.storage.refusals import Refusal, invalid_input

_STORAGE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}", re.ASCII)
_STORAGE_CHARACTERS: Final = range(3, 64)
_RESERVED: Final = "tables"
_COSMOS_FORBIDDEN: Final = re.compile(r"[/\\#?]")
COSMOS_NAME_CHARACTERS_MAX: Final = 254


def storage_name_refusal(name: str) -> Refusal | None:
    """Return the refusal of a name that no storage table can have, or None. Clients know these messages, and explain
    the rules."""
    if _STORAGE_NAME.fullmatch(name):
        if name.lower() == _RESERVED:
            return invalid_input()
        return None
    if len(name) not in _STORAGE_CHARACTERS:
        return Refusal(
            400, "OutOfRangeInput", "The specified resource name length is not within the permissible limits."
        )
    return Refusal(400, "InvalidResourceName", "The specified resource name contains invalid characters.")


def new_cosmos_name_refusal(name: str) -> Refusal | None:
    """Return the refusal of a name that Cosmos DB would not create, or None. Its code is that of a server error; the
    status is not, because clients repeat those."""
    found = _COSMOS_FORBIDDEN.search(name)
    if found:
        return Refusal(
            400, "InternalServerError", f"The resource name presented contains invalid character '{found[0]}'."
        )
    if name.endswith(" "):
        return Refusal(400, "InternalServerError", "The resource name can't end with space.")
    if not 0 < len(name) <= COSMOS_NAME_CHARACTERS_MAX:
        return Refusal(400, "BadRequest", "The input name is invalid.")
    return None


def cosmos_name_refusal(name: str) -> Refusal | None:
    """Return the refusal of a name in a URL, or None. A name that is too long is merely not found."""
    if _COSMOS_FORBIDDEN.search(name):
        return invalid_input("The table name contains an invalid character.")
    if name.endswith(" "):
        return invalid_input("Table name cannot end with a space.")
    if not name:
        return invalid_input("Request url is invalid.")
    return None
