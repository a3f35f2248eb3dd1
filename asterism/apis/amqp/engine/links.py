"""The life of a link: opened by a node, worked for in the background, and ended by either side."""

from __future__ import annotations

import abc
import asyncio
from typing import TYPE_CHECKING

from asterism.apis.amqp.engine.attach import AttachFields
from asterism.apis.amqp.engine.outcomes import described_error
from asterism.apis.amqp.engine.performatives import Performative
from asterism.apis.amqp.nodes import AmqpError, Attach
from asterism.values.amqp.types import UInt

if TYPE_CHECKING:
    from asterism.apis.amqp.engine.session import Session


class Link(abc.ABC):
    """One link of a session.

    Deliveries or settlements of one read are collected and go to the node by one call; those that come during the call
    form the next. So there is at most one task of a link at any time: it opens the node, or works for it.
    """

    def __init__(self, session: Session, fields: AttachFields, *, is_of_entity: bool) -> None:
        self.session = session
        self.connection = session.connection
        self.fields = fields
        self.handle = fields.handle
        # Not to a node that answers requests.
        self.is_of_entity = is_of_entity
        self.peer = self.connection.peer.of_link()
        # Nothing that the client sends to it counts any more, and nothing is sent.
        self.is_closed = False
        self._is_open = False
        self._is_touched = False
        self._task: asyncio.Task[None] | None = None
        # The client has detached and waits for the answer, which says `closed` as it did.
        self._owes_detach = False
        self._has_closed = False

    @property
    def is_detached(self) -> bool:
        """True if this side has detached, and the client may have taken note of it: its handle may be used again."""
        return self.is_closed and not self._owes_detach

    # --- opening ---

    def request(self) -> Attach:
        """Return the client's request for the link, as nodes see it."""
        return self.fields.for_node(self.peer, self.detach)

    def open(self) -> None:
        self._task = self.connection.spawn(self._open(), is_opening=True)

    async def _open(self) -> None:
        try:
            await self._open_node()
        except Exception as error:
            self._task = None
            self.connection.counters.links_refused += 1
            self.refuse(self.connection.failure_of(error))
            return
        self._task = None
        self._is_open = True
        self.connection.open_links.add(self)
        self.connection.counters.links_opened += 1
        if self.is_of_entity:
            self.connection.note_use()
        try:
            self._agree()
        except Exception as error:
            self.detach(self.connection.failure_of(error))
        # A client may have written much into them, for each of thousands of links.
        self.fields = self.fields.without_content()
        if self._has_work():
            self.start_work()

    def refuse(self, error: AmqpError | None) -> None:
        """Answer the attach by one without a terminus and a detach behind it."""
        self.is_closed = True
        self._drop_work()
        self.session.send(Performative.ATTACH, self.fields.refusal())
        self._send_detach(error)

    # --- working ---

    def touch(self) -> None:
        """Have the work started that has come up, at the end of the read."""
        if not self._is_touched:
            self._is_touched = True
            self.connection.touched.append(self)

    def start_work(self) -> None:
        self._is_touched = False
        if self._is_open and self._task is None:
            self._task = self.connection.spawn(self._work())

    async def _work(self) -> None:
        try:
            while self._has_work():
                await self._work_once()
        finally:
            self._task = None
            if self.is_closed:
                self._finish()

    # --- ending ---

    def detach(self, error: AmqpError | None) -> None:
        """End the link from this side. Work that has begun goes on; what waits is dropped."""
        if self.is_closed:
            return
        self.is_closed = True
        self._client_gone()
        self._drop_work()
        if not self._is_open and self._task is not None:
            self._task.cancel()
            self.session.send(Performative.ATTACH, self.fields.refusal())
            self._task = None
        self._send_detach(error)
        self._wind_up()

    def client_detached(self, *, has_closed: bool) -> None:
        """End the link as the client wishes; it is answered when the work that it gave is done."""
        if self.is_closed:
            # The answer to the detach of this side; but a second one is answered when the work is done.
            if not self._owes_detach:
                self.session.forget(self)
            return
        self.is_closed = True
        if not self._is_open and self._task is not None:
            self._task.cancel()
            self._task = None
            self.refuse(None)
            self.session.forget(self)
            return
        self._owes_detach = True
        self._has_closed = has_closed
        self._client_gone()
        self._wind_up()

    def abandon(self) -> None:
        """End the link without a word, as its session or connection has ended. Work that was given goes on."""
        if not self.is_closed:
            self.is_closed = True
            self._client_gone()
        self._owes_detach = False
        if not self._is_open:
            if self._task is not None:
                self._task.cancel()
                self._task = None
            self._drop_work()
        else:
            self._wind_up()

    def _wind_up(self) -> None:
        """Finish, or have the work finish that is under way or waits."""
        if self._is_open and self._has_work():
            self.start_work()
        elif self._task is None:
            self._finish()

    def _finish(self) -> None:
        """Answer the client and let the node go, once the last work is done."""
        if self._owes_detach:
            self._owes_detach = False
            self.session.send(Performative.DETACH, [UInt(self.handle), self._has_closed, None])
            self.session.forget(self)
        self.let_go()

    def let_go(self) -> None:
        """Tell the node that the link has ended, once."""
        if self._is_open:
            self._is_open = False
            if self.is_of_entity:
                self.connection.note_use()
            self.connection.open_links.discard(self)
            # There is only any if the server waits no longer.
            self._drop_work()
            try:
                self._close_node()
            except Exception as error:
                self.connection.failure_of(error)

    def _send_detach(self, error: AmqpError | None) -> None:
        self.session.send(Performative.DETACH, [UInt(self.handle), True, described_error(error)])

    # --- of the two kinds of links ---

    @abc.abstractmethod
    async def _open_node(self) -> None:
        """Get the node's side of the link; any error refuses the link."""

    @abc.abstractmethod
    def _agree(self) -> None:
        """Send the answer to the attach, and begin."""

    @abc.abstractmethod
    def _has_work(self) -> bool: ...

    @abc.abstractmethod
    async def _work_once(self) -> None:
        """Hand what has been collected to the node. Raises nothing."""

    @abc.abstractmethod
    def _drop_work(self) -> None:
        """Forget what waits for the node."""

    @abc.abstractmethod
    def _client_gone(self) -> None:
        """Called once when nothing can be sent over the link any more, before the last work for its node."""

    @abc.abstractmethod
    def _close_node(self) -> None: ...

    @abc.abstractmethod
    def on_flow(self, *, delivery_count: int | None, credit: int | None, is_draining: bool, wants_echo: bool) -> None:
        """Take a flow of the client in, whose session is up to date."""
