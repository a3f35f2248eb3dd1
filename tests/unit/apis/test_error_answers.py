"""The doors' answers for every error are the recorded ones, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apis.error_answers import DOORS, examples, examples_at, unexpected

RECORDED: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("error_answers.json").read_text("utf-8"))
CASES = [(door, name) for door, answers in RECORDED.items() if door in DOORS for name in answers]


@pytest.mark.parametrize(("door", "name"), CASES, ids=lambda text: text)
def test_an_error_is_answered_as_recorded(door: str, name: str) -> None:
    assert DOORS[door](examples()[name]) == RECORDED[door][name]


@pytest.mark.parametrize("door", sorted(RECORDED["unexpected"]))
def test_a_failure_that_no_error_describes_is_answered_as_recorded(door: str) -> None:
    assert unexpected()[door] == RECORDED["unexpected"][door]


@pytest.mark.parametrize("door", list(DOORS))
def test_every_recorded_error_can_still_reach_its_door(door: str) -> None:
    assert set(RECORDED[door]) <= set(examples_at(door))
