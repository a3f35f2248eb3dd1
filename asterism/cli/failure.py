"""How a command says that it could not be done."""

from __future__ import annotations


class CommandFailed(Exception):
    """The text is one line for the person at the terminal; the program ends with 1."""

    def __init__(self, text: str) -> None:
        super().__init__(" ".join(text.split()))
