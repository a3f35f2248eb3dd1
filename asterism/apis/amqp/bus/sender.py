"""Links on which clients send to a queue or topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.bus.incoming import MessageReader, Parcel
from asterism.apis.amqp.bus.transactions import TransactionBook
from asterism.apis.amqp.errors import words
from asterism.apis.amqp.nodes import ACCEPTED, AmqpError, AttachReply, Delivery, Outcome, Rejected
from asterism.errors import AsterismError
from asterism.limits import KIB

if TYPE_CHECKING:
    from asterism.models.messages.entity import Entity

BATCH_SIZE_PROPERTY: Final = "com.microsoft:max-message-batch-size"


class Sender:
    """The node's side of a link on which a client sends; an `Intake`.

    The deliveries of one call become durable together where that can be: they share a fragment if the entity has only
    one, or if they have the same key.
    """

    def __init__(
        self,
        entity: Entity,
        reader: MessageReader,
        transactions: TransactionBook,
        *,
        on_closed: Callable[[], None],
    ) -> None:
        self._entity = entity
        self._reader = reader
        self._transactions = transactions
        self._on_closed = on_closed
        self.bytes_max = message_bytes_max(entity)
        self.reply = AttachReply(properties={BATCH_SIZE_PROPERTY: self.bytes_max}, max_message_bytes=self.bytes_max)

    async def take(self, deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        outcomes: list[Outcome] = [ACCEPTED] * len(deliveries)
        parcels: list[tuple[int, Parcel]] = []
        for place, delivery in enumerate(deliveries):
            try:
                parcel = self._reader.read_transfer(delivery.payload, delivery.format, bytes_max=self.bytes_max)
                if delivery.transaction is None:
                    parcels.append((place, parcel))
                else:
                    self._transactions.send(delivery.transaction, self._entity, parcel)
            except AmqpError as error:
                outcomes[place] = Rejected(error)
            except AsterismError as error:
                outcomes[place] = Rejected(words(error))
        if parcels:
            await self._send(parcels, outcomes)
        return outcomes

    def closed(self) -> None:
        self._on_closed()

    async def _send(self, parcels: Sequence[tuple[int, Parcel]], outcomes: list[Outcome]) -> None:
        groups = self._groups(parcels)
        if len(groups) == 1:
            await self._send_group(groups[0], outcomes)
        else:
            async with asyncio.TaskGroup() as tasks:
                for group in groups:
                    tasks.create_task(self._send_group(group, outcomes))

    def _groups(self, parcels: Sequence[tuple[int, Parcel]]) -> list[list[tuple[int, Parcel]]]:
        """Divide parcels into those that may enter in one call of the model, each group in its order."""
        entity = self._entity
        if not entity.is_partitioned:
            return [list(parcels)]
        groups: dict[Any, list[tuple[int, Parcel]]] = {}
        for place, parcel in parcels:
            first = parcel.messages[0]
            key = first.session_id or first.partition_key or parcel.key
            # Without a key, parcels take turns over the fragments.
            groups.setdefault(place if key is None else (key, parcel.key), []).append((place, parcel))
        return list(groups.values())

    async def _send_group(self, group: Sequence[tuple[int, Parcel]], outcomes: list[Outcome]) -> None:
        try:
            if len(group) == 1:
                parcel = group[0][1]
                await self._entity.send(parcel.messages, key=parcel.key)
            else:
                messages = [message for _, parcel in group for message in parcel.messages]
                await self._entity.send(messages, key=group[0][1].key)
        except AsterismError as error:
            if len(group) == 1:
                outcomes[group[0][0]] = Rejected(words(error))
                return
            # One of them may be the reason: each is decided by itself, in the same order.
            for single in group:
                await self._send_group([single], outcomes)


def message_bytes_max(entity: Entity) -> int:
    """Return the size of the largest message and the largest batch that an entity takes."""
    return int(entity.description.max_message_kb) * KIB
