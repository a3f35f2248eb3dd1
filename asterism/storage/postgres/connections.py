"""Connections to a node: opening them, losing them, and what the database's errors mean."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from asterism.storage.contract import EngineFailed, OutOfSpace, StorageRefusal

# Index lookups are all we ever want: a plan that was made while a table was empty must not stay with it. Timeouts of
# the server's own would end the wait for a standby, and a commit that stopped waiting looks like a success.
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
# A database or a role may have been set to answer before a commit is on disk; stronger settings than "on" stay.
PREPARE_SESSION = """
SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END
"""
# How often this server, or the one it was copied from, has become a primary. Asked only of nodes with several hosts.
READ_TIMELINE = """
SELECT CASE WHEN pg_is_in_recovery() THEN 0
    ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer END
"""
# A node of a large fleet has hundreds of partitions, with about four statements each.
STATEMENTS_CACHED = 1024
# How long a connection may be without use before it is ended: a server has room for so many, and others may need it.
IDLE_SECONDS_MAX = 10.0
# The server keeps some 300 KB for every partition that a connection has written to, for as long as it is open.
PARTITIONS_WRITTEN_MAX = 256
BACK_OFF_SECONDS_FIRST = 0.05
BACK_OFF_SECONDS_MAX = 1.0
SECONDS_MIN = 0.5

# Servers that are going down, coming up or have become a standby: another connection may do better.
GONE_STATES = ("08", "57P", "25006")
FULL_STATES = ("53100", "53200", "54000")
# The address, the role, its password or the database is wrong: no waiting mends that.
HOPELESS_STATES = ("28", "3D000", "42704")
# The transaction was undone for a reason that has passed when it is tried again.
PASSING_STATES = ("40", "55P03", "53300")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long things may take. `total_seconds` bounds every call; the others bound its parts."""

    connect_seconds: float = 3.0
    read_seconds: float = 5.0
    # A commit may have to wait for a standby.
    commit_seconds: float = 10.0
    total_seconds: float = 15.0

    @property
    def seconds_when_away(self) -> float:
        """Instead of `total_seconds` once a node has let those pass: who waited behind another has waited already."""
        return self.total_seconds / 3


@dataclass(slots=True)
class Hosts:
    """The hosts of a node, the one that was the primary last time first. All pools of an engine share them.

    A primary that was replaced and has come back still takes itself for one; its timeline is lower than that of the
    standby that took its place, and it is passed over.
    """

    addresses: list[str]
    timeline: int = field(default=0)

    def prefer(self, address: str) -> None:
        self.addresses.remove(address)
        self.addresses.insert(0, address)


class ConnectionLost(Exception):
    """A connection ended, or was given up, while something was asked of it; whether that was done is not known."""


class TryAgain(Exception):
    """The database undid what was asked, for a reason that passes."""


def is_lost(error: BaseException) -> bool:
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(GONE_STATES)
    return isinstance(error, OSError | EOFError | TimeoutError | asyncpg.InterfaceError)


def in_words(error: BaseException | None) -> str:
    """A connection that was given up has nothing to say for itself."""
    return str(error or "") or "no answer in time"


def seconds_until(deadline: float, seconds_max: float) -> float:
    """How long a part of a call may take that began late: never so short that it cannot be done."""
    return min(seconds_max, max(deadline - asyncio.get_running_loop().time(), SECONDS_MIN))


