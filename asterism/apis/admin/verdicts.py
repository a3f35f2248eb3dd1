"""The facts for a verdict on a partition key, gathered from sizes, usage and history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from asterism.advisor.verdict import GrowingKey, KeyPart, PartitionFacts, Surroundings, judge
from asterism.advisor.wording import key_text
from asterism.apis.admin.logical_partitions import KeyNames, Survey
from asterism.apis.admin.recent_usage import RangeUse, RecentUse, recent_use
from asterism.apis.admin.services import AdminServices
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.statistics import Size
from asterism.metrics import PartitionUsage
from asterism.partitioning.load_split import SAMPLES_MIN, picture_of
from asterism.partitioning.partition_map import PartitionRange

# The load that a verdict is about: long enough for a steady picture, short enough to be the present one.
WINDOW_SECONDS: Final = 300.0
# The peak is the busiest half minute: of shorter times single large requests would be the peak.
_STEPS: Final = 10
# Growing keys that are named.
_GROWING_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class MeasuredPartition:
    """A partition as it was found for a request; without a size its node is unreachable, without a survey its logical
    partitions were not looked at."""

    range: PartitionRange
    size: Size | None
    usage: PartitionUsage
    survey: Survey | None


async def show_verdict(
    services: AdminServices, keyspace: Keyspace, measured: Sequence[MeasuredPartition], names: KeyNames
) -> dict[str, Any]:
    paths = keyspace.record.definition.paths

    async def name_of(effective_key: bytes) -> str:
        named = await names.of(effective_key)
        values = named.get("partition_key")
        return f"with the hash {named['effective_key']}" if values is None else key_text(paths, values)

    recent = recent_use(services, keyspace, seconds=WINDOW_SECONDS, steps_max=_STEPS)
    facts = []
    for partition in measured:
        largest = partition.survey.largest[:1] if partition.survey is not None else []
        use = _load_of(partition, recent)
        hot = _hottest(partition.usage)
        facts.append(
            PartitionFacts(
                str(partition.range.id),
                None if partition.size is None else partition.size.bytes,
                None if partition.size is None else partition.size.items,
                use.request_units,
                use.throttled,
                None if recent is None else use.peak_ru_per_second,
                KeyPart(await name_of(largest[0].effective_key), largest[0].size.bytes) if largest else None,
                KeyPart(await name_of(hot[0]), hot[1] * use.request_units) if hot and use.request_units else None,
            )
        )
    growing = [
        GrowingKey(await name_of(growth.effective_key), growth.bytes, growth.bytes_per_second)
        for growth in services.history.growing_keys(keyspace)[:_GROWING_MAX]
    ]
    verdict = judge(facts, growing=growing, surroundings=_surroundings(services, keyspace))
    return asdict(verdict)


def logical_bytes_max(services: AdminServices, keyspace: Keyspace) -> int | None:
    """Return the limit of a logical partition; None for storage tables, which have no such limit."""
    definition, limits = keyspace.record.definition, services.limits
    if definition.is_ordered:
        return None
    return limits.fixed_container_bytes_max if definition.system_key else limits.logical_partition_bytes_max


def _surroundings(services: AdminServices, keyspace: Keyspace) -> Surroundings:
    kind = services.kind_of(keyspace)
    return Surroundings(
        noun="keyspace" if kind is None else kind.noun,
        logical_bytes_max=logical_bytes_max(services, keyspace),
        ru_share=services.admission.share_of(keyspace),
    )


def _load_of(partition: MeasuredPartition, recent: RecentUse | None) -> RangeUse:
    """Return the load of a partition: the recent one or, without a history, all since the start."""
    if recent is None:
        return RangeUse(partition.usage.request_units, partition.usage.throttled)
    return recent.by_range.get(partition.range.id) or RangeUse()


def _hottest(usage: PartitionUsage) -> tuple[bytes, float] | None:
    """Return the hottest key among the last requests, and its share of them."""
    picture = picture_of(tuple(usage.recent))
    if picture.hottest_key is None or picture.samples < SAMPLES_MIN:
        return None
    return picture.hottest_key, picture.hottest_share
