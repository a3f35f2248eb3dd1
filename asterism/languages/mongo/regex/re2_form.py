"""A regular expression in the notation of RE2, which needs time in proportion to the text whatever the pattern is."""

from __future__ import annotations

from typing import Final

from asterism.languages.mongo.regex import sets
from asterism.languages.mongo.regex.nodes import (
    Anchor,
    Character,
    CharacterSet,
    Choice,
    Group,
    Mode,
    Node,
    Place,
    Repeat,
    Sequence,
)
from asterism.values.linear_patterns import LinearPattern, PatternRefused, compile_linear

# The limit of RE2 for the bounds of a quantifier.
_REPEAT_MAX: Final = 1000
_PLACES: Final = {
    Place.TEXT_START: r"\A",
    Place.TEXT_END: r"\z",
    # The same but for a text that ends with a newline: `ends_before_newline` tells whether that matters.
    Place.LAST_LINE_END: r"\z",
    Place.LINE_START: "(?m:^)",
    Place.LINE_END: "(?m:$)",
}
_ASCII_WORD: Final = sets.word_set(is_unicode=False)


class Unsupported(Exception):
    """Raised for a construct that RE2 does not have."""


def form_of(node: Node) -> str:
    match node:
        case Character(text=text, ignores_case=ignores_case):
            form = text if text.isalnum() else sets.character_form(text)
            return f"(?i:{form})" if ignores_case else form
        case CharacterSet(form=form, ignores_case=ignores_case):
            return f"(?i:{form})" if ignores_case else form
        case Anchor(place=place, word=word):
            if place in (Place.WORD_BOUNDARY, Place.NO_WORD_BOUNDARY) and word == _ASCII_WORD:
                return r"\b" if place is Place.WORD_BOUNDARY else r"\B"
            if place not in _PLACES:
                raise Unsupported
            return _PLACES[place]
        case Group(body=body, number=number):
            return f"(?:{form_of(body)})" if number is None else f"({form_of(body)})"
        case Repeat(body=body, least=least, most=most, mode=mode):
            if mode is Mode.POSSESSIVE or max(least, most or 0) > _REPEAT_MAX:
                raise Unsupported
            bounds = f"{{{least},{'' if most is None else most}}}"
            return f"(?:{form_of(body)}){bounds}{'?' if mode is Mode.LAZY else ''}"
        case Sequence(items=items):
            return "".join(form_of(item) for item in items)
        case Choice(branches=branches, shares_numbers=False):
            return "(?:" + "|".join(form_of(branch) for branch in branches) + ")"
        case _:
            raise Unsupported


def ends_before_newline(node: Node) -> bool:
    """Return whether a match may depend on a newline at the very end of the text."""
    match node:
        case Anchor(place=place):
            return place is Place.LAST_LINE_END
        case Group(body=body) | Repeat(body=body):
            return ends_before_newline(body)
        case Sequence(items=parts) | Choice(branches=parts):
            return any(ends_before_newline(part) for part in parts)
        case _:
            return False


def compile_form(form: str) -> LinearPattern:
    """Compile a pattern of RE2. Raises Unsupported if it is not one, or too large."""
    try:
        return compile_linear(form)
    except PatternRefused:
        raise Unsupported from None
