"""Names and data of others on a terminal."""

from __future__ import annotations

import pytest

from asterism.cli.failure import CommandFailed
from asterism.cli.printable import printable
from asterism.cli.tables import print_table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ü 名 [b]", "ü 名 [b]"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("two\nlines", "two\\nlines"),
        ("\x9b2J", "\\x9b2J"),
        ("\udcff", "\\udcff"),
    ],
)
def test_a_character_that_is_not_printable_is_shown_as_its_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_table_shows_names_without_effects_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("of \x1b[1mx", ["na\x1bme"], [["\x1b[31mred"], ["a\u202eb"], ["[b]bold[/b]"]])
    written = capsys.readouterr().out
    assert all(text in written for text in ("of \\x1b[1mx", "na\\x1bme", "\\x1b[31mred", "a\\u202eb", "[b]bold[/b]"))
    assert written.replace("\n", "").isprintable()


def test_a_failure_shows_names_without_effects_on_the_terminal() -> None:
    assert str(CommandFailed("\x1b[31mred is not here")) == "\\x1b[31mred is not here"
