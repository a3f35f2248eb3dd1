"""The life of the server process: claim, open, listen, say so, wait for the signal, drain, close."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import gc
import logging
import os
import signal
from collections.abc import Callable

import uvloop

from asterism.apis.http import Door
from asterism.keyspaces.reshape_job import Step
from asterism.limits import MIB
from asterism.server.assemble import Assembly, assembled
from asterism.server.config import ServerConfig, check_account, check_ports
from asterism.server.connection_rules import AnswerBudget, PortConnections
from asterism.server.connection_watch import ConnectionWatch
from asterism.server.data_directory import DataDirectory, claimed
from asterism.server.greeting import greeting
from asterism.server.listeners import (
    Listener,
    ListenerGroup,
    Port,
    choose_address,
    make_application,
    share_descriptors,
)
from asterism.server.request_bodies import BodyReading
from asterism.server.workers import WorkerPool

LOG = logging.getLogger("asterism.server")

# How long requests under way may take after the signal to stop.
DRAIN_SECONDS_MAX = 10.0
STOPPING = "Stopping: answering the requests under way."
# The door for tables refuses bodies above 4 MB in its protocol's own words; what is larger still never gets there.
TABLE_REQUEST_BYTES_MAX = 16 * MIB


def run_server(config: ServerConfig, *, say: Callable[[str], None]) -> None:
    """Serves until SIGTERM or SIGINT; raises StartRefused when it cannot begin."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    check_ports(config)
    check_account(config)
    if config.workers > 1:
        _run_workers(config, say=say)
    else:
        uvloop.run(serve(config, say=say))


async def serve(
    config: ServerConfig, *, say: Callable[[str], None], on_step: Callable[[Step], None] | None = None
) -> None:
    address, port = choose_address(config.host, config.port if "nosql" in config.apis else 0)
    config = choose_table_ports(config)
    stopping = _stop_signal()
    with claimed(config.data) as directory:
        await _serve(
            config,
            directory,
            (address, port),
            stopping,
            say=say,
            on_ready=lambda: say(greeting(config, port)),
            on_stopping=lambda: say(STOPPING),
            on_step=on_step,
        )


async def _serve(
    config: ServerConfig,
    directory: DataDirectory,
    address: tuple[str, int],
    stopping: asyncio.Event,
    *,
    say: Callable[[str], None],
    on_ready: Callable[[], None],
    on_stopping: Callable[[], None],
    on_step: Callable[[Step], None] | None = None,
    is_first: bool = True,
) -> None:
    async with assembled(config, directory, on_step=on_step, is_first=is_first) as assembly:
        if is_first and not await _seed(config, assembly, directory, stopping, say=say):
            return
        _spare_the_collector()
        listener = _listener(config, directory, *address, assembly)
        await listener.start()
        on_ready()
        await listener.until(stopping)
        on_stopping()
        if not await listener.stop(drain_seconds_max=DRAIN_SECONDS_MAX):
            LOG.warning("some requests were not answered within %s seconds", DRAIN_SECONDS_MAX)


def _run_workers(config: ServerConfig, *, say: Callable[[str], None]) -> None:
    """The parent's lock on the data directory is the workers' too: it is free when the last of them has ended."""
    address = choose_address(config.host, config.port if "nosql" in config.apis else 0)
    config = choose_table_ports(config)

    def run_worker(_: int, is_first: bool, parent_pipe: int, on_ready: Callable[[], None]) -> int:
        uvloop.run(
            _serve_worker(config, directory, address, parent_pipe, is_first=is_first, say=say, on_ready=on_ready)
        )
        return 0

    with claimed(config.data) as directory:
        WorkerPool(config.workers, run_worker).run(
            on_ready=lambda: say(greeting(config, address[1])), on_stopping=lambda: say(STOPPING)
        )


