"""Progress and results of `export`, `import` and `rekey`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from asterism.cli.options import Format


@contextmanager
def item_bar(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar that is advanced by items."""
    from asterism.cli.progress import counting_bars

    with counting_bars() as progress:
        bar = progress.add_task(title.replace("[", "\\["), total=total)
        yield lambda count: progress.advance(bar, count)


@contextmanager
def byte_bar(title: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """Show a bar for a file that is read, updated with the bytes read so far and the items."""
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from asterism.cli.progress import progress_bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[items]:,} items"),
        TimeRemainingColumn(),
    )
    with progress_bars(*columns) as progress:
        bar = progress.add_task(title.replace("[", "\\["), total=total, items=0)
        yield lambda done, items: progress.update(bar, completed=done, items=items)


def report(verb: str, containers: Sequence[dict[str, Any]], output_format: Format) -> None:
    if output_format is Format.JSON:
        typer.echo(json.dumps({"containers": list(containers)}, ensure_ascii=False))
        return
    for container in containers:
        count = container["items"]
        typer.echo(
            f"{container['database']}/{container['container']}: {count:,} {'item' if count == 1 else 'items'} {verb}."
        )
