"""What a container's settings say of its vectors."""

from __future__ import annotations

from asterism.documents.container import Container
from asterism.documents.index_paths import parse_property_path
from asterism.query.distance import DistanceFunctionOf, no_distance_function


def distance_functions(container: Container) -> DistanceFunctionOf:
    """The distance function of the vectors at each path of the container's policy."""
    policy = container.record.settings.get("vectorEmbeddingPolicy") or {}
    embeddings = policy.get("vectorEmbeddings")
    if not embeddings:
        return no_distance_function
    by_path = {parse_property_path(one["path"]): str(one["distanceFunction"]) for one in embeddings}
    return by_path.get
