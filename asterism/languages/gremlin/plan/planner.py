"""The planner: texts and bytecode become plans, which are kept for the next request with the same text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.evaluation import Dialect, EvaluationOptions
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.generated import may_generate
from asterism.languages.gremlin.plan.instructions import check
from asterism.languages.gremlin.plan.reports import Report, split_report
from asterism.languages.gremlin.plan.settings import SourceSettings
from asterism.languages.gremlin.plan.source import read_source
from asterism.languages.gremlin.plan.table import STEPS
from asterism.languages.gremlin.plan.template import Template, make_template
from asterism.languages.gremlin.plan.variables import with_values
from asterism.languages.gremlin.text.cache import ParseCache
from asterism.languages.gremlin.text.parser import DEFAULT_LIMITS, TextLimits, parse
from asterism.languages.gremlin.text.printer import print_traversal
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
    # A report on the traversal is asked for, not its results; then the steps have names.
    report: Report | None = None
    named_steps: Sequence[tuple[str, Step]] = ()
    text: str = ""


# The dialect, whether elements among the results need their properties, and the name of the partition key.
_Kind = tuple[Dialect, bool, str | None]


class _BoundText:
    """A text with variables: its tree, and its template once it was planned."""

    __slots__ = ("needs_path", "settings", "template", "tree", "writes")

    def __init__(self, tree: Traversal) -> None:
        self.tree = tree
        self.template: Template | None = None
        self.settings = SourceSettings()
        self.needs_path = self.writes = False


class Planner:
    """Makes plans and keeps them. Of a text with variables all steps are kept that do not depend on their values.

    `values_of` adds the values that each request gets anew to its bindings.
    """

    def __init__(
        self,
        limits: TextLimits = DEFAULT_LIMITS,
        *,
        values_of: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    ) -> None:
        self._limits = limits
        self._values_of = values_of
        self._plans: dict[_Kind, ParseCache[Plan]] = {}
        self._bound_texts: dict[_Kind, ParseCache[_BoundText]] = {}

    def plan_of_text(
        self, text: str, bindings: Mapping[str, Any], options: EvaluationOptions, key_name: str | None
    ) -> Plan:
        """Return the plan of a text for a graph whose partition key has this name."""
        kind = (options.dialect, options.materializes_properties, key_name)
        is_generating = may_generate(text)
        if bindings or is_generating:
            texts = self._bound_texts.get(kind)
            if texts is None:
                texts = self._bound_texts[kind] = ParseCache(self._bound_text, entries_max=_PLANS_MAX)
            values = self._values_of(bindings) if is_generating else bindings
            return self._bound_plan(texts.get(text, frozenset(bindings)), values, kind)
        plans = self._plans.get(kind)
        if plans is None:
            plans = self._plans[kind] = ParseCache(
                lambda text, names: self._plan(with_values(self._parsed(text, names), {}), kind),
                entries_max=_PLANS_MAX,
            )
        return plans.get(text, _NO_NAMES)

    def plan_of_traversal(self, traversal: Traversal, options: EvaluationOptions, key_name: str | None) -> Plan:
        """Return the plan of a traversal without variables."""
        return self._plan(traversal, (options.dialect, options.materializes_properties, key_name))

    def _parsed(self, text: str, names: frozenset[str]) -> Traversal:
        return parse(text, names, limits=self._limits)

    def _bound_text(self, text: str, names: frozenset[str]) -> _BoundText:
        return _BoundText(self._parsed(text, names))

    def _bound_plan(self, bound: _BoundText, values: Mapping[str, Any], kind: _Kind) -> Plan:
        if bound.template is not None:
            pipeline = bound.template.pipeline(values, self._compiler(kind, bound.settings))
            if pipeline is not None:
                return Plan(pipeline, bound.settings, bound.needs_path, bound.writes)
        traversal = with_values(bound.tree, values)
        if bound.tree.source or split_report(bound.tree)[1] is not None:
            # Strategies rewrite the steps: nothing of one request's plan is sure to fit the next.
            return self._plan(traversal, kind)
        check(traversal, steps_max=self._limits.steps_max)
        _, settings = read_source(traversal, key_name=kind[2])
        compiler = self._compiler(kind, settings)
        bound.template, pipeline = make_template(bound.tree.steps, values, compiler)
        bound.settings, bound.needs_path, bound.writes = settings, compiler.needs_path, compiler.writes
        return Plan(pipeline, settings, compiler.needs_path, compiler.writes)

    def _plan(self, traversal: Traversal, kind: _Kind) -> Plan:
        check(traversal, steps_max=self._limits.steps_max)
        wanted, report = split_report(traversal)
        rewritten, settings = read_source(wanted, key_name=kind[2])
        compiler = self._compiler(kind, settings)
        if report is not None:
            named_steps = compiler.named_steps(rewritten)
            pipeline = Pipeline([step for _, step in named_steps])
            text = print_traversal(traversal)
            needs_path, writes = compiler.needs_path, compiler.writes and report != "explain"
            return Plan(pipeline, settings, needs_path, writes, report, named_steps, text)
        pipeline = compiler.root(rewritten)
        return Plan(pipeline, settings, compiler.needs_path, compiler.writes)

    def _compiler(self, kind: _Kind, settings: SourceSettings) -> Compiler:
        dialect, materializes_properties, key_name = kind
        compiler = Compiler(STEPS, dialect=dialect, key_name=key_name, settings=settings)
        wished = settings.request_options.materializes_properties
        compiler.materializes_properties = materializes_properties if wished is None else wished
        return compiler
