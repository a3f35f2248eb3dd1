"""The portal in a real browser, and what collecting its history costs the requests of clients."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.browser import load_milliseconds, open_page
from benchmarks.case_containers import create_many
from benchmarks.case_point_read import ROUND_SECONDS, WARM_UP_SECONDS, fill, measure_reads
from benchmarks.measurement import Measurement
from benchmarks.processes import RunningServer, free_port, fresh_folder, on_all_cores, running_asterism
from benchmarks.subject import Subject
from benchmarks.wire import Caller
from benchmarks.workload import create_database

if TYPE_CHECKING:
    from playwright.async_api import Page

CASE = "portal"
LOADS = 5
NEW_SERVERS = 3
READING_SECONDS = 1.5
HEAT_MAPS = 5
HEAT_MAP_ROWS = 100
# An hour of samples of ten seconds.
HEAT_MAP_COLUMNS = 360
# On and off in turns, so that other load on the machine disturbs both.
METRIC_ROUNDS = 15

FIRST_PAGE_MS_AT_MOST = 300.0
HEAT_MAP_MS_AT_MOST = 200.0
LIST_MS_AT_MOST = 500.0
METRICS_COST_AT_MOST = 0.03

# Draws what the page draws, with the page's own code, and returns the milliseconds of script time of each drawing.
_DRAW_HEAT_MAP = """
async ({ folder, rows, columns, times }) => {
  const { drawHeatMap } = await import(`${folder}/heatmap.js`);
  const { heatColors } = await import(`${folder}/partitions_colors.js`);
  const canvas = document.createElement("canvas");
  document.querySelector("main").append(canvas);
  const share = (row, column) => Math.abs(Math.sin(row * 7 + column / 9)) * 1.2;
  const values = (row) => Array.from({ length: columns }, (_, column) => share(row, column));
  const data = {
    rows: Array.from({ length: rows }, (_, row) => ({
      label: String(row),
      values: values(row),
      throttled: values(row).map((used) => (used > 1 ? 3 : 0)),
      isCurrent: true,
    })),
    from: 1.8e9, stepSeconds: 10, scale: { max: 1, isShare: true }, cell: null,
  };
  const colors = heatColors();
  return Array.from({ length: times }, () => {
    const began = performance.now();
    drawHeatMap(canvas, data, colors);
    return performance.now() - began;
  });
}
"""


async def measure(subject: Subject) -> list[Measurement]:
    return [*await measure_pages(subject), *await measure_history(subject)]


async def measure_pages(subject: Subject) -> list[Measurement]:
    # The browser has its parent's cores, as a person's has those of the machine.
    with on_all_cores():
        return await measure_in_browser(subject)


async def measure_in_browser(subject: Subject) -> list[Measurement]:
    async with open_page() as page:
        with running_portal(subject) as (server, url):
            again = [await load_milliseconds(page, f"{url}/") for _ in range(1 + LOADS)][1:]
            heat_maps = await draw_heat_maps(page)
            caller = Caller(server.port)
            await create_database(caller)
            count = len(await create_many(caller))
            await caller.close()
            lists = [await load_milliseconds(page, f"{url}/") for _ in range(LOADS)]
            by_size = [await load_milliseconds(page, f"{url}/?sort=bytes") for _ in range(LOADS)]
        first = []
        # The browser runs already and has nothing of these servers, which have served no page.
        for _ in range(NEW_SERVERS):
            with running_portal(subject) as (_, url):
                # A person reads the greeting first; the server prepares its first page meanwhile.
                await asyncio.sleep(READING_SECONDS)
                first.append(await load_milliseconds(page, f"{url}/"))
    return [
        Measurement(
            CASE,
            "first page of a new server, median",
            median(first),
            "ms",
            at_most=FIRST_PAGE_MS_AT_MOST,
            note=f"of {NEW_SERVERS}, worst {max(first):.0f}",
        ),
        Measurement(CASE, "first page, median", median(again), "ms", at_most=FIRST_PAGE_MS_AT_MOST),
        Measurement(
            CASE,
            "heat map of 100 partitions over an hour, worst",
            max(heat_maps),
            "ms",
            at_most=HEAT_MAP_MS_AT_MOST,
            note=f"script time, of {HEAT_MAPS}",
        ),
        Measurement(
            CASE, "list of containers, median", median(lists), "ms", at_most=LIST_MS_AT_MOST, note=f"of {count:,}"
        ),
        Measurement(CASE, "list by size, median", median(by_size), "ms", at_most=LIST_MS_AT_MOST, note=f"of {count:,}"),
    ]


@contextmanager
def running_portal(subject: Subject) -> Iterator[tuple[RunningServer, str]]:
    """Run a server with a portal that asks for no key; yield it and the address of the portal."""
    port = free_port()
    options = ("--portal-port", str(port), "--portal-open")
    with (
        fresh_folder() as data,
        running_asterism(subject, data, *options, apis="nosql,portal", on_all_cores=True) as server,
    ):
        yield server, f"http://127.0.0.1:{port}"


async def draw_heat_maps(page: Page) -> list[float]:
    """Return the milliseconds of script time of each drawing, the first of them without anything prepared."""
    style = await page.evaluate("document.querySelector('link[rel=stylesheet]').href")
    about = {"folder": style.rpartition("/")[0], "rows": HEAT_MAP_ROWS, "columns": HEAT_MAP_COLUMNS, "times": HEAT_MAPS}
    return [float(milliseconds) for milliseconds in await page.evaluate(_DRAW_HEAT_MAP, about)]


async def measure_history(subject: Subject) -> list[Measurement]:
    with (
        fresh_folder() as data,
        fresh_folder() as other_data,
        running_asterism(subject, data) as on,
        running_asterism(subject, other_data, "--metrics-history", "0") as off,
    ):
        for server in (on, off):
            await fill(server.port)
        rounds = []
        for number in range(METRIC_ROUNDS):
            # Neither is always the first of a pair.
            pair = (on, off) if number % 2 else (off, on)
            found = {server.port: await measure_cost(server) for server in pair}
            rounds.append((found[on.port], found[off.port]))
    rates = [with_history.rate / without.rate for with_history, without in rounds]
    cpu = [with_history.cpu_us / without.cpu_us for with_history, without in rounds]
    return [
        Measurement(
            CASE,
            "reads per second, history off / on, minus 1",
            1 / median(rates) - 1,
            "",
            at_most=METRICS_COST_AT_MOST,
            note=f"on/off {min(rates):.2f} to {max(rates):.2f} in {METRIC_ROUNDS} pairs",
        ),
        Measurement(
            CASE,
            "CPU of a read, history on / off, minus 1",
            median(cpu) - 1,
            "",
            at_most=METRICS_COST_AT_MOST,
            note=f"on/off {min(cpu):.2f} to {max(cpu):.2f}",
        ),
    ]


@dataclass(frozen=True)
class ReadCost:
    rate: float
    # Of the server's process, for a read; other programs on the machine disturb it less than the rate.
    cpu_us: float


async def measure_cost(server: RunningServer) -> ReadCost:
    cpu_before = server.cpu_seconds()
    result = await measure_reads(server.port)
    # The time of the warm-up is in both, at the same rate.
    reads = result.rate_per_second * (ROUND_SECONDS + WARM_UP_SECONDS)
    return ReadCost(result.rate_per_second, (server.cpu_seconds() - cpu_before) / reads * 1e6)
