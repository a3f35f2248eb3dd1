"""`asterism simulate`."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.failure import CommandFailed
from asterism.cli.options import Format, OutputFormat

if TYPE_CHECKING:
    from asterism.advisor.simulation import Simulation, Workload

SIMULATE_EXAMPLES = """[bold]Examples[/bold]

A petabyte and three million RU/s on forty nodes, with keys that differ in size:\n
  asterism simulate --data 1PB --ru 3M --nodes 40 --keys 50M --skew 0.5

Created small, raised later, partitions kept evenly spread:\n
  asterism simulate --data 400GB --ru 100000 --created-with 18000 --nodes 3 --spread"""

_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3}
_BYTE_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50}


def simulate(
    data: Annotated[str, typer.Option(metavar="BYTES", help="Size of the container, such as 500GB or 2PB.")],
    ru: Annotated[str, typer.Option(metavar="RU/S", help="Its throughput, such as 50000 or 3M.")],
    nodes: Annotated[int, typer.Option(min=1, max=10_000, help="Number of nodes.")] = 1,
    keys: Annotated[str, typer.Option(metavar="N", help="Number of partition key values, such as 50M.")] = "1M",
    skew: Annotated[
        float, typer.Option(min=0, max=3, help="How much they differ: the k-th has 1 / k ** SKEW; 0: not at all.")
    ] = 0.0,
    autoscale: Annotated[bool, typer.Option("--autoscale", help="The throughput is an autoscale maximum.")] = False,
    created_with: Annotated[
        str | None, typer.Option("--created-with", metavar="RU/S", help="Its throughput at creation, raised since.")
    ] = None,
    spread: Annotated[bool, typer.Option("--spread", help="Equally many of its partitions on each node.")] = False,
    limit: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A limit of the server; as for serve.")
    ] = None,
    output_format: OutputFormat = Format.TABLE,
) -> None:
    """Compute the partitions, bytes and request units per node that a data set will have, by the server's own rules."""
    from asterism.advisor.simulation import Workload
    from asterism.advisor.simulation import simulate as compute
    from asterism.partitioning.placement import NodeLoad, Rules
    from asterism.server.config import StartRefused
    from asterism.server.limit_options import parse_limits
    from asterism.values.identifiers import NodeNumber

    try:
        limits = parse_limits(limit or ())
    except StartRefused as refusal:
        raise CommandFailed(str(refusal)) from None
    workload = Workload(
        data_bytes=_amount(data, _BYTE_UNITS, "--data"),
        ru_per_second=_amount(ru, _UNITS, "--ru"),
        keys=_amount(keys, _UNITS, "--keys"),
        skew=skew,
        autoscale=autoscale,
        created_with=None if created_with is None else _amount(created_with, _UNITS, "--created-with"),
    )
    fleet = [NodeLoad(NodeNumber(number)) for number in range(1, nodes + 1)]
    outcome = compute(workload, fleet, limits, rules=Rules(spread=spread))
    if output_format is Format.JSON:
        typer.echo(json.dumps(_report(outcome), indent=2))
    else:
        _show(workload, outcome)


def _amount(given: str, units: dict[str, int], option: str) -> int:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", given.strip().replace(",", ""))
    unit = None if match is None else units.get(match[2].upper() or next(iter(units)))
    if match is None or unit is None or float(match[1]) * unit < 1:
        raise CommandFailed(f"{option} is {given!r}; write a number with {', '.join(filter(None, units))} behind it")
    return int(float(match[1]) * unit)


def _report(outcome: Simulation) -> dict[str, object]:
    sizes = [partition.size_bytes for partition in outcome.partitions]
    return {
        "partitions": len(outcome.partitions),
        "partitions_at_creation": outcome.at_creation,
        "partitions_for_throughput": outcome.after_throughput,
        "partition_bytes_max": max(sizes),
        "ru_per_partition": round(outcome.ru_per_partition, 2),
        "hottest_partition": round(outcome.hottest, 2),
        "partitions_stuck": sum(partition.is_stuck for partition in outcome.partitions),
        "keys_too_large": outcome.keys_too_large,
        "moves": outcome.moves,
        "nodes": [asdict(node) for node in outcome.nodes],
    }


def _show(workload: Workload, outcome: Simulation) -> None:
    from asterism.cli.tables import print_table, readable_bytes

    largest_bytes = max(partition.size_bytes for partition in outcome.partitions)
    typer.echo(
        f"{len(outcome.partitions):,} partitions of at most {readable_bytes(largest_bytes)} "
        f"({outcome.at_creation:,} at creation, {outcome.after_throughput:,} for the throughput), "
        f"{outcome.ru_per_partition:,.0f} RU/s each."
    )
    print_table(
        "",
        ["node", "partitions", "bytes", "RU/s share", "RU/s demand"],
        [
            [
                str(node.node),
                f"{node.partitions:,}",
                readable_bytes(node.size_bytes),
                f"{node.ru_share:,.0f}",
                f"{node.ru_demand:,.0f}",
            ]
            for node in outcome.nodes
        ],
    )
    if outcome.hottest > 1:
        typer.echo(
            f"The hottest partition gets {outcome.hottest:.1f} times its share if requests are spread like bytes: "
            f"{workload.ru_per_second / outcome.hottest:,.0f} RU/s can be used before it answers 429."
        )
    if outcome.keys_too_large:
        typer.echo(
            f"{outcome.keys_too_large:,} partition key values are too large for a logical partition; choose a key with "
            "more values, or add a level to it."
        )
