"""Bars for work that goes on elsewhere, or takes a while here."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

POLL_SECONDS = 0.2


def progress_bars(*columns: ProgressColumn) -> Progress:
    """On a terminal, and gone with the work; to standard error, for the output may be read by a program."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def counting_bars() -> Progress:
    """What is done, of how much, and for how long."""
    return progress_bars(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())


def follow_until_none(words: str, *, total: int, left: Callable[[], int]) -> None:
    """Asks `left` again and again, and shows it, until it is 0."""
    with counting_bars() as progress:
        bar = progress.add_task(words.replace("[", "\\["), total=total)
        while remaining := left():
            progress.update(bar, completed=max(total - remaining, 0), total=max(total, remaining))
            time.sleep(POLL_SECONDS)
