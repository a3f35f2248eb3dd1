"""Run as a process of its own: writes groups of entities, reshapes their table, and dies by SIGKILL at a given moment.

Every acknowledged group is a line on standard output, so that the test knows what must have survived.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from asterism.keyspaces.reshaping.job import Step
from asterism.keyspaces.reshaping.load_watch import Patience
from asterism.models.tables.entities import EntityWrite, WriteKind
from asterism.models.tables.table import Table
from asterism.partitioning.effective_key import effective_key
from asterism.partitioning.split_merge import SplitPlan, SplitReason
from tests.support.tables import ACCOUNT, TableWorld, open_tables

OLD = 400
ROWS_IN_GROUP = 5
TABLE = "Victims"
NEVER = Patience(period_seconds=1000.0)


def say(text: str) -> None:
    os.write(1, (text + "\n").encode())


async def write_for_ever(table: Table, writer: int, has_written: asyncio.Event) -> None:
    """Replace groups of five rows that carry one number again and again, and now and then delete them."""
    number = 0
    while True:
        number += 1
        key, group = f"k{number * 7 % 30:02}", f"w{writer}-{number % 40}"
        kind = WriteKind.DELETE if number % 280 > 240 else WriteKind.INSERT_OR_REPLACE
        written = 0 if kind is WriteKind.DELETE else number
        rows = [f"{group}-{row}" for row in range(ROWS_IN_GROUP)]
        if kind is WriteKind.DELETE and await table.get(key, rows[0]) is None:
            continue
        say(f"try {key} {group} {written}")
        await table.apply([EntityWrite(kind, key, row, b'"n":%d' % number) for row in rows])
        say(f"done {key} {group} {written}")
        has_written.set()


async def prepare(world: TableWorld, kind: str) -> Table:
    table = await world.tables.create_table(ACCOUNT, TABLE, kind="storage")
    for number in range(0, OLD, 20):
        rows = [EntityWrite(WriteKind.INSERT, f"k{number % 30:02}", f"old-{number + row}") for row in range(20)]
        await table.apply(rows)
    if kind == "merge":
        await world.world.reshaper.finished(await world.world.reshaper.split(table.keyspace, 0))
    return table


async def reshape(world: TableWorld, table: Table, kind: str) -> None:
    reshaper, keyspace = world.world.reshaper, table.keyspace
    if kind == "merge":
        left, right = keyspace.record.map.ranges
        job = await reshaper.merge(keyspace, left.id, right.id)
    else:
        at = effective_key(keyspace.record.definition, ("k12",))
        job = await reshaper.split_at(keyspace, SplitPlan(0, at, SplitReason.LOAD))
    await reshaper.finished(job)


async def main(directory: Path, kind: str, at: str) -> None:
    armed = False

    def on_step(reached: Step) -> None:
        if armed and reached.name == at:
            os.kill(os.getpid(), signal.SIGKILL)

    async with open_tables(directory, on_step=on_step, patience=NEVER) as world:
        table = await prepare(world, kind)
        say("ready")
        armed = True
        has_written = asyncio.Event()
        writers = [asyncio.create_task(write_for_ever(table, writer, has_written)) for writer in range(4)]
        await asyncio.sleep(0.05)
        # However slow the disk is.
        await has_written.wait()
        if kind == "none":
            await asyncio.sleep(float(at))
            os.kill(os.getpid(), signal.SIGKILL)
        await reshape(world, table, kind)
        say("survived")
        for writer in writers:
            writer.cancel()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
