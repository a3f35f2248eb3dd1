"""The values of an entity that are counted or calculated rather than set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asterism.apis.amqp.administration.durations import write_moment
from asterism.apis.amqp.administration.validation import AnyDescription, filter_counts
from asterism.models.messages.descriptions import TopicDescription
from asterism.models.messages.messages import Counts, FragmentState, SubQueue

if TYPE_CHECKING:
    from asterism.models.messages.entity import Entity

_NONE = Counts()


@dataclass(frozen=True, slots=True)
class EntityRuntime:
    """The messages of a queue, a subscription, or a topic with all its subscriptions."""

    # By sub-queue.
    counts: dict[SubQueue, Counts] = field(default_factory=dict)
    bytes_used: int = 0
    # All fragments of the entity answer.
    is_whole: bool = True

    def of(self, sub_queue: SubQueue) -> Counts:
        return self.counts.get(sub_queue, _NONE)

    @property
    def message_count(self) -> int:
        return sum(counts.active + counts.deferred + counts.scheduled for counts in self.counts.values())

    def count_details(self) -> dict[str, int]:
        main, dead, transfer = (self.of(sub_queue) for sub_queue in SubQueue)
        return {
            "ActiveMessageCount": main.active,
            "DeadLetterMessageCount": dead.active + dead.deferred,
            "ScheduledMessageCount": main.scheduled,
            "TransferDeadLetterMessageCount": transfer.active + transfer.deferred,
            "TransferMessageCount": 0,
        }

    def values(self, description: AnyDescription) -> dict[str, Any]:
        """Return the values of properties without a field, by name."""
        values: dict[str, Any] = {
            "SizeInBytes": self.bytes_used,
            "MessageCount": self.message_count,
            "IsAnonymousAccessible": False,
            "CreatedAt": write_moment(description.created_ms),
            "UpdatedAt": write_moment(description.updated_ms),
            "AccessedAt": write_moment(description.updated_ms),
            "SupportOrdering": not getattr(description, "is_partitioned", False),
            "EntityAvailabilityStatus": "Available" if self.is_whole else "Limited",
        }
        if isinstance(description, TopicDescription):
            sql, correlation = filter_counts(description.subscriptions.values())
            values |= {
                "SubscriptionCount": len(description.subscriptions),
                "SqlFilterCount": sql,
                "CorrelationFilterCount": correlation,
                "EnableSubscriptionPartitioning": False,
            }
        return values


async def runtime_of(entity: Entity) -> EntityRuntime:
    """Count the messages of a queue; of a topic only those that its subscriptions do not have yet."""
    return (await runtimes_of(entity)).get(0, EntityRuntime())


async def runtimes_of(entity: Entity) -> dict[int, EntityRuntime]:
    """Count the messages by the number of the subscription; number 0 is the queue, or the topic itself, whose bytes
    include those of its subscriptions."""
    counts = await entity.counts()
    is_whole = all(fragment.state is FragmentState.UP for fragment in await entity.fragments())
    by_number: dict[int, dict[SubQueue, Counts]] = {0: {}}
    for (number, sub_queue), count in counts.items():
        by_number.setdefault(number, {})[SubQueue(sub_queue)] = count
    all_bytes = sum(count.bytes for count in counts.values())
    return {
        number: EntityRuntime(
            of_number, all_bytes if number == 0 else sum(count.bytes for count in of_number.values()), is_whole
        )
        for number, of_number in by_number.items()
    }
