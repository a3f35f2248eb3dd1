"""The order of the candidates, and a sentence why. docs/guides/choosing-a-key.md describes it for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from asterism.advisor.keys.assessment import Assessment
from asterism.advisor.wording import about_share

# Candidates whose needed RU/s differ by less are equal: the prediction is no better.
TIE_SHARE: Final = 0.03
_SIMPLICITY: Final = {"plain": 0, "hierarchical": 1, "synthetic": 2}
# Fewer keys cannot be spread over more partitions later.
_KEYS_MIN: Final = 100
_KEYS_PER_PARTITION: Final = 10
# A difference worth a word.
_NOTABLE: Final = 0.05


def rank(assessments: Sequence[Assessment]) -> list[Assessment]:
    """Return the candidates, best first: those that work, by the RU/s that they need, the simplest of equal ones."""
    has_requests = any(each.routes.routed + each.routes.several + each.routes.fan_out > 0 for each in assessments)
    by_need = sorted(assessments, key=lambda each: (each.severity, _need(each), each.candidate.name))
    ordered: list[Assessment] = []
    start = 0
    while start < len(by_need):
        end = start + 1
        while end < len(by_need) and _is_tie(by_need[start], by_need[end]):
            end += 1
        ordered += sorted(by_need[start:end], key=_among_equals if has_requests else _without_requests)
        start = end
    return [each.with_why(_why(each, ordered[0], has_requests=has_requests)) for each in ordered]


def _need(assessment: Assessment) -> float:
    return assessment.ru_ranked


def _is_tie(first: Assessment, other: Assessment) -> bool:
    if first.severity != other.severity:
        return False
    return _need(first) == _need(other) or _need(other) <= _need(first) * (1 + TIE_SHARE)


def is_narrow(assessment: Assessment) -> bool:
    """Return whether a key has so few values that it cannot spread over many partitions."""
    return assessment.storage.cardinality < max(_KEYS_MIN, _KEYS_PER_PARTITION * assessment.partitions)


def _among_equals(assessment: Assessment) -> tuple[object, ...]:
    return (
        is_narrow(assessment),
        -round(assessment.routes.routed, 1),
        _SIMPLICITY[assessment.candidate.kind],
        assessment.candidate.suffix_count,
        round(assessment.predicted.ru_per_second, 1),
        round(assessment.storage.largest_share, 2),
        len(assessment.candidate.sources),
        assessment.candidate.name,
    )


def _without_requests(assessment: Assessment) -> tuple[object, ...]:
    """Return the order of candidates of which only the data is known: even ones first, then simple ones."""
    return (
        is_narrow(assessment),
        round(math.log10(max(assessment.storage.largest_share, 0.001)), 1),
        _SIMPLICITY[assessment.candidate.kind],
        assessment.candidate.suffix_count,
        -assessment.storage.cardinality,
        assessment.candidate.name,
    )


# --- the sentence -----------------------------------------------------------------------------------------------------


def _why(assessment: Assessment, best: Assessment, *, has_requests: bool) -> str:
    if assessment.problems:
        text = "; ".join(problem.text for problem in assessment.problems)
        return f"{text[0].upper()}{text[1:]}."
    if not has_requests:
        return _why_of_data(assessment)
    if assessment is best:
        return _why_best(assessment)
    return _why_behind(assessment, best)


def _why_best(assessment: Assessment) -> str:
    routed, largest = assessment.routes.routed, assessment.storage.largest_share
    return (
        f"{about_share(routed)} of the requests reach one logical partition, the hottest partition has "
        f"{about_share(assessment.windows.physical.mean)} of the load, and the largest key {about_share(largest)} of "
        "the data."
    )


def _why_of_data(assessment: Assessment) -> str:
    storage = assessment.storage
    return f"{storage.cardinality:,} keys, the largest with {about_share(storage.largest_share)} of the data."


def _why_behind(assessment: Assessment, best: Assessment) -> str:
    """Name the largest difference to the best candidate."""
    own, other = _need(assessment), _need(best)
    ratio = own / other if other else 1.0
    head = f"Needs {ratio:.1f} times the RU/s: " if ratio >= 1.05 else "Needs about as many RU/s, but "
    routes, hottest = assessment.routes, assessment.windows.physical.mean
    if is_narrow(assessment) and ratio < 1.05:
        return f"{head}has only {assessment.storage.cardinality:,} values, too few to grow with."
    if routes.fan_out > best.routes.fan_out + _NOTABLE:
        return f"{head}{about_share(routes.fan_out)} of the requests ask all partitions."
    if hottest > best.windows.physical.mean * 1.1 + 0.01:
        return f"{head}the hottest partition has {about_share(hottest)} of the load of a window."
    if routes.several > best.routes.several + _NOTABLE:
        return f"{head}{about_share(routes.several)} of the requests ask several logical partitions."
    if ratio < 1.05 and _SIMPLICITY[assessment.candidate.kind] > _SIMPLICITY[best.candidate.kind]:
        return f"{head}{best.candidate.name} is simpler."
    if ratio < 1.05 and routes.routed < best.routes.routed - _NOTABLE:
        return f"{head}fewer requests reach one logical partition ({about_share(routes.routed)})."
    cost, least = assessment.predicted.ru_per_second, best.predicted.ru_per_second
    if cost > least * (1 + _NOTABLE):
        return f"{head}its requests cost {cost / least - 1:.0%} more."
    return f"{head}its load is less even in busy windows." if ratio >= 1.05 else f"{head}it is no better otherwise."
