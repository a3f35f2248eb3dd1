"""Texts of others on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text with an escape such as `\x1b` or `\u202e` in place of every character that is not printable. Names
    and data are chosen by others: raw, such characters move the cursor, color the terminal, or reverse what follows."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
