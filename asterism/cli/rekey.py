"""`asterism rekey`."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli import options
from asterism.cli.failure import CommandFailed
from asterism.cli.key_rules import rules_of

if TYPE_CHECKING:
    from asterism.cli.client import AdminClient

REKEY_EXAMPLES = """[bold]Examples[/bold]

Copy a container into a new one with another partition key, and keep the copy up to date:\n
  asterism rekey shop orders --to orders-by-day --path /day

The same with a synthetic key, which the server computes from other properties:\n
  asterism rekey shop orders --to orders-by-day --path /pk --synthetic '{"parts": ["/customer", "/day"]}'

Make the old one read-only, and end the copy when both are equal:\n
  asterism rekey shop orders --to orders-by-day --switch"""

RekeyTarget = Annotated[str, typer.Option("--to", metavar="NAME", help="The new container.", show_default=False)]
Paths = Annotated[
    list[str] | None,
    typer.Option("--path", metavar="/PATH", help="The new partition key. Several are its levels.", show_default=False),
]
Synthetic = Annotated[
    str | None,
    typer.Option(
        "--synthetic",
        metavar="JSON",
        help="The rule of a computed partition key, or an object with a rule by path. See: asterism synthetic-key",
        show_default=False,
    ),
]
Switch = Annotated[
    bool, typer.Option("--switch", help="Make the old one read-only, and stop following when both are equal.")
]


def rekey(
    database: options.Database,
    container: options.Container,
    to: RekeyTarget,
    path: Paths = None,
    synthetic: Synthetic = None,
    switch: Switch = False,
    output_format: options.OutputFormat = options.Format.TABLE,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    key: options.Key = options.DEFAULT_KEY,
    insecure: options.Insecure = False,
) -> None:
    """Copy a container into one with another partition key, online.

    The server does the work, and continues after this command ends or the server restarts; run it again to see the
    progress."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    names = {"database": database, "container": container, "target": to}
    if _find(client, names) is None:
        if not path:
            raise CommandFailed(f"{database}/{container} is not being copied to {to!r}; start the copy with --path")
        rules = {} if synthetic is None else {"synthetic": rules_of(synthetic, path)}
        client.post("rekey", {**names, "path": path, **rules})
    if switch:
        _follow(client, names, until="is_caught_up")
        client.post("rekey/switch", names)
        job = _follow(client, names, until="is_switched")
    else:
        job = _follow(client, names, until="is_caught_up")
    if output_format is options.Format.JSON:
        typer.echo(json.dumps(job, ensure_ascii=False))
    else:
        typer.echo(_outcome(job))
    if job["uncopied_count"]:
        raise CommandFailed(
            f"{job['uncopied_count']:,} items do not fit into {to!r}; change or delete them in {container!r}",
            detail="\n".join(
                f"  {item['id']} {json.dumps(item['partition_key'])}: {item['reason']}" for item in job["uncopied"]
            ),
        )


def _find(client: AdminClient, names: dict[str, str]) -> dict[str, Any] | None:
    jobs = client.get("rekeys")["rekeys"]
    return next((job for job in jobs if all(job[name] == value for name, value in names.items())), None)


def _follow(client: AdminClient, names: dict[str, str], *, until: str) -> dict[str, Any]:
    """Show the job until it reaches the state `until`; return it."""
    from asterism.cli.progress import POLL_SECONDS, counting_bars

    with counting_bars() as progress:
        bar = progress.add_task("")
        while True:
            job = _find(client, names)
            if job is None:
                raise CommandFailed("the copy was abandoned, because one of the containers was deleted")
            words = f"{job['phase']} {job['trouble']}".strip().replace("[", "\\[")
            progress.update(bar, description=words, completed=job["target_items"], total=job["source_items"])
            if job["phase"] == "failed":
                raise CommandFailed(
                    f"abandoned: more than {job['uncopied_count']:,} items do not fit into the new container, such as "
                    f"{job['uncopied'][0]['id']!r}: {job['uncopied'][0]['reason']}"
                )
            if job["phase"] == "switched" or _has_stopped(job, until):
                return job
            time.sleep(POLL_SECONDS)


def _has_stopped(job: dict[str, Any], until: str) -> bool:
    if until == "is_caught_up":
        return bool(job["is_caught_up"])
    # The server undoes a switch if it finds items that do not fit.
    return bool(job["uncopied_count"]) and not job["is_switching"]


def _outcome(job: dict[str, Any]) -> str:
    names = f"{job['database']}/{job['container']}", f"{job['database']}/{job['target']}"
    counts = f"{job['source_items']:,} items in {names[0]}, {job['target_items']:,} in {names[1]}"
    if job["phase"] == "switched":
        return f"Switched: {counts}. {names[0]} is read-only, and both containers are equal."
    return f"Copied: {counts}. Changes are followed until --switch."
