"""The nodes of hubs that links attach to, and requests to them."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Final

from asterism.apis.amqp.errors import ARGUMENT_ERROR, words
from asterism.apis.amqp.hubs.addresses import (
    ReceiveAddress,
    hub_of,
    parse_receive_address,
    parse_send_address,
    partition_number,
)
from asterism.apis.amqp.hubs.intake import HubIntake, deleted_hub, disabled_hub, unwritable
from asterism.apis.amqp.hubs.management import answer, no_partition
from asterism.apis.amqp.hubs.outlet import HubOutlet
from asterism.apis.amqp.hubs.selectors import place_of
from asterism.apis.amqp.nodes import (
    LINK_STOLEN,
    NOT_FOUND,
    RESOURCE_LIMIT,
    AmqpError,
    Attach,
    AttachReply,
    NodeReply,
    NodeRequest,
    OutgoingLink,
    Right,
)
from asterism.errors import AsterismError
from asterism.models.event_logs.events import BehindEnd
from asterism.models.event_logs.hub import Hub
from asterism.models.event_logs.log import LogReader
from asterism.models.event_logs.receivers import Receiver, ReceiverRefused
from asterism.models.event_logs.store import EventLogStore

EPOCH: Final = "com.microsoft:epoch"
GEOREPLICATION: Final = "com.microsoft:georeplication"
RUNTIME_METRIC: Final = "com.microsoft:enable-receiver-runtime-metric"
_OFFERED: Final = (GEOREPLICATION, RUNTIME_METRIC)

_CONDITION_OF_REFUSAL: Final[Mapping[ReceiverRefused, str]] = {
    ReceiverRefused.EPOCH_TOO_LOW: LINK_STOLEN,
    ReceiverRefused.TOO_MANY: RESOURCE_LIMIT,
}


class HubNodes:
    """Everything about hubs that a client can attach to. One per process."""

    def __init__(self, store: EventLogStore) -> None:
        self.store = store

    def owns(self, namespace: str, path: str) -> bool:
        """Return whether the first segment of a path is a hub that this process knows."""
        return self.store.find(namespace, hub_of(path)) is not None

    def answer(self, request: NodeRequest) -> Awaitable[NodeReply]:
        """Answer a request to `$management`."""
        return answer(self.store, request)

    # --- links on which clients send ----------------------------------------------------------------------------------

    async def open_intake(self, attach: Attach) -> HubIntake:
        address = parse_send_address(attach.address)
        if address is None:
            raise AmqpError(NOT_FOUND, f"Events are sent to a hub or to one of its partitions, not '{attach.address}'.")
        attach.peer.require(attach.address, Right.SEND)
        hub = await self._hub(attach, address.hub)
        error = unwritable(hub)
        if error is not None:
            raise error
        partition = None
        if address.partition is not None:
            partition = partition_number(address.partition, hub.partition_count)
            if partition is None:
                raise no_partition(hub, address.partition)

        def changed() -> None:
            error = unwritable(hub)
            if error is not None:
                attach.end(error)

        return HubIntake(hub, partition, on_closed=hub.watch(changed))

    async def _hub(self, attach: Attach, name: str) -> Hub:
        try:
            hub = await self.store.find_newest(attach.peer.namespace, name)
        except AsterismError as problem:
            raise words(problem) from problem
        if hub is None:
            raise AmqpError(NOT_FOUND, f"There is no hub '{name}' in the namespace '{attach.peer.namespace}'.")
        return hub

    # --- links on which clients receive -------------------------------------------------------------------------------

    async def open_outlet(self, attach: Attach, link: OutgoingLink) -> HubOutlet:
        address = parse_receive_address(attach.address)
        if address is None:
            raise AmqpError(
                NOT_FOUND,
                "Events are received from 'hub/ConsumerGroups/{group}/Partitions/{id}', "
                f"not from '{attach.address}'.",
            )
        attach.peer.require(attach.address, Right.LISTEN)
        hub = await self._hub(attach, address.hub)
        error = unreadable(hub, address.group)
        if error is not None:
            raise error
        partition = partition_number(address.partition, hub.partition_count)
        if partition is None:
            raise no_partition(hub, address.partition)
        try:
            return await self._outlet(attach, link, hub, address, partition)
        except AsterismError as problem:
            raise words(problem) from problem

    async def _outlet(
        self, attach: Attach, link: OutgoingLink, hub: Hub, address: ReceiveAddress, partition: int
    ) -> HubOutlet:
        place, epoch = place_of(attach.filters), _epoch_of(attach.properties)
        log = hub.log(partition)
        start = await log.find(place)
        if isinstance(start, BehindEnd):
            raise AmqpError(
                ARGUMENT_ERROR,
                f"The receiver would begin behind the end of partition {partition}, whose next sequence number is "
                f"{start.next_sequence}. Check that its checkpoint is of this hub.",
            )
        opened: list[HubOutlet] = []

        def replaced() -> None:
            for outlet in opened:
                outlet.end(AmqpError(LINK_STOLEN, "A receiver with a higher epoch has taken the partition."))

        joined = await self.store.receivers.join(hub, partition, address.group, epoch, replaced)
        if isinstance(joined, ReceiverRefused):
            raise AmqpError(_CONDITION_OF_REFUSAL[joined], joined.value)
        # The hub or the group may have gone meanwhile, and nothing would tell the link of it any more.
        error = unreadable(hub, address.group)
        if error is not None:
            self.store.receivers.leave(joined)
            raise error
        outlet = self._joined_outlet(attach, link, hub, address.group, log.reader(start), joined)
        opened.append(outlet)
        return outlet

    def _joined_outlet(
        self, attach: Attach, link: OutgoingLink, hub: Hub, group: str, reader: LogReader, receiver: Receiver
    ) -> HubOutlet:
        def changed() -> None:
            error = unreadable(hub, group)
            if error is not None:
                outlet.end(error)

        unwatch = hub.watch(changed)

        def on_closed() -> None:
            unwatch()
            self.store.receivers.leave(receiver)

        wished = [capability for capability in _OFFERED if capability in attach.desired_capabilities]
        outlet = HubOutlet(
            link,
            reader,
            AttachReply(offered_capabilities=wished),
            is_presettled=attach.is_presettled,
            has_metrics=RUNTIME_METRIC in wished,
            now_ms=self.store.services.now_ms,
            on_closed=on_closed,
        )
        return outlet


def unreadable(hub: Hub, group: str) -> AmqpError | None:
    """Return why a group cannot read a hub at present; None if it can."""
    if hub.is_deleted:
        return deleted_hub(hub)
    if not hub.description.gives_events:
        return disabled_hub(hub)
    if hub.description.group(group) is None:
        return AmqpError(NOT_FOUND, f"The hub '{hub.name}' has no consumer group '{group}'.")
    return None


def _epoch_of(properties: Mapping[str, Any]) -> int | None:
    epoch = properties.get(EPOCH)
    if epoch is None:
        return None
    is_number = isinstance(epoch, int) and not isinstance(epoch, bool)
    if not is_number or not -(2**63) <= epoch < 2**63:
        raise AmqpError(ARGUMENT_ERROR, "The epoch of a receiver is a whole number of 64 bits.")
    return int(epoch)
