"""Connections to a node: opening, losing and pooling them."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from asterism.storage.contract import EngineFailed
from asterism.storage.postgres.database_errors import (
    ConnectionLost,
    TransientError,
    is_hopeless,
    is_lost,
    is_transient,
    message_of,
)

# Only index lookups are wanted: a plan made while a table was empty must not be kept. The server's own timeouts would
# end the wait for a standby, and a commit that stopped waiting looks like a success.
SESSION_SETTINGS = {
    "application_name": "asterism",
    "client_min_messages": "warning",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "idle_in_transaction_session_timeout": "0",
    "jit": "off",
    "lock_timeout": "0",
    "plan_cache_mode": "force_generic_plan",
    "statement_timeout": "0",
}
# A database or a role may be configured to answer before a commit is on disk; settings stronger than "on" are kept.
PREPARE_SESSION = """
SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END
"""
# Number of promotions of this server and those it was copied from. Read only on nodes with several hosts.
READ_TIMELINE = """
SELECT CASE WHEN pg_is_in_recovery() THEN 0
    ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer END
"""
# A node of a large fleet has hundreds of partitions, with about four statements each.
STATEMENTS_CACHED = 1024
# An idle connection is closed after this long: a server's connections are limited, and other clients may need them.
IDLE_SECONDS_MAX = 10.0
# The server keeps some 300 KB for every partition that a connection has written to, until the connection is closed.
PARTITIONS_WRITTEN_MAX = 256
BACK_OFF_SECONDS_FIRST = 0.05
BACK_OFF_SECONDS_MAX = 1.0
SECONDS_MIN = 0.5


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits. `total_seconds` bounds every call; the others bound its parts."""

    connect_seconds: float = 3.0
    read_seconds: float = 5.0
    # A commit may have to wait for a standby.
    commit_seconds: float = 10.0
    total_seconds: float = 15.0

    @property
    def seconds_when_unreachable(self) -> float:
        """Limit in place of `total_seconds` once a node has exceeded it: queued calls have already waited."""
        return self.total_seconds / 3


@dataclass(slots=True)
class Hosts:
    """The hosts of a node, the last known primary first. All pools of an engine share them.

    A primary that was replaced and has restarted still claims to be the primary; its timeline is lower than that of the
    standby that replaced it, and it is skipped.
    """

    addresses: list[str]
    timeline: int = field(default=0)

    def prefer(self, address: str) -> None:
        self.addresses.remove(address)
        self.addresses.insert(0, address)


def seconds_until(deadline: float, seconds_max: float) -> float:
    """Return the time left for a part of a call, but never so little that the part cannot succeed."""
    return min(seconds_max, max(deadline - asyncio.get_running_loop().time(), SECONDS_MIN))


class Link:
    """A connection. All statements to a database pass through `ask` or `run`."""

    __slots__ = ("connection", "idle_since", "is_primary", "pool", "timeline", "warnings", "written_to")

    def __init__(self, connection: Any, pool: Pool) -> None:
        self.connection = connection
        self.pool = pool
        self.is_primary = True
        self.timeline = 0
        self.warnings = 0
        self.idle_since = 0.0
        self.written_to: set[int] = set()
        connection.add_log_listener(self._on_message)

    def _on_message(self, _connection: Any, _message: Any) -> None:
        self.warnings += 1

    async def ask(self, seconds: float, statement: str, *arguments: Any) -> Any:
        """Return the first row of the answer, within a time limit. A connection that exceeds it is closed, without the
        driver's cancel request: canceling a commit that waits for a standby makes it succeed too early."""
        connection = self.connection
        self.pool.statements += 1
        alarm = asyncio.get_running_loop().call_later(seconds, connection.terminate)
        try:
            return await connection.fetchrow(statement, *arguments)
        except asyncio.CancelledError:
            # The answer may still arrive, and would be taken for that of the next statement.
            connection.terminate()
            raise
        except Exception as error:
            if connection.is_closed() or is_lost(error):
                connection.terminate()
                raise ConnectionLost(str(error)) from error
            if is_transient(error):
                raise TransientError(str(error)) from error
            raise
        finally:
            alarm.cancel()

    async def run(self, seconds: float, script: str) -> None:
        """Run statements without arguments or answers, in one transaction unless they control it themselves."""
        connection = self.connection
        self.pool.statements += 1
        alarm = asyncio.get_running_loop().call_later(seconds, connection.terminate)
        try:
            await connection.execute(script)
        except Exception as error:
            if connection.is_closed() or is_lost(error):
                connection.terminate()
                raise ConnectionLost(str(error)) from error
            raise
        finally:
            alarm.cancel()

    @property
    def is_open(self) -> bool:
        return not self.connection.is_closed()

    @property
    def is_worth_keeping(self) -> bool:
        return self.is_open and len(self.written_to) < PARTITIONS_WRITTEN_MAX


