"""How a command says that it could not be done."""

from __future__ import annotations


class CommandFailed(Exception):
    """The text is one line for the person at the terminal; the program ends with 1.

    `detail` are lines below it, for what a line alone cannot show.
    """

    def __init__(self, text: str, *, detail: str = "") -> None:
        super().__init__(" ".join(text.split()))
        self.detail = detail
