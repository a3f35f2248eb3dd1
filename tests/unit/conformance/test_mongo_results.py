"""Sums of the outcomes that the suites for MongoDB servers have."""

from __future__ import annotations

from pathlib import Path

from conformance.mongo.functional_plugin import tier_of
from conformance.mongo.results import read_lines, table


def test_the_last_outcome_of_a_test_counts(tmp_path: Path) -> None:
    results = tmp_path / "results.tsv"
    results.write_text(
        "must\tcore/a/b/c/d/test_x.py\tone\tfailed\n"
        "must\tcore/a/b/c/d/test_x.py\tone\tpassed\n"
        "should\tcore/e/test_y.py\ttwo\tfailed\n"
        "should\tcore/e/test_y.py\tthree\tskipped\n"
        "a line that was cut\n"
    )
    assert table("Folder", read_lines(results), lambda line: line.folder)[2:] == [
        "| core/a/b/c | 1 | 1 | 100.0 % | 0 |",
        "| core/e | 0 | 1 | 0.0 % | 1 |",
        "| **all** | 1 | 2 | 50.0 % | 1 |",
    ]


def test_the_most_precise_folder_decides_on_the_tier() -> None:
    assert tier_of("core/operator/stages/match/test_x.py") == "must"
    assert tier_of("core/operator/stages/densify/test_x.py") == "should"
    assert tier_of("core/operator/stages/search/test_x.py") == "none"
    assert tier_of("elsewhere/test_x.py") == "none"
