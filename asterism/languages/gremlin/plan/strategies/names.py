"""The traversal strategies that may be named, and readers of their settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.tree import Traversal

# Strategies that change the results of a traversal, or refuse it.
EFFECTIVE = (
    "SubgraphStrategy",
    "PartitionStrategy",
    "ReadOnlyStrategy",
    "ProductiveByStrategy",
    "SeedStrategy",
    "OptionsStrategy",
    "ProjectionStrategy",
    "ReservedKeysVerificationStrategy",
    "EdgeLabelVerificationStrategy",
    "StandardVerificationStrategy",
    "VertexProgramRestrictionStrategy",
)
# Strategies of TinkerPop that only make a traversal faster, or have nothing to do here (lambdas are refused anyway,
# ids are kept by the store, and there is no graph computer).
_WITHOUT_EFFECT = (
    "AdjacentToIncidentStrategy",
    "ByModulatorOptimizationStrategy",
    "ComputerFinalizationStrategy",
    "ComputerVerificationStrategy",
    "ConnectiveStrategy",
    "CountStrategy",
    "EarlyLimitStrategy",
    "ElementIdStrategy",
    "FilterRankingStrategy",
    "GValueReductionStrategy",
    "GraphFilterStrategy",
    "HaltedTraverserStrategy",
    "IdentityRemovalStrategy",
    "IncidentToAdjacentStrategy",
    "InlineFilterStrategy",
    "LambdaRestrictionStrategy",
    "LazyBarrierStrategy",
    "MatchAlgorithmStrategy",
    "MatchPredicateStrategy",
    "MessagePassingReductionStrategy",
    "OrderLimitStrategy",
    "PathProcessorStrategy",
    "PathRetractionStrategy",
    "ProfileStrategy",
    "ProviderGValueReductionStrategy",
    "ReferenceElementStrategy",
    "RepeatUnrollStrategy",
    "RequirementsStrategy",
    "VertexProgramStrategy",
)
KNOWN = frozenset(EFFECTIVE + _WITHOUT_EFFECT)


def texts(given: Any) -> tuple[str, ...]:
    """Return a setting that is a text or several of them."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if isinstance(given, list | tuple | set | frozenset) and all(isinstance(text, str) for text in given):
        return tuple(given)
    raise CompileFailure(f"The strategy's setting must be a text or a list of texts, not {given!r}.")


def number(given: Any) -> int:
    if isinstance(given, int) and not isinstance(given, bool):
        return int(given)
    raise CompileFailure(f"SeedStrategy takes a whole number as its seed, not {given!r}.")


def flag(settings: Mapping[str, Any], name: str, *, default: bool) -> bool:
    given = settings.get(name, default)
    if isinstance(given, bool):
        return given
    raise CompileFailure(f"The strategy's setting '{name}' must be true or false, not {given!r}.")


def criterion(settings: Mapping[str, Any], name: str) -> Traversal | None:
    given = settings.get(name)
    if given is None or isinstance(given, Traversal):
        return given
    raise CompileFailure(f"The strategy's setting '{name}' must be a traversal, not {given!r}.")


def system_properties(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the service's `IncludeSystemProperties(...)`, which clients write in several cases."""
    for name, given in settings.items():
        if name.lower() == "includesystemproperties":
            return texts(given)
    return ()
