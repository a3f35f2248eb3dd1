"""Which scenarios are left out, each with its reason. `--subset all` leaves out only what the harness cannot judge."""

from __future__ import annotations

from conformance.gremlin.scenarios import Scenario

# Beyond any Python client, which cannot send or read it.
_BEYOND_THE_CLIENT = {
    "@StepSubgraph": "answers a graph, which gremlinpython cannot read",
    "@StepTree": "answers a tree, which gremlinpython cannot read",
}
# Scenarios that do not fit a partitioned document store that is asked over a socket.
_NOT_OURS = {
    "@GraphComputerOnly": "needs a graph computer",
    "@StepPageRank": "needs a graph computer",
    "@StepPeerPressure": "needs a graph computer",
    "@StepConnectedComponent": "needs a graph computer",
    "@StepShortestPath": "needs a graph computer",
    "@StepProgram": "needs a graph computer",
    "@WithVertexProgramStrategy": "needs a graph computer",
    "@WithVertexProgramRestrictionStrategy": "needs a graph computer",
    "@WithHaltedTraverserStrategy": "needs a graph computer",
    "@StepRead": "reads files of the server",
    "@StepWrite": "writes files of the server",
    "@AllowNullPropertyValues": "null is not a property value (nor is it in Cosmos DB)",
    "@UserSuppliedVertexPropertyIds": "ids of properties are the server's",
    "@AllowUUIDPropertyValues": "JSON has no such type; stored as text",
    "@AllowDateTimePropertyValues": "JSON has no such type; stored as text",
    "@AllowMapPropertyValues": "objects are not property values (nor are they in Cosmos DB)",
    "@AllowSetPropertyValues": "JSON has no such type",
    "@MultiLabel": "TinkerPop 4 only",
    "@MultiLabelDefault": "TinkerPop 4 only",
    "@InsertionOrderingRequired": "a hashed store does not keep the order of insertion",
}
# Texts, as they stand in traversals.
_NOT_OURS_TEXT = {
    "Lambda.": "lambdas are refused",
    ".withComputer(": "needs a graph computer",
    "io(": "reads or writes files of the server",
    "call(": "services of another store",
}


def reason_to_skip(scenario: Scenario, subset: str) -> str | None:
    if scenario.unsupported:
        return scenario.unsupported
    reason = _first(_BEYOND_THE_CLIENT, scenario)
    if reason is None and any(value.startswith("c[") for value in scenario.parameters.values()):
        reason = "lambdas are refused"
    if reason is not None or subset == "all":
        return reason
    text = " ".join((*scenario.initializers, scenario.traversal))
    found = next((why for part, why in _NOT_OURS_TEXT.items() if part in text), None)
    return _first(_NOT_OURS, scenario) or found


def _first(reasons: dict[str, str], scenario: Scenario) -> str | None:
    return next((why for tag, why in reasons.items() if tag in scenario.tags), None)