async def connect(address: str, seconds: float, pool: Pool) -> Link:
    """Connect to a host, which may be a primary or a standby."""
    connection = await asyncpg.connect(
        address,
        timeout=seconds,
        server_settings=SESSION_SETTINGS,
        statement_cache_size=STATEMENTS_CACHED,
        max_cached_statement_lifetime=0,
        max_cacheable_statement_size=0,
    )
    link = Link(connection, pool)
    try:
        link.is_primary = not (await link.ask(seconds, PREPARE_SESSION))[0]
        if len(pool.hosts.addresses) > 1:
            link.timeline = (await link.ask(seconds, READ_TIMELINE))[0]
    except BaseException:
        connection.terminate()
        raise
    return link


class Pool:
    """At most `size` connections to the primary of a node, or to its standbys, opened on demand."""

    def __init__(self, hosts: Hosts, timeouts: Timeouts, *, size: int, primary: bool = True) -> None:
        self.hosts = hosts
        self.timeouts = timeouts
        self._size = size
        self._primary = primary
        self._idle: list[Link] = []
        self._count = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._opening = asyncio.Lock()
        self._back_off_seconds = BACK_OFF_SECONDS_FIRST
        self._is_closed = False
        self._idle_timer: asyncio.TimerHandle | None = None
        # True if the last attempt to reach the node exhausted its time limit.
        self._is_unreachable = False
        # Statements sent so far, each a round trip: counted by tests.
        self.statements = 0
        self.opened = 0

    def deadline(self) -> float:
        """Return the deadline of a call that starts now, as a time of the event loop."""
        timeouts = self.timeouts
        seconds = timeouts.seconds_when_unreachable if self._is_unreachable else timeouts.total_seconds
        return asyncio.get_running_loop().time() + seconds

    def check_time(self, deadline: float, error: Exception) -> None:
        if asyncio.get_running_loop().time() >= deadline:
            self._is_unreachable = True
            raise EngineFailed(f"the node does not answer: {message_of(error)}") from error

    def is_overdue(self, since: float) -> bool:
        """Return True if a call queued since then has no time left for another attempt at an unreachable node."""
        if not self._is_unreachable:
            return False
        waited_seconds = asyncio.get_running_loop().time() - since
        return waited_seconds > self.timeouts.total_seconds - self.timeouts.seconds_when_unreachable

    @property
    def is_unreachable(self) -> bool:
        return self._is_unreachable

    async def acquire(self, deadline: float, prefer: Link | None = None) -> Link:
        """Return a connection that appears open; `EngineFailed` if none is available until `deadline` (a time of the
        event loop)."""
        while True:
            if self._is_closed:
                raise EngineFailed("the engine is closed")
            link = self._take_idle(prefer)
            if link is not None:
                return link
            if self._count < self._size:
                self._count += 1
                try:
                    return await self._open(deadline)
                except BaseException:
                    self._count -= 1
                    self._wake()
                    raise
            await self._wait(deadline)

    def _take_idle(self, prefer: Link | None) -> Link | None:
        if prefer is not None and prefer in self._idle:
            self._idle.remove(prefer)
            self._idle.append(prefer)
        while self._idle:
            link = self._idle.pop()
            if link.is_open:
                return link
            self._count -= 1
        return None

    async def _wait(self, deadline: float) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout_at(deadline):
                await waiter
        except BaseException as error:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif not waiter.cancelled():
                # It had been woken already: wake the next.
                self._wake()
            if isinstance(error, TimeoutError):
                raise EngineFailed("all connections to the node are in use") from None
            raise

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def release(self, link: Link) -> None:
        if link.is_worth_keeping and not self._is_closed:
            self._is_unreachable = False
            self._idle.append(link)
            loop = asyncio.get_running_loop()
            link.idle_since = loop.time()
            if self._idle_timer is None:
                self._idle_timer = loop.call_later(IDLE_SECONDS_MAX, self._end_idle)
        else:
            link.connection.terminate()
            self._count -= 1
        self._wake()

    def _end_idle(self) -> None:
        """Close connections that have been idle too long, except the last used one, which the next call gets."""
        loop = asyncio.get_running_loop()
        overdue = loop.time() - IDLE_SECONDS_MAX
        for link in self._idle[:-1]:
            if link.idle_since <= overdue:
                self._idle.remove(link)
                link.connection.terminate()
                self._count -= 1
                self._wake()
        more = len(self._idle) > 1
        self._idle_timer = loop.call_later(IDLE_SECONDS_MAX / 4, self._end_idle) if more else None

    def suspect(self) -> None:
        """Close the idle connections after one was lost: they are probably lost too, and each would be noticed only
        after a timeout of its own."""
        for link in self._idle:
            link.connection.terminate()

    async def _open(self, deadline: float) -> Link:
        loop = asyncio.get_running_loop()
        problem: Exception | None = None
        try:
            async with asyncio.timeout_at(deadline), self._opening:
                while not self._is_closed:
                    # While others connected, or the server accepted no more, a connection may have become free.
                    idle = self._take_idle(None)
                    if idle is not None:
                        self._count -= 1
                        return idle
                    try:
                        link = await self._try_hosts(deadline - loop.time())
                    except Exception as error:
                        problem = error
                    else:
                        self._back_off_seconds = BACK_OFF_SECONDS_FIRST
                        self.opened += 1
                        return link
                    if not self._primary or (len(self.hosts.addresses) == 1 and is_hopeless(problem)):
                        break
                    await asyncio.sleep(self._back_off_seconds * random.uniform(0.5, 1.0))
                    self._back_off_seconds = min(self._back_off_seconds * 2, BACK_OFF_SECONDS_MAX)
        except TimeoutError:
            self._is_unreachable = True
        raise EngineFailed(f"the node cannot be reached: {message_of(problem)}")

    async def _try_hosts(self, seconds_left: float) -> Link:
        """Try the most likely host first; if it is not the right one, try all others at once."""
        seconds = min(self.timeouts.connect_seconds, max(seconds_left, 0.01))
        first, *others = self.hosts.addresses if self._primary else self.hosts.addresses[::-1]
        if self._primary and others and not self.hosts.timeline:
            return await self._try_all_hosts(seconds)
        try:
            return await self._try_host(first, seconds)
        except Exception as error:
            if not others:
                raise
            problem: BaseException = error
        tasks = {asyncio.create_task(self._try_host(address, seconds)): address for address in others}
        chosen: asyncio.Task[Link] | None = None
        try:
            waiting = set(tasks)
            while waiting and chosen is None:
                finished, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    problem = task.exception() or problem
                    if task.exception() is None:
                        chosen = task
        finally:
            for task in tasks.keys() - {chosen}:
                task.add_done_callback(_end)
        if chosen is None:
            raise problem
        if self._primary:
            self.hosts.prefer(tasks[chosen])
        return chosen.result()

    async def _try_all_hosts(self, seconds: float) -> Link:
        """Connect for the first time: several hosts may claim to be the primary, and the last promoted one is."""
        addresses = list(self.hosts.addresses)
        found = await asyncio.gather(
            *(self._try_host(address, seconds) for address in addresses), return_exceptions=True
        )
        links = {address: link for address, link in zip(addresses, found, strict=True) if isinstance(link, Link)}
        if not links:
            raise next(problem for problem in found if isinstance(problem, BaseException))
        newest = max(links, key=lambda address: links[address].timeline)
        for address in links.keys() - {newest}:
            links[address].connection.terminate()
        self.hosts.prefer(newest)
        return links[newest]

    async def _try_host(self, address: str, seconds: float) -> Link:
        link = await connect(address, seconds, self)
        if link.is_primary != self._primary:
            link.connection.terminate()
            raise EngineFailed("the host is a standby" if self._primary else "the host is not a standby")
        if self._primary and link.timeline < self.hosts.timeline:
            link.connection.terminate()
            raise EngineFailed("the host is a primary that has been replaced")
        self.hosts.timeline = max(self.hosts.timeline, link.timeline)
        return link

    async def close(self) -> None:
        self._is_closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        links, self._idle = self._idle, []
        for link in links:
            try:
                await link.connection.close(timeout=1)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                link.connection.terminate()


def _end(task: asyncio.Task[Link]) -> None:
    """Close the connection to a host that answered after another had been chosen."""
    if not task.cancelled() and task.exception() is None:
        task.result().connection.terminate()
