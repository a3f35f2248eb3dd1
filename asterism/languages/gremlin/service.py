"""Traversals on the graphs of a server: from a text or bytecode to batches of results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from asterism.errors import Forbidden, PreconditionFailed, TooMuchContention
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.languages.gremlin.engine.evaluate import evaluate
from asterism.languages.gremlin.engine.measuring import measure
from asterism.languages.gremlin.engine.run import DEFAULT_LIMITS, Run, RunLimits
from asterism.languages.gremlin.evaluation import EvaluationOptions, GraphName, SourceOptions
from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.graph.execution_profile import execution_profile, explanation, traversal_metrics
from asterism.languages.gremlin.graph.profile import StoreOperation
from asterism.languages.gremlin.graph.session import StoredGraph, open_session
from asterism.languages.gremlin.plan.generated import RequestValues
from asterism.languages.gremlin.plan.planner import Plan, Planner
from asterism.languages.gremlin.text.parser import DEFAULT_LIMITS as DEFAULT_TEXT_LIMITS
from asterism.languages.gremlin.text.parser import TextLimits
from asterism.languages.gremlin.tree import Traversal
from asterism.models.documents.store import DocumentStore
from asterism.models.documents.transaction import Overtaken

# A traversal that writes is decided so often before other writers are to blame, each time after a longer pause.
_ATTEMPTS_MAX = 16
_PAUSE_SECONDS = 0.002


class GremlinService:
    """Evaluates traversals; see `evaluation.GraphEngine`. One per process."""

    def __init__(
        self,
        documents: DocumentStore,
        *,
        account: str,
        monotonic: Callable[[], float],
        run_limits: RunLimits = DEFAULT_LIMITS,
        text_limits: TextLimits = DEFAULT_TEXT_LIMITS,
    ) -> None:
        self._documents = documents
        self._account = account
        self._monotonic = monotonic
        self._run_limits = run_limits
        self._planner = Planner(text_limits, values_of=self._values_of)

    def _values_of(self, bindings: Mapping[str, Any]) -> RequestValues:
        services = self._documents.services
        return RequestValues(bindings, now_seconds=services.clock.wall_seconds(), random_bytes=services.random_bytes)

    def evaluate_text(
        self, graph: GraphName, text: str, bindings: Mapping[str, Any], options: EvaluationOptions
    ) -> StoredEvaluation:
        plan_of_text = self._planner.plan_of_text
        return StoredEvaluation(self, graph, options, lambda key_name: plan_of_text(text, bindings, options, key_name))

    def evaluate_bytecode(self, graph: GraphName, traversal: Traversal, options: EvaluationOptions) -> StoredEvaluation:
        plan_of_traversal = self._planner.plan_of_traversal
        return StoredEvaluation(self, graph, options, lambda key_name: plan_of_traversal(traversal, options, key_name))

    @property
    def router(self) -> PartitionRouter:
        return self._documents.services.router

    def session(self, graph: GraphName, *, may_write: bool, looks_first: bool = False) -> StoredGraph:
        """Open the graph for one traversal."""
        account = graph.account or self._account
        container = self._documents.container_for_items(account, graph.database, graph.name)
        return open_session(container, self._documents.services, may_write=may_write, looks_first=looks_first)

    def run(self, plan: Plan, session: StoredGraph, *, timeout_seconds: float | None) -> Run:
        limits = self._run_limits
        own_seconds = plan.settings.request_options.timeout_seconds
        if own_seconds is not None:
            timeout_seconds = own_seconds
        if timeout_seconds is not None and timeout_seconds < limits.seconds:
            limits = replace(limits, seconds=timeout_seconds)
        run = Run(session, monotonic=self._monotonic, limits=limits, tracks_path=plan.needs_path)
        plan.settings.prepare(run)
        return run


class StoredEvaluation:
    """A traversal on a stored graph; see `evaluation.Evaluation`."""

    __slots__ = ("_graph", "_make_plan", "_options", "_service", "_session", "source_options")

    def __init__(
        self,
        service: GremlinService,
        graph: GraphName,
        options: EvaluationOptions,
        make_plan: Callable[[str | None], Plan],
    ) -> None:
        self._service = service
        self._graph = graph
        self._options = options
        self._make_plan = make_plan
        self._session: StoredGraph | None = None
        self.source_options = SourceOptions()

    @property
    def charge(self) -> float:
        return 0.0 if self._session is None else self._session.charge

    async def batches(self) -> AsyncIterator[list[tuple[Any, int]]]:
        service, options = self._service, self._options
        session = self._session = service.session(self._graph, may_write=options.may_write)
        try:
            plan = self._make_plan(session.key_name)
        except RecursionError:
            raise CompileFailure("The traversal, or a value in it, is nested too deeply.") from None
        self.source_options = plan.settings.request_options
        if not plan.writes:
            async with aclosing(self._run(plan, session)) as batches:
                async for batch in batches:
                    yield batch
            return
        if not options.may_write:
            raise Forbidden(reason="The key is for reading only.")
        for batch in await self._written(plan, session):
            yield batch

    async def _written(self, plan: Plan, session: StoredGraph) -> list[list[tuple[Any, int]]]:
        """Return the results of a traversal that writes, when it has written. Another writer may have changed data that
        it was decided on: then nothing was written, and it is decided again on fresh data."""
        expects_version = plan.settings.expects_version
        if expects_version:
            session = self._session = self._service.session(self._graph, may_write=True, looks_first=True)
        for attempt in range(_ATTEMPTS_MAX):
            try:
                return [batch async for batch in self._run(plan, session)]
            except Overtaken:
                if expects_version:
                    # It was decided on a version that its sender names, and that is gone.
                    raise PreconditionFailed from None
                spent = session.charge
                session = self._session = self._service.session(self._graph, may_write=True, looks_first=True)
                session.ledger.charge = spent
                await asyncio.sleep(_PAUSE_SECONDS * attempt)
        raise TooMuchContention

    async def _run(self, plan: Plan, session: StoredGraph) -> AsyncGenerator[list[tuple[Any, int]], None]:
        if plan.report is not None:
            yield [(await self._report(plan, session), 1)]
            return
        run = self._service.run(plan, session, timeout_seconds=self._options.timeout_seconds)
        async with aclosing(evaluate(plan.pipeline, run)) as batches:
            async for batch in batches:
                yield [(traverser.value, traverser.bulk) for traverser in batch]

    async def _report(self, plan: Plan, session: StoredGraph) -> Any:
        """Run a traversal for a report on it; `explain()` only shows the plan."""
        if plan.report == "explain":
            return explanation(plan.text, plan.named_steps)
        run = self._service.run(plan, session, timeout_seconds=self._options.timeout_seconds)
        operations: list[StoreOperation] = []
        session.ledger.operations = operations
        monotonic = session.ledger.monotonic
        began = monotonic()
        router = self._service.router
        calls = router.calls
        works = await measure(plan.named_steps, run, monotonic=monotonic, operations=operations)
        seconds = monotonic() - began
        if plan.report == "profile":
            return traversal_metrics(works, seconds=seconds)
        result_count = works[len(plan.named_steps) - 1].elements if plan.named_steps else 0
        return execution_profile(
            plan.text,
            works,
            seconds=seconds,
            charge=session.charge,
            result_count=result_count,
            # Of other requests at the same time too.
            store_calls=router.calls - calls,
        )