async def _serve_worker(
    config: ServerConfig,
    directory: DataDirectory,
    address: tuple[str, int],
    parent_pipe: int,
    *,
    is_first: bool,
    say: Callable[[str], None],
    on_ready: Callable[[], None],
) -> None:
    stopping = _stop_signal()
    # Nothing is ever written into it: it can be read when the parent is gone.
    asyncio.get_running_loop().add_reader(parent_pipe, _on_parent_gone, parent_pipe, stopping)
    await _serve(
        config,
        directory,
        address,
        stopping,
        say=say,
        on_ready=on_ready,
        on_stopping=lambda: None,
        is_first=is_first,
    )


def _on_parent_gone(parent_pipe: int, stopping: asyncio.Event) -> None:
    asyncio.get_running_loop().remove_reader(parent_pipe)
    stopping.set()


def choose_table_ports(config: ServerConfig) -> ServerConfig:
    """The ports of the tables, found free; chosen by the operating system where the configuration says 0."""
    if "table" not in config.apis:
        return config
    _, table_port = choose_address(config.host, config.table_port)
    _, cosmos_table_port = choose_address(config.host, config.cosmos_table_port)
    return dataclasses.replace(config, table_port=table_port, cosmos_table_port=cosmos_table_port)


def _spare_the_collector() -> None:
    """What start-up made lives as long as the server and need not be looked at again; and requests make little that
    counting references does not free, so the collector comes less often than for a program of unknown habits."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


async def _seed(
    config: ServerConfig,
    assembly: Assembly,
    directory: DataDirectory,
    stopping: asyncio.Event,
    *,
    say: Callable[[str], None],
) -> bool:
    """False when the signal to stop came before the seed was in."""
    if config.seed is None:
        return True
    from asterism.server.seed import apply_seed

    asked = asyncio.create_task(stopping.wait())
    seeding = asyncio.create_task(
        apply_seed(config.seed, assembly.store, assembly.admission, directory, account=config.account)
    )
    await asyncio.wait({asked, seeding}, return_when=asyncio.FIRST_COMPLETED)
    if not seeding.done():
        seeding.cancel()
        await asyncio.wait({seeding})
        return False
    asked.cancel()
    say(seeding.result())
    return True


def _listener(
    config: ServerConfig, directory: DataDirectory, address: str, port: int, assembly: Assembly
) -> ListenerGroup:
    doors: list[tuple[Door, int, int]] = []
    if "nosql" in config.apis:
        doors.append((assembly.nosql, port, config.limits.request_bytes_max))
    if "table" in config.apis:
        doors.append((assembly.table, config.table_port, TABLE_REQUEST_BYTES_MAX))
        doors.append((assembly.cosmos_table, config.cosmos_table_port, TABLE_REQUEST_BYTES_MAX))
    certificate = private_key = None
    if config.https:
        # Only here: loading it takes longer than everything else at start-up.
        from asterism.server.tls import ensure_certificate

        now = datetime.datetime.now(datetime.UTC)
        files = ensure_certificate(directory.tls, config.tls_names, now=now)
        certificate, private_key = files.certificate, files.private_key
    shares = share_descriptors(config.limits.connections_max, ports=len(doors))
    connections = {door_port: PortConnections(share) for (_, door_port, _), share in zip(doors, shares, strict=True)}
    bodies, answers = BodyReading.of(config.limits), AnswerBudget(config.limits.answer_bytes_in_flight_max)
    watch = ConnectionWatch(config.limits, connections, answers, bodies.budget)
    listeners = []
    for door, door_port, bytes_max in doors:
        port_shares = Port(connections[door_port], bodies.with_bytes_max(bytes_max), answers, watch.look_soon)
        listener = Listener(
            make_application(admin=assembly.admin, door=door, port=port_shares),
            address=address,
            port=door_port,
            certificate=certificate,
            private_key=private_key,
            connections_max=connections[door_port].connections_max,
            idle_seconds_max=config.limits.idle_connection_seconds_max,
        )
        listeners.append(listener)
    return ListenerGroup(listeners, watch)


def _stop_signal() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT; a second one ends the process on the spot."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if stopping.is_set():
            # Nothing is lost: what was acknowledged is on disk.
            os._exit(128 + number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    return stopping
