"""The failure of a command."""

from __future__ import annotations

from asterism.cli.printable import printable


class CommandFailed(Exception):
    """Failure with a text of one line for the terminal; the program exits with 1.

    `detail` are further lines below it.
    """

    def __init__(self, text: str, *, detail: str = "") -> None:
        super().__init__(printable(" ".join(text.split())))
        self.detail = detail
