"""`asterism rebalance`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat

Apply = Annotated[
    bool, typer.Option("--apply/--dry-run", help="Make the moves and show their progress; or only show the plan.")
]


def rebalance(
    apply: Apply = False,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Even out the nodes by bytes and request units, as the placement rules allow.

    The server makes the moves, and continues after this command ends."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    plan = client.get("rebalance")
    is_table = output_format is Format.TABLE
    if is_table:
        _show(plan)
    if apply and plan["moves"]:
        from asterism.cli.progress import follow_until_none

        plan = client.post("rebalance", {})
        follow_until_none("moving", total=len(plan["moves"]), left=lambda: int(client.get("nodes")["moves_wanted"]))
    if not is_table:
        typer.echo(json.dumps({**plan, "applied": apply}, indent=2, ensure_ascii=False))
    elif plan["moves"]:
        count = f"{len(plan['moves']):,} {'move' if len(plan['moves']) == 1 else 'moves'}"
        typer.echo(f"{count} made." if apply else f"{count} planned; --apply makes them.")


def _show(plan: dict[str, Any]) -> None:
    from asterism.cli.tables import print_table

    if not plan["moves"]:
        typer.echo("Nothing to move: the nodes are even, as far as the rules allow.")
    rows = [[move["partition"], move["from"], move["to"]] for move in plan["moves"]]
    print_table("Moves", ["partition", "from", "to"], rows)
    stuck = [[partition["partition"], partition["node"]] for partition in plan["stuck"]]
    print_table("Partitions that no node may hold under their rules", ["partition", "node"], stuck)
