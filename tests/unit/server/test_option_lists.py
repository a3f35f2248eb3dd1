"""Options for servers that no command line starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from asterism.server.configure import configured, serve_options
from asterism.testing.option_lists import UnknownOption, options_of_keywords, values_of


def test_keywords_become_options() -> None:
    keywords = {"no_throttle": True, "https": False, "seed": None, "limit": ["a=1", "b=2"], "workers": 3}
    assert options_of_keywords(keywords) == ["--no-throttle", "--limit=a=1", "--limit=b=2", "--workers=3"]


def test_options_have_the_values_that_the_command_gives_them() -> None:
    options = ["--data", "here", "--no-throttle", "--limit", "item-bytes=1KB", "--workers", "2", "--slow-log-ms", "5"]
    values = values_of(options, serve_options())
    assert values == {
        "data": Path("here"),
        "no_throttle": True,
        "limit": ["item-bytes=1KB"],
        "workers": 2,
        "slow_log_ms": 5.0,
    }
    config = configured(values)
    assert (config.throttle, config.workers, config.limits.item_bytes_max, config.slow_seconds) == (
        False,
        2,
        1024,
        0.005,
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--no-such"], "unrecognized arguments: --no-such"),
        (["--workers", "many"], "invalid int value: 'many'"),
        (["--workers", "65"], "--workers must be at most 64"),
        (["--port", "-1"], "--port must be at least 0"),
        (["--data"], "expected one argument"),
        (["--work", "2"], "unrecognized arguments"),
    ],
)
def test_a_wrong_option_is_refused_in_a_line(options: list[str], reason: str) -> None:
    with pytest.raises(UnknownOption, match=reason):
        values_of(options, serve_options())
