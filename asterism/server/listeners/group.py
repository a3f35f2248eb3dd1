"""The listeners of all doors, made from a list of ports and run as one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, cast

from asterism.apis.transports.doors import AnyDoor, Transport
from asterism.apis.transports.http import Door, Request, Response
from asterism.apis.transports.tcp import TcpDoor
from asterism.apis.transports.websocket import WebSocketDoor
from asterism.clock import SYSTEM_CLOCK
from asterism.limits import MIB, Limits
from asterism.server.listeners.addresses import share_descriptors
from asterism.server.listeners.answer_streams import AcknowledgedPace, AnswerStreams
from asterism.server.listeners.application import Port, make_application
from asterism.server.listeners.connection_rules import AnswerBudget, PortConnections
from asterism.server.listeners.connection_watch import ConnectionWatch
from asterism.server.listeners.http import HttpListener
from asterism.server.listeners.request_bodies import BodyReader
from asterism.server.listeners.tcp import PortTls, Serve, TcpListener
from asterism.server.listeners.tcp_stream import TcpPort, TcpStream
from asterism.server.listeners.tls import CertificateFiles, server_context


@dataclass(frozen=True, slots=True, kw_only=True)
class PortLimits:
    # Of a request's body, and of one that a route reads in pieces; a route may ask for less, or name its own.
    body_bytes_max: int
    streamed_body_bytes_max: int | None = None
    websocket_message_bytes_max: int = MIB
    # Between the messages of a connection that is not plain HTTP; None: the limit of all connections. Doors may set
    # it for a single connection as well.
    idle_seconds_max: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorPort:
    """One port of a door."""

    door: AnyDoor
    port: int
    transport: Transport
    limits: PortLimits
    # True if all of its clients must use TLS; None: as on the other ports of the server.
    is_tls: bool | None = None
    # True if the port, which is not "http" then, serves clients with and without TLS, whatever holds for the others.
    has_optional_tls: bool = False


class Listener(Protocol):
    """One listening port. `start` returns when it accepts; `stop` when all that was under way is answered."""

    async def start(self) -> None: ...

    async def until(self, stopping: asyncio.Event) -> None:
        """Return when `stopping` is set; the end of the listener without it is an error."""
        ...

    async def stop(self, *, drain_seconds_max: float) -> bool:
        """Stop accepting at once; False when something was still under way after the time."""
        ...


class ListenerGroup:
    """The listeners of all doors, as one. The first is the one whose readiness probe is asked."""

    def __init__(
        self,
        listeners: Sequence[Listener],
        watch: ConnectionWatch | None = None,
        streams: Sequence[AnswerStreams] = (),
    ) -> None:
        self._listeners = listeners
        self._watch = watch
        self._streams = streams

    async def start(self) -> None:
        """Start one after the other, the first one last: when it answers, all of them do."""
        for listener in reversed(self._listeners):
            await listener.start()
        if self._watch is not None:
            self._watch.start()

    async def until(self, stopping: asyncio.Event) -> None:
        """Return when `stopping` is set; the end of any of them without it is an error."""
        waiting = [asyncio.create_task(listener.until(stopping)) for listener in self._listeners]
        done, others = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
        for task in others:
            task.cancel()
        for task in done:
            task.result()

    async def stop(self, *, drain_seconds_max: float) -> bool:
        for streams in self._streams:
            streams.end_endless()
        stopped = await asyncio.gather(
            *(listener.stop(drain_seconds_max=drain_seconds_max) for listener in self._listeners)
        )
        if self._watch is not None:
            await self._watch.stop()
        return all(stopped)


def make_listeners(
    ports: Sequence[DoorPort],
    *,
    admin: Door,
    address: str,
    limits: Limits,
    is_tls: bool,
    certificate: Callable[[], CertificateFiles],
) -> ListenerGroup:
    """Make the listeners of all ports, which share the process's descriptors and its bytes in flight.

    `certificate` is called when TLS is needed: at once where all clients must use it, else for the first that does.
    """
    return _Maker(ports, admin=admin, address=address, limits=limits, is_tls=is_tls, certificate=certificate).group()


class _Maker:
    def __init__(
        self,
        ports: Sequence[DoorPort],
        *,
        admin: Door,
        address: str,
        limits: Limits,
        is_tls: bool,
        certificate: Callable[[], CertificateFiles],
    ) -> None:
        self._ports = ports
        self._admin = admin
        self._address = address
        self._limits = limits
        self._is_tls = is_tls
        self._certificate = certificate
        shares = share_descriptors(limits.connections_max, ports=len(ports))
        self._connections = {each.port: PortConnections(share) for each, share in zip(ports, shares, strict=True)}
        self._bodies = BodyReader.of(limits)
        self._answers = AnswerBudget(limits.answer_bytes_in_flight_max)
        self._watch = ConnectionWatch(limits, self._connections, self._answers, self._bodies.budget)
        self._streams: list[AnswerStreams] = []
        # One context for all ports: it keeps the sessions that clients resume.
        self._context = cache(self._make_context)

    def group(self) -> ListenerGroup:
        listeners = [self._http(each) if each.transport == "http" else self._tcp(each) for each in self._ports]
        return ListenerGroup(listeners, self._watch, self._streams)

    def _http(self, each: DoorPort) -> Listener:
        pace = AcknowledgedPace(each.port, self._connections[each.port])
        return HttpListener(
            make_application(admin=self._admin, door=_http_door(each), port=self._port(each, pace)),
            address=self._address,
            port=each.port,
            certificate=self._certificate() if self._needs_tls(each) else None,
            connections_max=self._connections[each.port].connections_max,
            idle_seconds_max=self._limits.idle_connection_seconds_max,
        )

    def _tcp(self, each: DoorPort) -> Listener:
        serve, needs_tls = self._serve(each), self._needs_tls(each)
        port = TcpPort(self._connections[each.port], self._bodies.budget, self._answers, self._watch.look_soon)
        port.idle_seconds_max = each.limits.idle_seconds_max
        return TcpListener(
            serve,
            address=self._address,
            number=each.port,
            port=port,
            tls=PortTls(self._context, each.has_optional_tls) if needs_tls or each.has_optional_tls else None,
            handshake_seconds_max=self._limits.first_request_seconds_max,
        )

    def _needs_tls(self, each: DoorPort) -> bool:
        return self._is_tls if each.is_tls is None else each.is_tls

    def _serve(self, each: DoorPort) -> Serve:
        if each.transport == "tcp":
            return _tcp_serve(each)
        # Only here: most servers have no such port, and the libraries behind it take time to load.
        from asterism.server.listeners.http1 import HttpFront
        from asterism.server.listeners.sniff import serve_spoken

        if not hasattr(each.door, "serve_websocket"):
            raise TypeError(f"the door of port {each.port} has no serve_websocket")
        front = HttpFront(
            make_application(admin=self._admin, door=_http_door(each), port=self._port(each, None)),
            websocket_door=cast(WebSocketDoor, each.door),
            message_bytes_max=each.limits.websocket_message_bytes_max,
            wall_seconds=SYSTEM_CLOCK.wall_seconds,
        )
        if each.transport == "http+websocket":
            return front.serve
        return serve_spoken(http=front.serve, other=_tcp_serve(each))

    def _port(self, each: DoorPort, pace: AcknowledgedPace | None) -> Port:
        streams = AnswerStreams(self._answers, self._watch.look_soon, pace=pace)
        self._streams.append(streams)
        bodies = self._bodies.with_limits(
            bytes_max=each.limits.body_bytes_max, streamed_bytes_max=each.limits.streamed_body_bytes_max
        )
        return Port(self._connections[each.port], bodies, self._answers, streams, self._watch.look_soon)

    def _make_context(self) -> ssl.SSLContext:
        return server_context(self._certificate())


def _tcp_serve(each: DoorPort) -> Serve:
    if not hasattr(each.door, "serve"):
        raise TypeError(f"the door of port {each.port} has no serve")
    door = cast(TcpDoor, each.door)

    async def serve(stream: TcpStream) -> None:
        await door.serve(stream)

    return serve


def _http_door(each: DoorPort) -> Door:
    if hasattr(each.door, "answer"):
        return cast(Door, each.door)
    if each.transport == "http":
        raise TypeError(f"the door of port {each.port} has no answer")
    return _WebSocketsOnly()


class _WebSocketsOnly:
    """The door for plain requests to a port whose door speaks websockets only."""

    async def answer(self, request: Request) -> Response:  # noqa: ARG002 - every request has the same answer
        return Response(426, [("upgrade", "websocket"), ("connection", "Upgrade")], b"This port speaks websockets.\n")
