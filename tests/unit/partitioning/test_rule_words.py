"""Rules of synthetic partition keys in words."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.partitioning.rule_words import rule_in_words
from asterism.partitioning.synthetic_key import KeyRule

BY_DAY = {"path": "/at", "bucket": "day"}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"parts": ["/deviceId"]}, "deviceId"),
        (
            {"parts": ["/deviceId", BY_DAY], "suffix": {"kind": "random", "count": 400}},
            "deviceId + '-' + day of at, then one of 400 suffixes by a draw",
        ),
        (
            {"parts": [BY_DAY], "suffix": {"kind": "hash", "path": "/car/vin", "count": 1, "separator": "#"}},
            "day of at, then '#' and one of 1 suffix by the hash of car/vin",
        ),
        (
            {"parts": ["/day"], "suffix": {"kind": "hash", "path": "/vin", "count": 9, "earlierCounts": [5, 3]}},
            "day, then one of 9 suffixes by the hash of vin (earlier items: of 3, 5)",
        ),
        ({"parts": ["/a", "/b"], "separator": "", "missing": "absent"},
         "a + b; no value for an item that lacks one of these properties"),
        ({"parts": [{"path": "/at", "format": "%Y/%m", "unit": "ms"}]},
         "time of at as '%Y/%m' (numbers are milliseconds)"),
        ({"parts": [{**BY_DAY, "format": "%Y%m%d"}]}, "day of at as '%Y%m%d'"),
        ({"parts": [{"path": "/n", "digits": 6}, {"path": "/price", "decimals": 1}]},
         "n with 6 digits + '-' + price with 1 decimal"),
    ],
)  # fmt: skip
def test_a_rule_is_told_in_words(rule: dict[str, Any], words: str) -> None:
    assert rule_in_words(KeyRule.parse(rule)) == words
