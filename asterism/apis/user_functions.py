"""`udf.name(…)` in queries: the user-defined functions of a container, compiled when a query names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from asterism.models.documents.container import Container
from asterism.models.documents.store import DocumentStore
from asterism.scripts.runtime import ScriptRuntime


class ContainerFunctions(Mapping[str, Callable[..., object]]):
    """Looks a function up when it is asked for: most queries ask for none. The runtime knows those it has compiled."""

    __slots__ = ("_compile", "_container_rid", "_functions")

    def __init__(self, store: DocumentStore, scripts: ScriptRuntime, container: Container) -> None:
        self._functions = store.catalog.scripts.functions
        self._compile = scripts.compile_udf
        self._container_rid = container.record.rid

    def __getitem__(self, name: str) -> Callable[..., object]:
        record = self._functions.find(self._container_rid, name)
        if record is None:
            raise KeyError(name)
        return self._compile(str(record.properties["body"]))

    def __iter__(self) -> Iterator[str]:
        return iter([record.name for record in self._functions.owned_by(self._container_rid)])

    def __len__(self) -> int:
        return len(self._functions.owned_by(self._container_rid))
