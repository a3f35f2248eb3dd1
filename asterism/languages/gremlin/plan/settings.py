"""The settings of a whole traversal: what the `with...` calls on its source say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asterism.languages.gremlin.engine.run import Run, SideEffect
from asterism.languages.gremlin.evaluation import SourceOptions
from asterism.languages.gremlin.values.arithmetic import OPERATORS


@dataclass(frozen=True, slots=True)
class Declaration:
    """The first value of a side effect or of the sacks, and the operator that merges further ones into it."""

    value: Any
    operator: str | None = None


@dataclass(slots=True)
class SourceSettings:
    """The settings of a traversal, read by `plan.source.read_source`."""

    # `by` modulators that yield nothing yield null instead of filtering (ProductiveByStrategy), but for those of the
    # keys of which the strategy was told that they always yield something.
    is_productive_by: bool = False
    productive_keys: frozenset[str] = frozenset()
    # The seed of SeedStrategy.
    seed: int | None = None
    # Options of `g.with(key, value)`.
    options: Mapping[str, Any] | None = None
    # Those of them that concern the whole request.
    request_options: SourceOptions = field(default_factory=SourceOptions)
    has_sack: bool = False
    sack: Declaration | None = None
    side_effects: Mapping[str, Declaration] = field(default_factory=dict)
    # Side effects that steps of the traversal fill: their first values, noted by the makers of those steps.
    filled: dict[str, Callable[[], Any]] = field(default_factory=dict)
    # Set if a step needs every place of the path; without it, paths have only the places with labels.
    needs_every_place: bool = False
    # `withPath()`: paths are kept even if no step asks for them.
    tracks_path: bool = False
    # `withBulk(false)`: a traverser counts once, however many equal ones were merged into it.
    is_bulked: bool = True
    # False without ConnectiveStrategy: `a.or().b` is then an `or` of nothing between two steps.
    joins_connectives: bool = True
    # Set if a step filters by the versions of elements: a change that is overtaken is then not decided again.
    expects_version: bool = False
    # Properties of the store that results show too (the service's ProjectionStrategy), such as `_ts`.
    system_properties: tuple[str, ...] = ()

    def prepare(self, run: Run) -> None:
        """Give a run its first side effects, sack and seed."""
        for name, declared in self.side_effects.items():
            merge = None if declared.operator is None else OPERATORS[declared.operator]
            run.side_effects[name] = SideEffect(_own_copy(declared.value), merge)
        for name, first_value in self.filled.items():
            if name not in run.side_effects:
                run.side_effects[name] = SideEffect(first_value())
        run.is_path_sparse = not self.needs_every_place
        if self.sack is not None:
            run.sack = _own_copy(self.sack.value)
            run.merge_sacks = None if self.sack.operator is None else OPERATORS[self.sack.operator]
        run.is_bulked = self.is_bulked
        run.seed = self.seed


def _own_copy(value: Any) -> Any:
    """Return a value that a run may change: plans, and the values in them, are shared by runs."""
    return value.copy() if isinstance(value, list | set | dict) else value
