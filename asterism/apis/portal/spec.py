"""The portal as a row of the table of doors: a web page that is a client of the other doors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asterism.apis.door_spec import DoorSpec, Greeting, PortSpec, Surroundings
from asterism.apis.settings import WHERE, WHO, option
from asterism.limits import limit

if TYPE_CHECKING:
    from asterism.apis.services import DoorServices
    from asterism.apis.transports.doors import AnyDoor


@dataclass(frozen=True, slots=True)
class PortalSettings:
    is_off: bool = option(False, "--no-portal", "Serve no web page.", panel=WHERE)
    is_open: bool = option(
        False,
        "--portal-open",
        "Let everybody on this machine use the web page without a key. Only with a loopback address.",
        panel=WHO,
    )
    # A working day: a page that stays open does not ask for the key again in the middle of it.
    portal_session_seconds_max: int = limit(8 * 60 * 60, "How long the web page knows a visitor before it asks again.")


def _build(services: DoorServices, settings: PortalSettings) -> Mapping[str, AnyDoor]:
    from asterism.apis.portal.door import PortalDoor

    return {"portal": PortalDoor(services, settings)}


def _greeting(_: PortalSettings, server: Surroundings) -> Greeting:
    return Greeting([("Portal", server.endpoints["portal"].url)])


def _refusal(settings: PortalSettings, is_local: bool) -> str | None:
    if settings.is_open and not is_local:
        return "--portal-open needs a loopback address; leave it out, or listen on 127.0.0.1"
    return None


SPEC = DoorSpec(
    name="portal",
    help="a web page that shows partitions and data",
    ports=(PortSpec("portal", "--portal-port", 8090, "Port for the web page; 0 for any.", is_web_page=True),),
    settings=PortalSettings,
    accounts=("cosmos", "storage"),
    modules=("asterism.apis.portal.door", "asterism.apis.portal.rendering", "asterism.apis.portal.routes"),
    build=_build,
    greeting=_greeting,
    is_off=lambda settings: settings.is_off,
    refusal=_refusal,
)
