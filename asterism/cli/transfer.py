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
    """A bar that is advanced by items, on a terminal; to standard error, for the output may be read by a program."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(what.replace("[", "\\["), total=total)
        yield lambda count: progress.advance(bar, count)


@contextmanager
def byte_bar(what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """A bar for a file that is read: told the bytes read so far and the items."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[items]:,} items"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(what.replace("[", "\\["), total=total, items=0)
        yield lambda done, items: progress.update(bar, completed=done, items=items)


def report(verb: str, told: Sequence[dict[str, Any]], output_format: Format) -> None:
    if output_format is Format.JSON:
        typer.echo(json.dumps({"containers": list(told)}, ensure_ascii=False))
        return
    for one in told:
        count = one["items"]
        typer.echo(f"{one['database']}/{one['container']}: {count:,} {'item' if count == 1 else 'items'} {verb}.")
