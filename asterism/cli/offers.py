"""Throughput of a container, changed by a command."""

from __future__ import annotations

from asterism.cli.data_client import DataClient
from asterism.cli.failure import CommandFailed

_PAGE_ITEMS = 1000


def set_throughput(client: DataClient, link: str, ru_per_second: int) -> None:
    """Set the throughput of the container at the link, `dbs/DATABASE/colls/CONTAINER`, which must have its own."""
    resource = client.need("GET", link, type_="colls", link=link).body["_rid"]
    for page in client.feed("offers", "Offers", type_="offers", link="", page_items=_PAGE_ITEMS):
        for offer in page:
            if offer["offerResourceId"] == resource:
                changed = {**offer, "content": {"offerThroughput": ru_per_second}}
                # Offers are addressed by their resource ids, which are signed in small letters.
                client.need("PUT", f"offers/{offer['id']}", changed, type_="offers", link=offer["id"].lower())
                return
    _, database, _, container = link.split("/")
    raise CommandFailed(f"{database}/{container} has no throughput of its own; give it some, and start again")
