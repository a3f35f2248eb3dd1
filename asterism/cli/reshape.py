"""Following splits and merges that a command has begun."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from asterism.cli.failure import CommandFailed
from asterism.keyspaces.reshape_job import Step

if TYPE_CHECKING:
    from asterism.cli.client import AdminClient

Job = dict[str, Any]

_STEPS = [step.value for step in Step]


def report_begun(client: AdminClient, jobs: Sequence[Job], *, wait: bool) -> None:
    for job in jobs:
        typer.echo(f"The {describe(job)} has begun (job {job['id']}).")
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
            under_way = {job["id"]: job for job in client.get("jobs")["jobs"]}
            for job_id in waited_for & under_way.keys():
                now = under_way[job_id]
                told = f"{now['step']}, {now['entries_copied']:,} entries copied {now['trouble']}"
                progress.update(bars[job_id], completed=_STEPS.index(now["step"]), step=told.strip())
            for job_id in waited_for - under_way.keys():
                progress.update(bars[job_id], completed=len(_STEPS), step="done")
            waited_for &= under_way.keys()
            if waited_for:
                time.sleep(POLL_SECONDS)


def _outcome(client: AdminClient, job: Job) -> str:
    history = client.get("history", database=job["database"], container=job["container"])["history"]
    for done in reversed(history):
        if done["kind"] == job["kind"] and done["sources"] == job["ranges"]:
            made = _partitions(done["targets"])
            return f"The {describe(job)} is done: {made}, after a seal of {done['sealed_ms']:.1f} ms."
    raise CommandFailed(f"the {describe(job)} was given up; the server's log says why")
