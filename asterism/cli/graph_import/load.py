"""The import of a graph's files: vertices of all files first, then edges, whose ends are known by then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from asterism.cli.client import AdminClient
from asterism.cli.failure import CommandFailed
from asterism.cli.graph_import.csv_tables import is_table_of_edges, read_table
from asterism.cli.graph_import.documents import DocumentMaker
from asterism.cli.graph_import.graphson import read_graphson
from asterism.cli.graph_import.records import BadElement, Record, VertexRecord
from asterism.cli.graph_import.writer import GraphWriter

# The bar is drawn a few times a second; more updates would only take time.
_SHOWN_EVERY: Final = 500
_PAGE_ITEMS: Final = 1000

Show = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A file and its form; a table has only vertices or only edges, GraphSON may have both."""

    path: Path
    has_vertices: bool
    has_edges: bool
    is_table: bool
    size: int

    @classmethod
    def find(cls, path: Path) -> GraphFile:
        try:
            size = path.stat().st_size
            is_table = path.suffix.lower() == ".csv"
            is_edges = is_table and is_table_of_edges(path)
        except OSError as error:
            raise CommandFailed(f"{path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise CommandFailed(f"{path}: the text is not UTF-8") from None
        except BadElement as bad:
            raise CommandFailed(f"{path}: {bad}") from None
        return cls(path, not is_edges, is_edges or not is_table, is_table, size)

    def read(self, *, edges: bool) -> Iterator[tuple[int, int, Record]]:
        try:
            yield from read_table(self.path) if self.is_table else read_graphson(self.path, edges=edges)
        except BadElement as bad:
            raise CommandFailed(f"{self.path}: {bad}") from None
        except OSError as error:
            raise CommandFailed(f"{self.path} cannot be read: {error.strerror}") from None


@dataclass(slots=True)
class Loaded:
    vertices: int = 0
    edges: int = 0


def load_files(files: Sequence[GraphFile], maker: DocumentMaker, writer: GraphWriter) -> Loaded:
    """Write the elements of all files; return how many there were."""
    from asterism.cli.transfer import byte_bar

    total = sum(file.size * (file.has_vertices + file.has_edges) for file in files)
    done, loaded = 0, Loaded()
    with byte_bar(files[0].path.name if len(files) == 1 else f"{len(files)} files", total) as show:
        for edges in (False, True):
            for file in files:
                if not (file.has_edges if edges else file.has_vertices):
                    continue
                start = done
                for line, bytes_read, record in file.read(edges=edges):
                    _add(file, line, record, maker, writer)
                    if edges:
                        loaded.edges += 1
                    else:
                        loaded.vertices += 1
                    if (loaded.vertices + loaded.edges) % _SHOWN_EVERY == 0:
                        show(start + bytes_read, loaded.vertices + loaded.edges)
                done = start + file.size
            # An edge is not to be seen before its vertices are stored.
            writer.finish()
            show(done, loaded.vertices + loaded.edges)
    return loaded


def _add(file: GraphFile, line: int, record: Record, maker: DocumentMaker, writer: GraphWriter) -> None:
    try:
        if isinstance(record, VertexRecord):
            key, document = maker.vertex(record)
        else:
            key, document = maker.edge(record, line=line)
        writer.add(key, document, (str(file.path), line))
    except BadElement as bad:
        raise CommandFailed(f"{file.path}, line {line}: {bad}") from None


def learn_places(admin: AdminClient, database: str, graph: str, maker: DocumentMaker) -> None:
    """Read ids, labels and keys of the vertices that the graph has already, for files that have edges only."""
    key = f', c["{maker.rule.name}"] AS key' if maker.rule.name is not None else ""
    body: dict[str, Any] = {
        "database": database,
        "container": graph,
        "query": f"SELECT c.id, c.label{key} FROM c WHERE IS_STRING(c.label) AND NOT IS_DEFINED(c._isEdge)",
        "parameters": [],
        "max_items": _PAGE_ITEMS,
        "continuation": None,
    }
    while True:
        page = admin.post("query", body)
        for row in page["results"]:
            maker.places.add(row["id"], row.get("key"), row["label"])
        body["continuation"] = page["continuation"]
        if body["continuation"] is None:
            return
