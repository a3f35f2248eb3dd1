"""The vectors of a container, as its settings describe them."""

from __future__ import annotations

from asterism.languages.cosmos_sql.compiling.distance import DistanceFunctionOf, no_distance_function
from asterism.models.documents.container import Container


def distance_functions(container: Container) -> DistanceFunctionOf:
    """Return the lookup of the distance function of the vectors at a path, by the container's policy."""
    by_path = container.planner.settings.vector_distances
    return by_path.get if by_path else no_distance_function
