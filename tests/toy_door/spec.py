"""The row of the echo door: one port for each transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asterism.apis.door_spec import DoorSpec, Greeting, PortSpec, Surroundings
from asterism.apis.settings import HOW, StartRefused, option
from asterism.limits import KIB, limit

if TYPE_CHECKING:
    from asterism.apis.services import DoorServices
    from asterism.apis.transports.doors import AnyDoor


def parse_prefix(given: str) -> bytes:
    if not given.isascii():
        raise StartRefused(f"the prefix {given!r} is not ASCII; choose other characters")
    return given.encode("ascii")


@dataclass(frozen=True, slots=True)
class EchoSettings:
    prefix: bytes = option(
        b"", "--echo-prefix", "What comes before the echo.", panel=HOW, kind=str, metavar="TEXT", parse=parse_prefix
    )
    echo_request_bytes_max: int = limit(64 * KIB, "The longest text that is echoed.")
    echo_stream_bytes_max: int = limit(256 * KIB, "The longest text that is echoed piece by piece.")
    echo_idle_seconds_max: int = limit(60, "Between two messages of a connection.")


def _build(services: DoorServices, settings: EchoSettings) -> Mapping[str, AnyDoor]:
    from tests.toy_door.door import EchoDoor
    from tests.toy_door.echo import EchoMixed, EchoTcp

    return {
        "echo": EchoDoor(settings.prefix, services.new_request_id),
        "echo-websocket": EchoMixed(),
        "echo-tcp": EchoTcp(),
    }


def _greeting(_: EchoSettings, server: Surroundings) -> Greeting:
    return Greeting([(name.capitalize(), endpoint.url) for name, endpoint in server.endpoints.items()])


SPEC = DoorSpec(
    name="echo",
    help="Echo",
    ports=(
        PortSpec("echo", "--echo-port", 7007, "Port for the echo; 0 for any.", request_limit="echo_request_bytes_max"),
        PortSpec(
            "echo-websocket",
            "--echo-websocket-port",
            7008,
            "Port for the echo over websockets; 0 for any.",
            transport="http+websocket",
            request_limit="echo_request_bytes_max",
            streamed_request_limit="echo_stream_bytes_max",
        ),
        PortSpec(
            "echo-tcp",
            "--echo-tcp-port",
            7009,
            "Port for the echo over TCP, with and without encryption; 0 for any.",
            transport="tcp",
            encryption="optional",
            request_limit="echo_request_bytes_max",
            idle_limit="echo_idle_seconds_max",
        ),
    ),
    settings=EchoSettings,
    accounts=(),
    modules=("tests.toy_door.door", "tests.toy_door.echo"),
    build=_build,
    greeting=_greeting,
)
