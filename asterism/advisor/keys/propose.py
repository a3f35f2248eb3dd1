"""The candidates worth scoring: from the paths of the items and from what requests know, a bounded number of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Final

from asterism.advisor.keys.candidate import CandidateKey
from asterism.advisor.keys.demand import Demand
from asterism.advisor.keys.item_profile import ItemProfile
from asterism.advisor.keys.time_stamps import BUCKET_SECONDS, TimeShape
from asterism.errors import MalformedRequest
from asterism.partitioning.key_parts import Bucket, KeyPart, KeyRuleError
from asterism.partitioning.key_path import check_key_path
from asterism.partitioning.synthetic_key import KeyRule, Suffix

CANDIDATES_MAX: Final = 60
_PLAIN_MAX: Final = 22
_PAIRS_MAX: Final = 12
_TRIPLES_MAX: Final = 5
_CONCATENATIONS_MAX: Final = 6
_ROLL_UPS_MAX: Final = 8
# A path that fewer items have is no key, unless requests name it.
_PRESENCE_MIN: Final = 0.5
# Paths that pairs, triples and suffixes are made of.
_LEADING: Final = 5
# Suffixes are offered in few sizes, which people can compare.
_SUFFIX_COUNTS: Final = (4, 10, 20, 50, 100, 200, 400, 1_000)
# The part of a physical partition's throughput that the hottest key may need.
_KEY_RU_MAX: Final = 1_000.0
# Keys for each physical partition at which the fullest has little more than the others.
_KEYS_PER_PARTITION: Final = 10


@dataclass(frozen=True, slots=True)
class Known:
    """How often requests know the value of a path, alone and together with others; shares of all requests."""

    shares: Mapping[str, float] = field(default_factory=dict)
    together: Mapping[frozenset[str], float] = field(default_factory=dict)

    @classmethod
    def of(cls, demands: Sequence[Demand]) -> Known:
        """Count requests that read; writes of whole items know everything."""
        alone: Counter[str] = Counter()
        together: Counter[frozenset[str]] = Counter()
        reading = [demand for demand in demands if demand.access in ("read", "query", "feed")]
        for demand in reading:
            paths = [path for path, values in demand.known.items() if values]
            alone.update(paths)
            together.update(frozenset(pair) for pair in combinations(sorted(paths)[:8], 2))
        count = max(1, len(reading))
        return cls(
            {path: times / count for path, times in alone.items()},
            {pair: times / count for pair, times in together.items()},
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """The load and the data by which the hottest and the largest keys must be divided."""

    partitions: int
    peak_ru_per_second: float
    bytes_per_key_max: float


def propose(
    profile: ItemProfile, demands: Sequence[Demand], *, spread: Spread, present: CandidateKey | None
) -> list[CandidateKey]:
    """Return the candidates, the present key first; each once, at most `CANDIDATES_MAX`."""
    known = Known.of(demands)
    proposed = _Proposer(profile, known, spread).all()
    wanted = [] if present is None else [present]
    # By what they are, not by name: the rule of a synthetic key may be the same under another path.
    seen: dict[str, CandidateKey] = {}
    for candidate in (*wanted, *proposed):
        seen.setdefault(candidate.name, candidate)
    return list(seen.values())[:CANDIDATES_MAX]


class _Proposer:
    def __init__(self, profile: ItemProfile, known: Known, spread: Spread) -> None:
        self._profile = profile
        self._known = known
        self._spread = spread
        self._shapes = profile.time_shapes()
        self._usable = [path for path in profile.paths if self._is_usable(path)]
        self._ranked = sorted(self._usable, key=lambda path: (-self._usefulness(path), path))

    def all(self) -> Iterator[CandidateKey]:
        yield from (CandidateKey.of_paths(path) for path in self._plain())
        yield from (CandidateKey.of_paths(*paths) for paths in self._hierarchies())
        for rule in (*self._roll_ups(), *self._concatenations(), *self._suffixed()):
            yield CandidateKey.of_rule(rule)

    # --- single paths -----------------------------------------------------------------------------------------------

    def _is_usable(self, path: str) -> bool:
        profile = self._profile.paths[path]
        named = self._known.shares.get(path, 0.0) > 0
        if not profile.count or (self._profile.share_with(path) < _PRESENCE_MIN and not named):
            return False
        if self._profile.distinct(path) < 2 and not named:
            return False
        try:
            check_key_path(path)
            KeyPart(path)
        except (MalformedRequest, KeyRuleError):
            return False
        return True

    def _usefulness(self, path: str) -> float:
        """Return how much a key of the path would help: most if requests know it, and something if it spreads."""
        distinct = math.log(max(2, self._profile.distinct(path))) / math.log(max(2, self._profile.items))
        return self._known.shares.get(path, 0.0) + 0.25 * distinct * self._profile.share_with(path)

    def _plain(self) -> list[str]:
        first = ["/id"] if "/id" in self._usable else []
        return [*first, *(path for path in self._ranked if path != "/id")][:_PLAIN_MAX]

    def _leading(self) -> list[str]:
        """Return the paths that are worth combining: those that requests know, or that divide the data."""
        return [path for path in self._ranked if path != "/id" and path not in self._shapes][:_LEADING]

    def _known_together(self, paths: Sequence[str]) -> float:
        return sum(self._known.together.get(frozenset(pair), 0.0) for pair in combinations(paths, 2))

    # --- several paths ----------------------------------------------------------------------------------------------

    def _hierarchies(self) -> list[tuple[str, ...]]:
        # A level that requests do not know makes fan-outs of them, or divides what they do not ask for.
        leading = [path for path in self._leading() if path in self._known.shares] or self._leading()[:2]
        pairs = list(permutations(leading, 2))
        pairs += [(path, "/id") for path in leading if "/id" in self._usable]
        pairs += [(path, time) for path in leading[:2] for time in self._shapes]
        pairs.sort(key=lambda pair: (-self._pair_usefulness(pair), pair))
        chosen = pairs[:_PAIRS_MAX]
        triples = [(*pair, "/id") for pair in chosen if "/id" in self._usable and "/id" not in pair]
        return [*chosen, *triples[:_TRIPLES_MAX]]

    def _pair_usefulness(self, pair: Sequence[str]) -> float:
        first, second = pair
        # A hierarchy is entered from its top, where the fewer values belong.
        is_in_order = self._profile.distinct(first) <= self._profile.distinct(second)
        return 2 * self._known.shares.get(first, 0.0) + self._known_together(pair) + is_in_order * 0.5

    def _concatenations(self) -> list[KeyRule]:
        leading = self._leading()
        pairs = sorted(combinations(leading, 2), key=lambda pair: (-self._known_together(pair), pair))
        known = [pair for pair in pairs if self._known_together(pair) > 0] or pairs[:2]
        return [self._rule([KeyPart(path) for path in pair]) for pair in known[:_CONCATENATIONS_MAX]]

    # --- time -------------------------------------------------------------------------------------------------------

    def _times(self) -> list[tuple[str, TimeShape]]:
        """Return the two time stamps that most items have, those that requests know first."""

        def order(path: str) -> tuple[float, float, str]:
            return -self._known.shares.get(path, 0.0), -self._profile.share_with(path), path

        usable = sorted((path for path in self._shapes if path in self._usable), key=order)
        return [(path, self._shapes[path]) for path in usable[:2]]

    def _buckets(self, shape: TimeShape) -> list[Bucket]:
        return [bucket for bucket in BUCKET_SECONDS if shape.has_time_of_day or bucket != "hour"]

    def _roll_ups(self) -> list[KeyRule]:
        rules: list[KeyRule] = []
        for path, shape in self._times():
            for bucket in self._buckets(shape):
                part = shape.part(path, bucket)
                rules.append(self._rule([part]))
                rules += [self._rule([KeyPart(other), part]) for other in self._leading()[:2] if other != path]
        rules.sort(key=lambda rule: (len(rule.parts) == 1, self._rule_order(rule)))
        return rules[:_ROLL_UPS_MAX]

    def _rule_order(self, rule: KeyRule) -> tuple[float, str]:
        return -sum(self._known.shares.get(path, 0.0) for path in rule.sources), str(rule.to_json())

    # --- suffixes ---------------------------------------------------------------------------------------------------

    def _suffixed(self) -> Iterator[KeyRule]:
        bases = [([KeyPart(path)], self._largest_share(path)) for path in self._leading()[:3]]
        bases += [([shape.part(path, "day")], 1.0) for path, shape in self._times()[:1]]
        for parts, share in bases:
            count = self._suffix_count(share)
            if count is None:
                continue
            yield self._rule(parts, Suffix(count))
            for path in self._suffix_sources(parts[0].path):
                yield self._rule(parts, Suffix(count, KeyPart(path)))

    def _suffix_sources(self, base: str) -> list[str]:
        """Return the paths that a suffix may be hashed of: the id, and another that requests know and that spreads."""
        others = [path for path in self._leading() if path != base and self._profile.distinct(path) > 100]
        by_id = ["/id"] if "/id" in self._usable else []
        return [*by_id, *others[:1]]

    def _suffix_count(self, share: float) -> int | None:
        """Return how many suffixes divide the hottest key enough; None if it needs none."""
        spread = self._spread
        needed = max(
            spread.peak_ru_per_second * share / _KEY_RU_MAX,
            share * self._profile.total_bytes / spread.bytes_per_key_max,
            # One key is one partition's load, however small it is.
            _KEYS_PER_PARTITION * spread.partitions * share if spread.partitions > 1 else 0.0,
        )
        if needed <= 1:
            return None
        return next((count for count in _SUFFIX_COUNTS if count >= needed), _SUFFIX_COUNTS[-1])

    def _largest_share(self, path: str) -> float:
        counts = Counter(self._profile.sampled_values(path))
        return max(counts.values(), default=0) / max(1, len(self._profile.sample.kept))

    def _rule(self, parts: Sequence[KeyPart], suffix: Suffix | None = None) -> KeyRule:
        """Return a rule; items that lack a source have no key, unless no item does."""
        sources = [part.path for part in parts] + ([suffix.of.path] if suffix is not None and suffix.of else [])
        is_complete = all(self._profile.share_with(path) >= 1.0 for path in sources)
        return KeyRule(tuple(parts), suffix=suffix, missing="refuse" if is_complete else "absent")


def highest_cardinality(profile: ItemProfile) -> CandidateKey | None:
    """Return the baseline that takes the path with the most values."""
    paths = [path for path in profile.paths if profile.share_with(path) >= _PRESENCE_MIN]
    best = max(paths, key=lambda path: (profile.distinct(path), path == "/id", path), default=None)
    return None if best is None else CandidateKey.of_paths(best)


def most_filtered(profile: ItemProfile, demands: Sequence[Demand]) -> CandidateKey | None:
    """Return the baseline that takes the property which most queries fix; the id, if there are no queries."""
    counts: Counter[str] = Counter()
    for demand in demands:
        if demand.access == "query":
            counts.update(path for path in demand.known if path in profile.paths)
    best = max(counts, key=lambda path: (counts[path], path), default="/id" if "/id" in profile.paths else None)
    return None if best is None else CandidateKey.of_paths(best)
