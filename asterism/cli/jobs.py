"""`asterism jobs`."""

from __future__ import annotations

import json

import typer

from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat


def jobs(
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the splits, merges and other background work in progress."""
    from asterism.cli.client import AdminClient

    reply = AdminClient(endpoint, key, insecure=insecure).get("jobs")
    if output_format is Format.JSON:
        typer.echo(json.dumps(reply, indent=2, ensure_ascii=False))
        return
    from asterism.cli.tables import print_table

    if not reply["jobs"]:
        typer.echo("No split, merge, move, index transformation or re-keying is in progress.")
    else:
        print_table(
            "Work in progress",
            ["id", "what", "why", "step", "entries copied", "trouble"],
            [
                [
                    job["id"],
                    f"{job['kind']} {'+'.join(job['ranges'])} of {job['database']}/{job['container']}",
                    job["reason"],
                    job["step"],
                    f"{job['entries_copied']:,}",
                    job["trouble"] or "-",
                ]
                for job in reply["jobs"]
            ],
        )
    if reply["tasks"]:
        print_table(
            "Background work on items",
            ["id", "what", "items done"],
            [
                [task["id"], f"{task['kind']} in {task['database']}/{task['container']}", f"{task['items_done']:,}"]
                for task in reply["tasks"]
            ],
        )
