"""Progress bars for work of the server, or of the command itself."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

POLL_SECONDS = 0.2


def progress_bars(*columns: ProgressColumn) -> Progress:
    """Return bars, shown only on a terminal until the work ends; on standard error, apart from the output."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def counting_bars() -> Progress:
    """Return bars with the completed and total counts and the elapsed time."""
    return progress_bars(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())


def follow_until_none(title: str, *, total: int, left: Callable[[], int]) -> None:
    """Poll `left`, and show it, until it is 0."""
    with counting_bars() as progress:
        bar = progress.add_task(title.replace("[", "\\["), total=total)
        while remaining := left():
            progress.update(bar, completed=max(total - remaining, 0), total=max(total, remaining))
            time.sleep(POLL_SECONDS)
