"""A bar for work of which is known how much is left."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_SECONDS = 0.2


def follow_until_none(words: str, *, total: int, left: Callable[[], int]) -> None:
    """Asks `left` again and again, and shows it, until it is 0. Into a pipe nothing is shown."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(words.replace("[", "\\["), total=total)
        while remaining := left():
            progress.update(bar, completed=max(total - remaining, 0), total=max(total, remaining))
            time.sleep(POLL_SECONDS)
