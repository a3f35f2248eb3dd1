"""`python -m tests.simulation SEED` or `FIRST:END`: run simulations, and print the seeds that break a rule."""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.simulation import Broken, simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("seeds", help="a seed, or FIRST:END for all seeds from FIRST up to END")
    parser.add_argument("--show", action="store_true", help="print every event")
    given = parser.parse_args()
    first, colon, end = given.seeds.partition(":")
    seeds = range(int(first), int(end)) if colon else range(int(first), int(first) + 1)
    broken = [seed for seed in seeds if not _run(seed, shows_all=given.show or len(seeds) == 1)]
    if len(seeds) > 1:
        print(f"{len(seeds)} seeds, {len(broken)} broken: {broken}" if broken else f"{len(seeds)} seeds, none broken")
    return 1 if broken else 0


def _run(seed: int, *, shows_all: bool) -> bool:
    began_at = time.perf_counter()
    try:
        report = simulate(seed, keeps_all_lines=shows_all)
    except Broken as broken:
        print(broken)
        return False
    if shows_all:
        print(*report.lines, sep="\n")
        print(
            f"seed {seed}: {report.operations} operations, {report.jobs} splits, merges and moves, "
            f"{report.starts} starts, {report.virtual_seconds:.1f} virtual seconds, "
            f"{time.perf_counter() - began_at:.2f} seconds, digest {report.digest}"
        )
    return True


if __name__ == "__main__":
    sys.exit(main())
