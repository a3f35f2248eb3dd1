"""The nodes of Service Bus: queues, topics and subscriptions behind links and requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.bus.addresses import BusAddress, managed_path, parse_address
from asterism.apis.amqp.bus.incoming import MessageReader
from asterism.apis.amqp.bus.limits import BusLimits
from asterism.apis.amqp.bus.link_registry import LinkRegistry, RegisteredLink
from asterism.apis.amqp.bus.management.operations import Managed, answer_request, refusal_reply
from asterism.apis.amqp.bus.receiver import Receiver
from asterism.apis.amqp.bus.sender import Sender
from asterism.apis.amqp.bus.sessions import accept, check_kind, lock_lost, reply_of
from asterism.apis.amqp.bus.transactions import Coordinator, TransactionBook
from asterism.apis.amqp.errors import ENTITY_DISABLED, NOT_IMPLEMENTED, words
from asterism.apis.amqp.nodes import (
    NOT_ALLOWED,
    NOT_FOUND,
    AmqpError,
    Attach,
    AttachReply,
    Intake,
    NodeReply,
    NodeRequest,
    OutgoingLink,
    Outlet,
    Right,
)
from asterism.errors import AsterismError
from asterism.models.messages.messages import SubQueue

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel
    from asterism.models.messages.entity import Entity
    from asterism.models.messages.store import MessageStore

_LOG = logging.getLogger(__name__)

# Asks that messages go to another entity by way of this one, in a transaction over both.
_TRANSFER_DESTINATION: Final = "com.microsoft:transfer-destination-address"
_CLOSED_TO_SENDERS: Final = frozenset(("Disabled", "SendDisabled"))
_CLOSED_TO_RECEIVERS: Final = frozenset(("Disabled", "ReceiveDisabled"))


class BusNodes:
    """Everything of Service Bus that a client can attach to. One per process."""

    def __init__(self, store: MessageStore, limits: BusLimits, random_bytes: Callable[[int], bytes]) -> None:
        self.store = store
        self._limits = limits
        self._reader = MessageReader(limits, random_bytes)
        self._links = LinkRegistry(limits.receivers_per_entity_max)
        self._work: set[asyncio.Task[None]] = set()
        store.deletion_listeners.append(self._entity_changed)
        store.change_listeners.append(self._entity_changed)

    # --- addresses --------------------------------------------------------------------------------------------------

    def owns(self, namespace: str, path: str) -> bool:
        """Return whether a path is of a queue or topic that exists, or of a part of one."""
        return self.store.find(namespace, self._address(namespace, path).entity) is not None

    def exists(self, namespace: str, path: str) -> bool:
        """The same, and the subscription exists too if the path names one."""
        address = self._address(namespace, path)
        entity = self.store.find(namespace, address.entity)
        if entity is None:
            return False
        return address.subscription is None or _has_subscription(entity, address.subscription)

    # --- links ------------------------------------------------------------------------------------------------------

    async def open_intake(self, attach: Attach) -> Intake:
        namespace, address = attach.peer.namespace, self._address(attach.peer.namespace, attach.address)
        attach.peer.require(attach.address, Right.SEND)
        if address.subscription is not None or address.sub_queue is not SubQueue.MAIN:
            raise AmqpError(NOT_ALLOWED, "Messages are sent to queues and topics, not to subscriptions or sub-queues.")
        if _TRANSFER_DESTINATION in attach.properties:
            raise AmqpError(
                NOT_IMPLEMENTED, "Transactions over several entities are not there. Send to the destination itself."
            )
        entity = self._entity(namespace, address.entity)
        if entity.description.status in _CLOSED_TO_SENDERS:
            raise _disabled(entity)
        book = TransactionBook.of(attach.peer, self._limits)
        sender = Sender(entity, self._reader, book, on_closed=lambda: self._links.remove(link))
        link = RegisteredLink(namespace, address.entity, None, False, attach.end)
        self._links.add(link)
        return sender

    async def open_coordinator(self, attach: Attach) -> Intake:
        return Coordinator(TransactionBook.of(attach.peer, self._limits))

    async def open_outlet(self, attach: Attach, link: OutgoingLink) -> Outlet:
        namespace, address = attach.peer.namespace, self._address(attach.peer.namespace, attach.address)
        attach.peer.require(attach.address, Right.LISTEN)
        entity = self._entity(namespace, address.entity)
        channel = self._channel(entity, address)
        place = RegisteredLink(namespace, address.entity, address.subscription, True, link.detach)
        try:
            channel.check_receivable()
            check_kind(attach, channel)
            self._links.add(place)
            return await self._receiver(attach, link, channel, place)
        except BaseException as error:
            self._links.remove(place)
            if isinstance(error, AsterismError):
                raise words(error) from error
            raise

    async def _receiver(self, attach: Attach, link: OutgoingLink, channel: Channel, place: RegisteredLink) -> Receiver:
        hold = await accept(attach, channel, self._limits) if channel.requires_session else None
        receiver = Receiver(
            link,
            channel,
            TransactionBook.of(attach.peer, self._limits),
            locks=not attach.is_presettled,
            hold=hold,
            reply=AttachReply() if hold is None else reply_of(hold),
            background=self._in_background,
            on_closed=lambda: self._links.remove(place),
        )
        place.end = receiver.end
        if hold is not None:
            hold.on_lost = lambda: receiver.end(lock_lost())
        return receiver

    # --- requests ---------------------------------------------------------------------------------------------------

    async def answer(self, request: NodeRequest) -> NodeReply:
        """Answer a request to the `$management` node of an entity."""
        try:
            namespace = request.peer.namespace
            address = self._address(namespace, managed_path(request.address))
            entity = self._entity(namespace, address.entity)
            channel = None if _is_only_for_senders(entity, address) else self._channel(entity, address)
            managed = Managed(self.store, self._reader, self._limits, entity, channel, address)
            return await answer_request(managed, request)
        except AmqpError as error:
            return refusal_reply(error)
        except AsterismError as error:
            return refusal_reply(words(error))

    # --- helpers ----------------------------------------------------------------------------------------------------

    def _address(self, namespace: str, path: str) -> BusAddress:
        return parse_address(path, lambda name: self.store.find(namespace, name) is not None)

    def _entity(self, namespace: str, name: str) -> Entity:
        entity = self.store.find(namespace, name)
        if entity is None:
            raise AmqpError(NOT_FOUND, f"The messaging entity {name!r} could not be found.")
        return entity

    def _channel(self, entity: Entity, address: BusAddress) -> Channel:
        if _is_only_for_senders(entity, address):
            raise AmqpError(NOT_ALLOWED, f"{entity.name} is a topic: messages are received from its subscriptions.")
        try:
            return entity.channel(address.subscription, address.sub_queue)
        except AsterismError as error:
            raise words(error) from error

    def _entity_changed(self, namespace: str, name: str, subscription: str | None) -> None:
        """End the links of an entity that is gone, or that its new status is closed to."""
        links = self._links.links_of(namespace, name)
        if not links:
            return
        entity = self.store.find(namespace, name)
        for link in links:
            if subscription is not None and (link.subscription or "").lower() != subscription.lower():
                continue
            error = _end_of(link, entity)
            if error is not None:
                link.end(error)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Carry out work that its link does not wait for."""
        task = asyncio.create_task(_logged(work))
        self._work.add(task)
        task.add_done_callback(self._work.discard)


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except AsterismError:
        # The lock ends by itself.
        _LOG.debug("a lock could not be given back", exc_info=True)


