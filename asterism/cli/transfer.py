"""What `export`, `import` and `rekey` show while they work and when they are done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from asterism.cli.options import Format


@contextmanager
def item_bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar that is advanced by items."""
    from asterism.cli.progress import counting_bars

    with counting_bars() as progress:
        bar = progress.add_task(what.replace("[", "\\["), total=total)
        yield lambda count: progress.advance(bar, count)


@contextmanager
def byte_bar(what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """A bar for a file that is read: told the bytes read so far and the items."""
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
        bar = progress.add_task(what.replace("[", "\\["), total=total, items=0)
        yield lambda done, items: progress.update(bar, completed=done, items=items)


def report(verb: str, told: Sequence[dict[str, Any]], output_format: Format) -> None:
    if output_format is Format.JSON:
        typer.echo(json.dumps({"containers": list(told)}, ensure_ascii=False))
        return
    for one in told:
        count = one["items"]
        typer.echo(f"{one['database']}/{one['container']}: {count:,} {'item' if count == 1 else 'items'} {verb}.")
