"""A listener for every port of the doors that are served."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from asterism.apis.door_spec import PortSpec
from asterism.server.assemble import Assembly
from asterism.server.config import ConfiguredDoor, ServerConfig
from asterism.server.data_directory import DataDirectory
from asterism.server.listeners.addresses import bind_shared, choose_address
from asterism.server.listeners.group import DoorPort, ListenerGroup, PortLimits, make_listeners
from asterism.server.listeners.tls import CertificateFiles


@dataclass(frozen=True, slots=True)
class ChosenPorts:
    # The configuration with the ports that were found free, chosen by the operating system where it said 0.
    config: ServerConfig
    # To listen on.
    address: str
    # Called when the listeners of this process are there.
    release: Callable[[], None]


@contextmanager
def chosen_ports(config: ServerConfig) -> Iterator[ChosenPorts]:
    """Choose the ports of the doors, and keep other servers from being given the same until they are released."""
    with ExitStack() as held:
        found: dict[str, tuple[str, int]] = {}
        for door in config.served_doors:
            for name, number in door.ports.items():
                found[name] = choose_address(config.host, number)
                held.enter_context(bind_shared(*found[name]))
        (address, _), *_ = found.values()
        doors = [
            dataclasses.replace(door, ports={name: found[name][1] for name in door.ports}) if door.is_served else door
            for door in config.doors
        ]
        yield ChosenPorts(dataclasses.replace(config, doors=tuple(doors)), address, held.close)


def door_listeners(config: ServerConfig, directory: DataDirectory, address: str, assembly: Assembly) -> ListenerGroup:
    def certificate() -> CertificateFiles:
        # Only here: loading it takes longer than everything else at start-up.
        from asterism.server.listeners.certificates import ensure_certificate

        return ensure_certificate(directory.tls, config.tls_names, now=datetime.datetime.now(datetime.UTC))

    return make_listeners(
        door_ports(config, assembly),
        admin=assembly.operator_door,
        address=address,
        limits=config.limits,
        is_tls=config.https,
        certificate=certificate,
    )


def door_ports(config: ServerConfig, assembly: Assembly) -> list[DoorPort]:
    """Return the ports in the order of the doors: the first one's readiness probe speaks for all."""
    return [
        DoorPort(
            door=assembly.doors[port.name],
            port=door.ports[port.name],
            transport=port.transport,
            limits=_limits(config, door, port),
            is_tls={"always": True, "never": False}.get(port.encryption),
            has_optional_tls=port.encryption == "optional",
        )
        for door in config.served_doors
        for port in door.spec.ports
    ]


def _limits(config: ServerConfig, door: ConfiguredDoor, port: PortSpec) -> PortLimits:
    request_bytes_max = door.limit(port.request_limit, config.limits)
    streamed_limit = port.streamed_request_limit
    return PortLimits(
        body_bytes_max=request_bytes_max,
        streamed_body_bytes_max=None if streamed_limit is None else door.limit(streamed_limit, config.limits),
        websocket_message_bytes_max=request_bytes_max,
        idle_seconds_max=door.limit(port.idle_limit, config.limits),
    )
