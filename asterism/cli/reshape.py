"""Progress of splits and merges that a command has started."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from asterism.cli.failure import CommandFailed
from asterism.keyspaces.reshaping.job import Step

if TYPE_CHECKING:
    from asterism.cli.client import AdminClient

Job = dict[str, Any]

_STEPS = [step.value for step in Step]


def report_started(client: AdminClient, jobs: Sequence[Job], *, wait: bool) -> None:
    for job in jobs:
        typer.echo(f"The {describe(job)} has started (job {job['id']}).")
    if wait:
        _follow(client, jobs)
        for job in jobs:
            typer.echo(_outcome(client, job))


def describe(job: Job) -> str:
    return f"{job['kind']} of {_partitions(job['ranges'])} of {job['database']}/{job['container']}"


def _partitions(range_ids: Sequence[str]) -> str:
    return f"{'partition' if len(range_ids) == 1 else 'partitions'} {' and '.join(range_ids)}"


def _follow(client: AdminClient, jobs: Sequence[Job]) -> None:
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    from asterism.cli.progress import POLL_SECONDS, progress_bars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[step]}"), TimeElapsedColumn())
    with progress_bars(*columns) as progress:
        bars = {
            job["id"]: progress.add_task(f"{job['kind']} {'+'.join(job['ranges'])}", total=len(_STEPS), step="")
            for job in jobs
        }
        waited_for = set(bars)
        while waited_for:
            in_progress = {job["id"]: job for job in client.get("jobs")["jobs"]}
            for job_id in waited_for & in_progress.keys():
                now = in_progress[job_id]
                step = f"{now['step']}, {now['entries_copied']:,} entries copied {now['trouble']}"
                progress.update(bars[job_id], completed=_STEPS.index(now["step"]), step=step.strip())
            for job_id in waited_for - in_progress.keys():
                progress.update(bars[job_id], completed=len(_STEPS), step="done")
            waited_for &= in_progress.keys()
            if waited_for:
                time.sleep(POLL_SECONDS)


def _outcome(client: AdminClient, job: Job) -> str:
    history = client.get("history", database=job["database"], container=job["container"])["history"]
    for done in reversed(history):
        if done["kind"] == job["kind"] and done["sources"] == job["ranges"]:
            made = _partitions(done["targets"])
            return f"The {describe(job)} is done: {made}, after a seal of {done['sealed_ms']:.1f} ms."
    raise CommandFailed(f"the {describe(job)} was abandoned; see the server's log for the reason")
