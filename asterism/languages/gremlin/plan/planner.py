"""The planner: texts and bytecode become plans, which are kept for the next request with the same text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.evaluation import Dialect, EvaluationOptions
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.instructions import check
from asterism.languages.gremlin.plan.settings import SourceSettings
from asterism.languages.gremlin.plan.source import read_source
from asterism.languages.gremlin.plan.table import STEPS
from asterism.languages.gremlin.plan.variables import with_values
from asterism.languages.gremlin.text.cache import ParseCache
from asterism.languages.gremlin.text.parser import DEFAULT_LIMITS, TextLimits, parse
from asterism.languages.gremlin.tree import Traversal

_NO_NAMES: frozenset[str] = frozenset()
# Of the plans for one kind of graph and client; there are a handful of kinds.
_PLANS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled traversal, for any number of runs."""

    pipeline: Pipeline
    settings: SourceSettings
    needs_path: bool
    writes: bool


# The dialect, whether elements among the results need their properties, and the name of the partition key.
_Kind = tuple[Dialect, bool, str | None]


class Planner:
    """Makes plans. Without bindings the plan of a text is kept; with bindings its tree is."""

    def __init__(self, limits: TextLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._trees = ParseCache(partial(parse, limits=limits))
        self._plans: dict[_Kind, ParseCache[Plan]] = {}

    def plan_of_text(
        self, text: str, bindings: Mapping[str, Any], options: EvaluationOptions, key_name: str | None
    ) -> Plan:
        """Return the plan of a text for a graph whose partition key has this name."""
        kind = (options.dialect, options.materializes_properties, key_name)
        if bindings:
            tree = self._trees.get(text, frozenset(bindings))
            return self._plan(with_values(tree, bindings), kind)
        plans = self._plans.get(kind)
        if plans is None:
            plans = self._plans[kind] = ParseCache(
                lambda text, names: self._plan(parse(text, names, limits=self._limits), kind), entries_max=_PLANS_MAX
            )
        return plans.get(text, _NO_NAMES)

    def plan_of_traversal(self, traversal: Traversal, options: EvaluationOptions, key_name: str | None) -> Plan:
        """Return the plan of a traversal without variables."""
        return self._plan(traversal, (options.dialect, options.materializes_properties, key_name))

    def _plan(self, traversal: Traversal, kind: _Kind) -> Plan:
        dialect, materializes_properties, key_name = kind
        check(traversal, steps_max=self._limits.steps_max)
        rewritten, settings = read_source(traversal, key_name=key_name)
        compiler = Compiler(STEPS, dialect=dialect, key_name=key_name, settings=settings)
        compiler.materializes_properties = materializes_properties
        pipeline = compiler.root(rewritten)
        return Plan(pipeline, settings, compiler.needs_path, compiler.writes)
