"""`asterism promote-tenant`."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli import options
from asterism.cli.failure import CommandFailed

if TYPE_CHECKING:
    from asterism.cli.client import AdminClient

PROMOTE_TENANT_EXAMPLES = """[bold]Examples[/bold]

Move the items of a large tenant into a container of its own, while clients go on:\n
  asterism promote-tenant shop orders contoso --to orders-contoso --ru 4000

See whether clients still use the old container for it, then stop forwarding their requests:\n
  asterism promote-tenant shop orders contoso --status\n
  asterism promote-tenant shop orders contoso --end"""

KeyArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[KEY]",
        help='The partition key: a text, or a JSON array such as \\[42] or \\["a", "b"].',
        show_default=False,
    ),
]
Target = Annotated[str | None, typer.Option("--to", metavar="NAME", help="The new container.", show_default=False)]
Ru = Annotated[
    int | None,
    typer.Option("--ru", metavar="RU/S", help="Its throughput; by default the old one's.", show_default=False),
]
Maximum = Annotated[
    int | None, typer.Option("--autoscale", metavar="RU/S", help="Its highest throughput.", show_default=False)
]
Paths = Annotated[
    list[str] | None,
    typer.Option(
        "--path",
        metavar="/PATH",
        help="Its partition key: the old one's paths, and /id behind them to spread the items.",
        show_default=False,
    ),
]
Status = Annotated[bool, typer.Option("--status", help="Show the state, and when a request was forwarded last.")]
End = Annotated[bool, typer.Option("--end", help="Stop forwarding; the old container refuses writes of the key.")]
Forget = Annotated[bool, typer.Option("--forget", help="Admit the key to the old container again, as a new one.")]


def promote_tenant(
    database: options.Database,
    container: options.Container,
    key_value: KeyArgument = None,
    to: Target = None,
    ru: Ru = None,
    autoscale: Maximum = None,
    path: Paths = None,
    status: Status = False,
    end: End = False,
    forget: Forget = False,
    output_format: options.OutputFormat = options.Format.TABLE,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    key: options.Key = options.DEFAULT_KEY,
    insecure: options.Insecure = False,
) -> None:
    """Move one partition key into a container of its own, online.

    Requests that clients still send to the old container are forwarded, until --end. The server does the work, and
    continues after this command ends or the server restarts; run it again to see the progress."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    names: dict[str, Any] = {"database": database, "container": container}
    if key_value is None:
        _show([job for job in _jobs(client) if _is_about(job, names)], output_format)
        return
    names["key"] = _key(key_value)
    if end or forget:
        job = client.post(f"promotions/{'end' if end else 'forget'}", names)["promotion"]
    elif status:
        job = _required(client, names)
    else:
        job = _promote(client, names, {"target": to, "ru": ru, "autoscale": autoscale, "path": path or None})
    if output_format is options.Format.JSON:
        typer.echo(json.dumps(job, ensure_ascii=False))
    elif forget:
        typer.echo(f"Forgotten: {database}/{container} admits items with the key again.")
    else:
        typer.echo(_outcome(job))


def _key(text: str) -> list[object]:
    if not text.startswith("["):
        return [text]
    try:
        values = json.loads(text)
    except ValueError:
        raise CommandFailed(f"the key {text!r} begins like a JSON array, and is none") from None
    return values if isinstance(values, list) else [text]


def _promote(client: AdminClient, names: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    known = _find(client, names)
    if known is None:
        if asked["target"] is None:
            raise CommandFailed("this partition key is not promoted; name a new container with --to")
        client.post("promotions", {**names, **{name: value for name, value in asked.items() if value is not None}})
    elif asked["target"] not in (None, known["target"]):
        raise CommandFailed(f"this partition key is promoted to {known['target']!r} already")
    return _follow(client, names)


def _jobs(client: AdminClient) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = client.get("promotions")["promotions"]
    return jobs


def _is_about(job: dict[str, Any], names: dict[str, Any]) -> bool:
    return all(job[name] == value for name, value in names.items())


def _find(client: AdminClient, names: dict[str, Any]) -> dict[str, Any] | None:
    return next((job for job in _jobs(client) if _is_about(job, names)), None)


def _required(client: AdminClient, names: dict[str, Any]) -> dict[str, Any]:
    job = _find(client, names)
    if job is None:
        raise CommandFailed("this partition key is not promoted, or no longer: one of the containers was deleted")
    return job


def _follow(client: AdminClient, names: dict[str, Any]) -> dict[str, Any]:
    """Show the job until its requests are forwarded and the old copies are deleted."""
    from asterism.cli.progress import POLL_SECONDS, counting_bars

    with counting_bars() as progress:
        bar = progress.add_task("")
        while True:
            job = _required(client, names)
            words = f"{job['phase']} {job['trouble']}".strip().replace("[", "\\[")
            total = max(job["source_items"], job["target_items"])
            progress.update(bar, description=words, completed=job["target_items"], total=total)
            if job["phase"] == "forwarding":
                return job
            time.sleep(POLL_SECONDS)


def _show(jobs: list[dict[str, Any]], output_format: options.Format) -> None:
    if output_format is options.Format.JSON:
        typer.echo(json.dumps({"promotions": jobs}, ensure_ascii=False))
    elif not jobs:
        typer.echo("No partition key of this container is promoted.")
    for job in jobs if output_format is options.Format.TABLE else ():
        typer.echo(_outcome(job))


def _outcome(job: dict[str, Any]) -> str:
    key, target = json.dumps(job["key"], ensure_ascii=False), f"{job['database']}/{job['target']}"
    if job["phase"] != "forwarding":
        progress = f"{job['source_items']:,} items in the old container, {job['target_items']:,} in {target}"
        return f"{key}: {job['phase']}, {progress}."
    if job["state"] == "ended":
        return f"{key}: {job['target_items']:,} items in {target}. Requests are not forwarded any more."
    used = f"{job['forwarded_requests']:,} so far, the last at {job['last_forwarded_at'] or 'no time'}"
    return f"{key}: {job['target_items']:,} items in {target}. Requests are forwarded until --end: {used}."
