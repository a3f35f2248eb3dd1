"""Partition keys: the cost of synthetic ones, the spread of suffixes, the time of the advisor, and its accuracy."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from statistics import mean, median

from benchmarks.key_accuracy import Accuracy, Trial, server_on
from benchmarks.key_advice import measure_advice
from benchmarks.key_containers import KeyedContainer, containers, measure_rounds, prepare
from benchmarks.key_suffixes import PARTITIONS, SUFFIXES, DayOfWrites, write_a_day
from benchmarks.key_workloads import all_workloads
from benchmarks.measurement import Measurement, not_measured
from benchmarks.processes import NotMeasured, fresh_folder, running_asterism
from benchmarks.subject import Subject
from benchmarks.wire import ACCOUNT_KEY

CASE = "keys"

TO_PLAIN_AT_LEAST = 0.95
SKEW_AT_MOST = 1.3
ADVICE_SECONDS_AT_MOST = 60.0
ADVICE_BYTES_AT_MOST = 500 * 1024 * 1024
ERROR_AT_MOST = 0.10
RANK_AT_LEAST = 0.9
EXCESS_AT_MOST = 0.05


async def measure(subject: Subject) -> list[Measurement]:
    found = [*await measure_synthetic_keys(subject), *await measure_suffixes(subject)]
    if subject.is_compared:
        return found
    return [*found, *advice_figures(subject), *await measure_accuracy(subject)]


# --- synthetic keys beside plain ones ---------------------------------------------------------------------------------


async def measure_synthetic_keys(subject: Subject) -> list[Measurement]:
    with ExitStack() as stack:
        server = stack.enter_context(running_asterism(subject, stack.enter_context(fresh_folder())))
        found = containers()
        await prepare(server.port, found)
        await measure_rounds(server.port, found)
    return [
        figure
        for plain, synthetic in zip(found[::2], found[1::2], strict=True)
        for figure in compare_with_plain(plain, synthetic)
    ]


def compare_with_plain(plain: KeyedContainer, synthetic: KeyedContainer) -> list[Measurement]:
    """The median of the ratios of the rounds, whose halves are next to each other."""
    figures = []
    for kind, rates, plain_rates in (
        ("creates", synthetic.creates_per_second, plain.creates_per_second),
        ("point reads", synthetic.reads_per_second, plain.reads_per_second),
    ):
        ratio = median(rate / plain_rate for rate, plain_rate in zip(rates, plain_rates, strict=True))
        note = f"{median(rates):,.0f}/s beside {median(plain_rates):,.0f}/s with a plain key of the same values"
        name = f"{kind}, {synthetic.name} key to plain"
        figures.append(Measurement(CASE, name, ratio, "x", at_least=TO_PLAIN_AT_LEAST, note=note))
    return figures


# --- suffixes ---------------------------------------------------------------------------------------------------------


async def measure_suffixes(subject: Subject) -> list[Measurement]:
    with ExitStack() as stack:
        folder = stack.enter_context(fresh_folder())
        server = stack.enter_context(running_asterism(subject, folder, throttle=True))
        spread = await write_a_day(server.port, with_suffix=True)
        alone = await write_a_day(server.port, with_suffix=False)
    return [
        *day_figures(f"a day with a random suffix of {SUFFIXES}", spread, skew_at_most=SKEW_AT_MOST),
        *day_figures("the same day without", alone),
    ]


def day_figures(name: str, day: DayOfWrites, *, skew_at_most: float | None = None) -> list[Measurement]:
    note = f"over {PARTITIONS} partitions, {day.accepted:,} writes accepted"
    return [
        Measurement(CASE, f"{name}: largest to mean", day.skew, "x", at_most=skew_at_most, note=note),
        Measurement(CASE, f"{name}: 429", day.throttled_share * 100, "%"),
    ]


# --- the advisor ------------------------------------------------------------------------------------------------------


def advice_figures(subject: Subject) -> list[Measurement]:
    with fresh_folder() as folder:
        try:
            cost = measure_advice(subject, folder)
        except NotMeasured as problem:
            return [not_measured(CASE, "advice on a million items", str(problem))]
    return [
        Measurement(
            CASE,
            "advice on 1,000,000 items and 200,000 requests",
            cost.cpu_seconds,
            "s",
            at_most=ADVICE_SECONDS_AT_MOST,
            note=f"of one core; {cost.seconds:.0f} s with what else ran on it",
        ),
        Measurement(CASE, "its peak memory", cost.peak_bytes, "B", at_most=ADVICE_BYTES_AT_MOST),
    ]


async def measure_accuracy(subject: Subject) -> list[Measurement]:
    with ExitStack() as stack:
        folder = stack.enter_context(fresh_folder())
        # Charges do not depend on budgets, and without them a replay takes as long as the machine needs.
        server = stack.enter_context(running_asterism(subject, folder))
        trials = [Trial(server_on(server.port, ACCOUNT_KEY), workload) for workload in all_workloads()]
        # Apart from this event loop: a replay has its own.
        found = [await asyncio.to_thread(trial.run) for trial in trials]
    return [*(figure for accuracy in found for figure in figures_of(accuracy)), *summary_of(found)]


def figures_of(accuracy: Accuracy) -> list[Measurement]:
    name = accuracy.workload
    worst = max(accuracy.keys, key=lambda key: key.use_error)
    baselines = ", ".join(f"{rule} ({key}): {accuracy.excess(key):+.0%}" for rule, key in accuracy.baselines.items())
    return [
        Measurement(
            CASE,
            f"{name}: error of RU/s",
            accuracy.use_error,
            "x",
            at_most=ERROR_AT_MOST,
            note=f"{len(accuracy.keys)} keys, the worst {worst.name} with {worst.use_error:.1%}",
        ),
        Measurement(CASE, f"{name}: error of RU/s needed", accuracy.need_error, "x"),
        Measurement(CASE, f"{name}: rank correlation", accuracy.rank_correlation, "", at_least=RANK_AT_LEAST),
        Measurement(
            CASE,
            f"{name}: choice above the best",
            accuracy.excess_of_choice,
            "x",
            at_most=EXCESS_AT_MOST,
            note=f"{accuracy.keys[0].name}; {baselines}",
        ),
    ]


def summary_of(found: list[Accuracy]) -> list[Measurement]:
    errors = [key.use_error for accuracy in found for key in accuracy.keys]
    return [
        Measurement(CASE, "all workloads: error of RU/s", mean(errors), "x", at_most=ERROR_AT_MOST),
        Measurement(
            CASE,
            "all workloads: rank correlation",
            mean(accuracy.rank_correlation for accuracy in found),
            "",
            at_least=RANK_AT_LEAST,
        ),
    ]
