"""Words that carry no meaning of their own, by language: text indexes and searches leave them out.

The lists in `stop_words.txt` are short on purpose: articles, pronouns, prepositions, conjunctions, auxiliary
verbs. A name with a colon begins the list of a language.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final


def _read_lists(text: str) -> dict[str, frozenset[str]]:
    lists: dict[str, list[str]] = {}
    name = ""
    for word in text.split():
        if word.endswith(":"):
            name = word[:-1]
            lists[name] = []
        else:
            lists[name].append(word)
    return {language: frozenset(words) for language, words in lists.items()}


STOP_WORDS: Final = _read_lists(files(__package__).joinpath("stop_words.txt").read_text(encoding="utf-8"))
