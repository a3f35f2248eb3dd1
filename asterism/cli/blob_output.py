"""The output of `asterism blobs`: bars, results and lists."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from asterism.cli.failure import CommandFailed
from asterism.cli.options import Format

if TYPE_CHECKING:
    from asterism.cli.blob_mover import Moved
    from asterism.cli.blob_pages import ListedBlob, ListedContainer

# Of names in a message.
_NAMED_MAX: Final = 5


@contextmanager
def byte_bar(title: str, total: int | None) -> Iterator[tuple[Callable[[int], None], Callable[[int, int], None]]]:
    """Show a bar of bytes; yield a function that advances it, and one that adds files and bytes to its total."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn, TransferSpeedColumn

    from asterism.cli.progress import progress_bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("{task.fields[files]}"),
        TimeElapsedColumn(),
    )
    with progress_bars(*columns) as progress:
        bar = progress.add_task(title.replace("[", "\\["), total=total, files="")
        files = 0

        def grow(more_files: int, more_bytes: int) -> None:
            nonlocal files
            files += more_files
            progress.update(bar, total=(progress.tasks[0].total or 0) + more_bytes, files=f"{files:,} files")

        yield lambda count: progress.advance(bar, count), grow


def report(moved: Moved, done: str, impossible: str) -> None:
    from asterism.cli.tables import readable_bytes

    typer.echo(f"{_count(moved.files)}, {readable_bytes(moved.bytes)}, {done}.")
    problems = []
    if moved.left:
        problems.append(f"{_count(len(moved.left))} left as it was before ({_some(moved.left)}): --overwrite replaces")
    if moved.refused:
        problems.append(
            f"{_count(len(moved.refused))} left out, because their names {impossible} ({_some(moved.refused)})"
        )
    if problems:
        raise CommandFailed("; ".join(problems))


def _count(files: int) -> str:
    return "1 file" if files == 1 else f"{files:,} files"


def _some(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:_NAMED_MAX]))
    return shown if len(names) <= _NAMED_MAX else f"{shown}, …"


def show_containers(account: str, found: Sequence[ListedContainer], output_format: Format) -> None:
    if output_format is Format.JSON:
        shown = [{"name": each.name, "modified": each.modified, "public": each.public_access} for each in found]
        typer.echo(json.dumps({"containers": shown}, indent=2, ensure_ascii=False))
    elif found:
        from asterism.cli.tables import print_table

        rows = [[each.name, each.modified, each.public_access or "-"] for each in found]
        print_table(f"Containers of {account}", ["container", "modified", "public"], rows)
    else:
        typer.echo("There are no such containers. Create one with `asterism blobs create`.")


def show_blobs(container: str, found: Sequence[ListedBlob], output_format: Format) -> None:
    if output_format is Format.JSON:
        shown = [
            {"name": each.name, "kind": each.kind, "bytes": each.size, "modified": each.modified}
            if each.kind is not None
            else {"folder": each.name}
            for each in found
        ]
        typer.echo(json.dumps({"blobs": shown}, indent=2, ensure_ascii=False))
    elif found:
        from asterism.cli.tables import print_table, readable_bytes

        rows = [
            [each.name, "folder", "", "", ""]
            if each.kind is None
            else [each.name, each.kind, readable_bytes(each.size), each.content_type, each.modified]
            for each in found
        ]
        print_table(f"Blobs of {container}", ["name", "kind", "bytes", "type", "modified"], rows)
    else:
        typer.echo(f"There are no such blobs in {container}.")