def _end_of(link: RegisteredLink, entity: Entity | None) -> AmqpError | None:
    """Return why a link has to end, or None."""
    if entity is None or (link.subscription is not None and not _has_subscription(entity, link.subscription)):
        return AmqpError(NOT_FOUND, f"The messaging entity {link.entity!r} has been deleted.")
    if not link.is_receiver:
        return _disabled(entity) if entity.description.status in _CLOSED_TO_SENDERS else None
    address = BusAddress(link.entity, link.subscription)
    return _disabled(entity) if _receiving_status(entity, address) in _CLOSED_TO_RECEIVERS else None


def _receiving_status(entity: Entity, address: BusAddress) -> str:
    """Return the status that decides about receivers: that of the subscription, unless its topic is disabled."""
    status: str = entity.description.status
    if address.subscription is None or status == "Disabled":
        return status
    found = entity.topic.find(address.subscription)
    return status if found is None else str(found.status)


def _has_subscription(entity: Entity, name: str) -> bool:
    return entity.kind == "topic" and entity.topic.find(name) is not None


def _is_only_for_senders(entity: Entity, address: BusAddress) -> bool:
    return entity.kind == "topic" and address.subscription is None


def _disabled(entity: Entity) -> AmqpError:
    return AmqpError(ENTITY_DISABLED, f"{entity.name} is disabled for this operation. Change its status to use it.")