def is_hopeless(error: Exception) -> bool:
    """Of an attempt to connect."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(HOPELESS_STATES)
    return isinstance(error, ValueError)


def translate(error: Exception) -> StorageRefusal:
    """The refusal that an error of the database means, if it was not the connection that failed."""
    if isinstance(error, StorageRefusal):
        return error
    if isinstance(error, asyncpg.PostgresError) and (error.sqlstate or "").startswith(FULL_STATES):
        return OutOfSpace(str(error))
    return EngineFailed(f"{type(error).__name__}: {error}")


class Link:
    """One connection. Everything that is sent to a database passes `ask`."""

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
        """The first row of the answer, within a time. A connection that lets it pass is ended, without the request to
        cancel that the driver would send: cancelling a commit that waits for a standby makes it succeed too early."""
        connection = self.connection
        self.pool.statements += 1
        alarm = asyncio.get_running_loop().call_later(seconds, connection.terminate)
        try:
            return await connection.fetchrow(statement, *arguments)
        except asyncio.CancelledError:
            # The answer may still come, and nobody would take it.
            connection.terminate()
            raise
        except Exception as error:
            if connection.is_closed() or is_lost(error):
                connection.terminate()
                raise ConnectionLost(str(error)) from error
            if isinstance(error, asyncpg.PostgresError) and (error.sqlstate or "").startswith(PASSING_STATES):
                raise TryAgain(str(error)) from error
            raise
        finally:
            alarm.cancel()

    async def run(self, seconds: float, script: str) -> None:
        """Statements without arguments or answers, in one transaction unless they say otherwise."""
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
    """A connection to one host, be it a primary or a standby."""
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
    """At most `size` connections to the primary of a node, or to its standbys, opened when they are needed."""

    def __init__(self, hosts: Hosts, patience: Patience, *, size: int, primary: bool = True) -> None:
        self.hosts = hosts
        self.patience = patience
        self._size = size
        self._primary = primary
        self._idle: list[Link] = []
        self._count = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._opening = asyncio.Lock()
        self._back_off_seconds = BACK_OFF_SECONDS_FIRST
        self._is_closed = False
        self._looking_at_idle: asyncio.TimerHandle | None = None
        # Whether the node was not to be reached when it was last tried, for as long as patience goes.
        self._is_away = False
        # Statements sent so far, each a round trip: what the tests count.
        self.statements = 0
        self.opened = 0

    def deadline(self) -> float:
        """When to give up what begins now, as a time of the event loop."""
        patience = self.patience
        seconds = patience.seconds_when_away if self._is_away else patience.total_seconds
        return asyncio.get_running_loop().time() + seconds

    def check_time(self, deadline: float, error: Exception) -> None:
        if asyncio.get_running_loop().time() >= deadline:
            self._is_away = True
            raise EngineFailed(f"the node does not answer: {in_words(error)}") from error

    def is_overdue(self, since: float) -> bool:
        """Whether something that has waited since then has no time left for another attempt at a node that is away."""
        if not self._is_away:
            return False
        waited_seconds = asyncio.get_running_loop().time() - since
        return waited_seconds > self.patience.total_seconds - self.patience.seconds_when_away

    @property
    def is_away(self) -> bool:
        return self._is_away

    async def acquire(self, deadline: float, prefer: Link | None = None) -> Link:
        """A connection that is open as far as can be told; `EngineFailed` when there is none until `deadline` (a time
        of the event loop)."""
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
                # It was this one's turn, and now it is another's.
                self._wake()
            if isinstance(error, TimeoutError):
                raise EngineFailed("every connection to the node is in use") from None
            raise

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def release(self, link: Link) -> None:
        if link.is_worth_keeping and not self._is_closed:
            self._is_away = False
            self._idle.append(link)
            loop = asyncio.get_running_loop()
            link.idle_since = loop.time()
            if self._looking_at_idle is None:
                self._looking_at_idle = loop.call_later(IDLE_SECONDS_MAX, self._end_idle)
        else:
            link.connection.terminate()
            self._count -= 1
        self._wake()

    def _end_idle(self) -> None:
        """The one that was used last stays, for whoever comes next."""
        loop = asyncio.get_running_loop()
        overdue = loop.time() - IDLE_SECONDS_MAX
        for link in self._idle[:-1]:
            if link.idle_since <= overdue:
                self._idle.remove(link)
                link.connection.terminate()
                self._count -= 1
                self._wake()
        more = len(self._idle) > 1
        self._looking_at_idle = loop.call_later(IDLE_SECONDS_MAX / 4, self._end_idle) if more else None

    def suspect(self) -> None:
        """One connection fell silent: those that nobody uses are probably no better, and each would be found out only
        after a time of its own."""
        for link in self._idle:
            link.connection.terminate()

    async def _open(self, deadline: float) -> Link:
        loop = asyncio.get_running_loop()
        problem: Exception | None = None
        try:
            async with asyncio.timeout_at(deadline), self._opening:
                while not self._is_closed:
                    # While others opened theirs, or the server took no more, one may have become free.
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
            self._is_away = True
        raise EngineFailed(f"the node cannot be reached: {in_words(problem)}")

    async def _try_hosts(self, seconds_left: float) -> Link:
        """The host that is most likely comes first; if it is not the right one, all others are asked at once."""
        seconds = min(self.patience.connect_seconds, max(seconds_left, 0.01))
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
        """The first time, several may take themselves for the primary: the one that became it last is right."""
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
            raise EngineFailed("the host is a standby" if self._primary else "the host is no standby")
        if self._primary and link.timeline < self.hosts.timeline:
            link.connection.terminate()
            raise EngineFailed("the host is a primary that has been replaced")
        self.hosts.timeline = max(self.hosts.timeline, link.timeline)
        return link

    async def close(self) -> None:
        self._is_closed = True
        if self._looking_at_idle is not None:
            self._looking_at_idle.cancel()
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
    """A host that answered after another had been chosen."""
    if not task.cancelled() and task.exception() is None:
        task.result().connection.terminate()
