"""Warnings: where the data cannot tell which key is good."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from asterism.advisor.keys.item_profile import PATHS_MAX, ItemProfile
from asterism.advisor.keys.scoring import Workload
from asterism.advisor.wording import about_duration

if TYPE_CHECKING:
    from asterism.advisor.keys.advise import AdviseOptions

_ITEMS_MIN: Final = 1_000
_REQUESTS_MIN: Final = 500
_SPAN_SECONDS_MIN: Final = 600.0


def caveats_of(profile: ItemProfile, workload: Workload, options: AdviseOptions, partitions: int) -> Iterator[str]:
    demands, span_seconds = workload.demands, workload.span_seconds
    if profile.items < _ITEMS_MIN:
        yield f"Only {profile.items:,} items: how evenly a key divides more of them cannot be told."
    if not demands:
        yield "No requests: costs and hot keys are not known, and the order is by the data alone. Give --requests."
    elif workload.requests < _REQUESTS_MIN:
        yield f"Only {workload.requests:,} requests: rare ones may be missing, and shares are rough."
    if demands and span_seconds < _SPAN_SECONDS_MIN:
        yield f"The requests cover {about_duration(span_seconds)}: what differs by hour or day is not seen."
    if options.has_digests:
        yield "The requests have digests of values: roll-ups of their time stamps are taken from the times of requests."
    if demands and options.present is None and not any(demand.access == "query" for demand in demands):
        yield "The present partition key is not known: what reads know beyond the id is not used. Give --present-key."
    if profile.has_more_paths:
        yield f"Items have more than {PATHS_MAX} paths: only the first {PATHS_MAX} were looked at."
    if demands and partitions == 1:
        yield (
            "All of the load fits one physical partition, where an uneven key costs nothing yet. Give --ru to judge at "
            "the throughput that you expect."
        )
