"""The kinds of resources that paths name, as the routes have them."""

from __future__ import annotations

from typing import Final

SERVICE: Final = "service"
CONTAINER: Final = "container"
BLOB: Final = "blob"
# A page of the account's static web site.
WEBSITE: Final = "website"
