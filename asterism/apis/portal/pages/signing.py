"""Signing in and out. The door itself handles the key: pages see sessions only."""

from __future__ import annotations

from asterism.apis.portal.call import Portal, PortalCall
from asterism.apis.transports.http import Response


async def show_sign_in(portal: Portal, call: PortalCall) -> Response:
    return sign_in_page(portal, call, wanted=call.parameter("next", "/"))


def sign_in_page(portal: Portal, call: PortalCall, *, wanted: str, problem: str = "", status: int = 200) -> Response:
    """`wanted`: the path to show after signing in."""
    context = call.context(next=own_path(wanted), problem=problem)
    return portal.renderer.page("sign_in.html", context, status=status)


async def sign_out(_: Portal, __: PortalCall) -> Response:
    return Response(303, [("location", "/sign-in")])


def own_path(path: str) -> str:
    """Return a path of this site; the first page in place of an address that leads elsewhere."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_own and not path.startswith("/api/") else "/"
