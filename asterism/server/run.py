"""The life of the server process: claim, open, listen, say so, wait for the signal, drain, close."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Callable, Sequence

import uvloop

from asterism.keyspaces.reshaping.job import Step
from asterism.server.allocator import keep_freed_memory
from asterism.server.assemble import Assembly, assembled, load_doors
from asterism.server.config import (
    ConfiguredDoor,
    ServerConfig,
    check_account,
    check_doors,
    check_memory,
    check_ports,
    check_test_controls,
)
from asterism.server.data_directory import DataDirectory, claim_directory, in_memory
from asterism.server.door_listeners import ChosenPorts, chosen_ports, door_listeners
from asterism.server.greeting import greeting
from asterism.server.ready_file import ready_file, ready_report
from asterism.server.worker_links import WorkerLinks, link_sockets
from asterism.server.workers import WorkerPool

LOG = logging.getLogger("asterism.server")

# How long requests under way may take after the signal to stop.
DRAIN_SECONDS_MAX = 10.0
STOPPING = "Stopping: answering the requests under way."

OnReady = Callable[[ServerConfig, DataDirectory], None]


def _ignore(_: ServerConfig, __: DataDirectory) -> None:
    """Let the server be ready without telling anything but its operator."""


def run_server(config: ServerConfig, *, say: Callable[[str], None], on_ready: OnReady = _ignore) -> None:
    """Serve until SIGTERM or SIGINT; raise StartRefused when it cannot begin. `on_ready` gets the configuration with
    the ports that were chosen, in the process that the signal is for."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    check_ports(config)
    check_account(config)
    check_memory(config)
    check_doors(config)
    check_test_controls(config)
    if config.workers > 1:
        _run_workers(config, say=say, on_ready=on_ready)
    else:
        uvloop.run(serve(config, say=say, on_ready=on_ready))


async def serve(
    config: ServerConfig,
    *,
    say: Callable[[str], None],
    on_ready: OnReady = _ignore,
    on_step: Callable[[Step], None] | None = None,
) -> None:
    stopping = _stop_signal()
    with (
        chosen_ports(config) as ports,
        ready_file(config.ready_file) as write_ready_file,
        in_memory(https=config.may_need_certificate)
        if config.is_in_memory
        else claim_directory(config.data) as directory,
    ):
        config = ports.config

        def announce() -> None:
            write_ready_file(lambda: ready_report(config, tls=directory.tls))
            say(greeting(config, tls=directory.tls))
            on_ready(config, directory)

        await _serve(
            ports,
            directory,
            stopping,
            say=say,
            on_ready=announce,
            on_stopping=lambda: say(STOPPING),
            on_step=on_step,
        )


async def _serve(
    ports: ChosenPorts,
    directory: DataDirectory,
    stopping: asyncio.Event,
    *,
    say: Callable[[str], None],
    on_ready: Callable[[], None],
    on_stopping: Callable[[], None],
    on_step: Callable[[Step], None] | None = None,
    is_first: bool = True,
    links: WorkerLinks | None = None,
) -> None:
    config = ports.config
    async with assembled(config, directory, on_step=on_step, is_first=is_first, processes=links) as assembly:
        if is_first and not await _seed(config, assembly, directory, stopping, say=say):
            return
        _spare_the_collector()
        keep_freed_memory()
        listener = door_listeners(config, directory, ports.address, assembly)
        if links is not None:
            await links.start()
        await listener.start()
        ports.release()
        on_ready()
        await listener.until(stopping)
        on_stopping()
        if not await listener.stop(drain_seconds_max=DRAIN_SECONDS_MAX):
            LOG.warning("some requests were not answered within %s seconds", DRAIN_SECONDS_MAX)
        if links is not None:
            await links.stop()


def _run_workers(config: ServerConfig, *, say: Callable[[str], None], on_ready: OnReady) -> None:
    """The parent's lock on the data directory is the workers' too: it is free when the last of them has ended."""

    def run_worker(place: int, is_first: bool, parent_pipe: int, on_ready: Callable[[], None]) -> int:
        links = WorkerLinks(sockets, place)
        uvloop.run(_serve_worker(ports, directory, parent_pipe, links, is_first=is_first, say=say, on_ready=on_ready))
        return 0

    with (
        chosen_ports(config) as ports,
        ready_file(config.ready_file) as write_ready_file,
        claim_directory(config.data) as directory,
        link_sockets(config.workers) as sockets,
    ):
        config = ports.config
        load_doors(config)

        def announce() -> None:
            ports.release()
            write_ready_file(lambda: ready_report(config, tls=directory.tls))
            say(greeting(config, tls=directory.tls))
            on_ready(config, directory)

        WorkerPool(config.workers, run_worker).run(on_ready=announce, on_stopping=lambda: say(STOPPING))


async def _serve_worker(
    ports: ChosenPorts,
    directory: DataDirectory,
    parent_pipe: int,
    links: WorkerLinks,
    *,
    is_first: bool,
    say: Callable[[str], None],
    on_ready: Callable[[], None],
) -> None:
    stopping = _stop_signal()
    # Nothing is ever written into it: it can be read when the parent is gone.
    asyncio.get_running_loop().add_reader(parent_pipe, _on_parent_gone, parent_pipe, stopping)
    await _serve(
        ports,
        directory,
        stopping,
        say=say,
        on_ready=on_ready,
        on_stopping=lambda: None,
        is_first=is_first,
        links=links,
    )


def _on_parent_gone(parent_pipe: int, stopping: asyncio.Event) -> None:
    asyncio.get_running_loop().remove_reader(parent_pipe)
    stopping.set()


def _spare_the_collector() -> None:
    """Take the objects of start-up, which live as long as the server, out of garbage collection, and make it rarer than
    by default: requests make little that counting references does not free."""
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
    """Create what the seed and the settings of doors ask for. False when the signal to stop came first."""
    wanted = [door for door in config.served_doors if door.spec.prepare is not None]
    if config.seed is None and not wanted:
        return True
    asked = asyncio.create_task(stopping.wait())
    creating = asyncio.create_task(_create_first(config, assembly, directory, wanted, say=say))
    await asyncio.wait({asked, creating}, return_when=asyncio.FIRST_COMPLETED)
    if not creating.done():
        creating.cancel()
        await asyncio.wait({creating})
        return False
    asked.cancel()
    creating.result()
    return True


async def _create_first(
    config: ServerConfig,
    assembly: Assembly,
    directory: DataDirectory,
    doors: Sequence[ConfiguredDoor],
    *,
    say: Callable[[str], None],
) -> None:
    if config.seed is not None:
        from asterism.server.seed import apply_seed

        seeds = [door.spec.seed for door in config.doors if door.spec.seed is not None]
        say(await apply_seed(config.seed, seeds, assembly.services, directory))
    for door in doors:
        assert door.spec.prepare is not None, "the caller has looked"
        counts = await door.spec.prepare(assembly.services, door.settings)
        if counts:
            say(f"Created as the options say: {', '.join(counts)}.")


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
