"""The first page: doors and how to connect, what is stored, jobs under way, nodes."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from asterism.access.account_settings import COSMOS, STORAGE
from asterism.apis.peers import ServedDoor
from asterism.apis.portal.call import Portal, PortalCall
from asterism.apis.portal.visitors import VisitorAccount
from asterism.apis.transports.http import Response

ROWS_PER_PAGE: Final = 100


async def show_home(portal: Portal, call: PortalCall) -> Response:
    session = call.visitor
    search, offset = call.parameter("search"), _offset(call.parameter("offset", "0"))
    sort = call.parameter("sort", "name")
    client = portal.client
    overview = await client.admin(
        session, "overview", search=search, offset=str(offset), limit=str(ROWS_PER_PAGE), sort=sort
    )
    jobs = await client.admin(session, "jobs")
    account = portal.accounts.find(session.account)
    assert account is not None, "the session was checked with the account's key"
    accounts = portal.accounts.all() if session.is_operator else [account]
    context = call.context(
        overview=overview,
        search=search,
        sort=sort,
        offset=offset,
        page_rows=ROWS_PER_PAGE,
        jobs=jobs["jobs"],
        nodes=(await client.admin(session, "nodes"))["nodes"] if session.is_operator else [],
        accounts=accounts,
        doors=_doors(portal, call, account),
        cosmos_accounts=[shown.name for shown in accounts if shown.kind == COSMOS],
        storage_accounts=[shown.name for shown in accounts if shown.kind == STORAGE],
    )
    return portal.renderer.page("home.html", context)


def _doors(portal: Portal, call: PortalCall, account: VisitorAccount) -> list[dict[str, Any]]:
    """Describe the doors that serve the visitor, each with the account that it would use there."""
    shown = []
    for door in portal.peers.served:
        introduce = door.spec.introduce
        user = _user_of(portal, call, door, account)
        if introduce is not None and user is not None:
            key = user.key_text(call.visitor.grant)
            surroundings = dataclasses.replace(door.surroundings, key="")
            introduction = introduce(door.settings, surroundings, user.name, key)
            shown.append({"key": key, "introduction": introduction})
    return shown


def _user_of(portal: Portal, call: PortalCall, door: ServedDoor, account: VisitorAccount) -> VisitorAccount | None:
    """Return the account for a door's snippets: the visitor's, or for an operator the first of the door's own."""
    if call.visitor.is_operator:
        own = next(iter(door.spec.account_keys(door.settings)), None)
        return account if own is None else portal.accounts.find(own)
    return account if account.kind in door.spec.accounts else None


def _offset(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
