"""Regular expressions on RE2, whose time is linear in the text for all patterns.

docs/decisions/0008-regular-expressions.md lists the features that RE2 leaves out. A pattern that cannot be used is an
error and not undefined: a query that finds nothing would hide the mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql.functions.arguments import integer_of
from asterism.languages.cosmos_sql.functions.function import Function
from asterism.limits import MIB
from asterism.reading.turns import pause
from asterism.values.linear_patterns import PatternRefused, compile_linear
from asterism.values.undefined import UNDEFINED

_MODIFIERS = frozenset("imsx")
_PATTERN_CHARACTERS_MAX = 2048
_PATTERNS_KEPT = 256
# For a compiled pattern: its program and its cached states.
_PATTERN_BYTES_MAX = MIB
# RE2's slowest engine takes a step for each instruction at each character; this many take a fifth of a second. (Its
# usual engine takes a step for each character.) A search cannot be interrupted.
_MATCHING_STEPS_MAX = 20_000_000
# A search may read the rest of the text before it finds a short match, and there is a search for each match.
_SEARCHED_CHARACTERS_MAX = 1_000_000_000
_MATCHES_MAX = 100_000
_BLANKS = frozenset(" \t\n\r\f\v")


@lru_cache(maxsize=_PATTERNS_KEPT)
def _compile(pattern: str, modifiers: str) -> Any:
    """Compile a pattern. Raises MalformedRequest if it is too long, not understood or needs too much memory."""
    if len(pattern) > _PATTERN_CHARACTERS_MAX:
        raise MalformedRequest(
            reason=f"The regular expression has {len(pattern)} characters. Use at most {_PATTERN_CHARACTERS_MAX}."
        )
    if not set(modifiers) <= _MODIFIERS:
        raise MalformedRequest(reason=f"The modifiers '{modifiers}' are not known. Use i, m, s and x.")
    flags = "".join(sorted(set(modifiers) - {"x"}))
    body = _without_blanks(pattern) if "x" in modifiers else pattern
    try:
        return compile_linear(f"(?{flags}){body}" if flags else body, memory_bytes_max=_PATTERN_BYTES_MAX)
    except PatternRefused as refusal:
        shown = pattern[:64].encode(errors="replace").decode()
        raise MalformedRequest(reason=f"The regular expression '{shown}' cannot be used: {refusal}.") from None


def _without_blanks(pattern: str) -> str:
    """Return the pattern without white space and comments outside sets, which RE2 itself does not skip."""
    kept: list[str] = []
    position, in_set = 0, False
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            kept.append(pattern[position : position + 2])
            position += 2
            continue
        if in_set:
            in_set = character != "]"
        elif character == "#":
            line_end = pattern.find("\n", position)
            position = len(pattern) if line_end < 0 else line_end
            continue
        elif character == "[":
            in_set = True
            # A bracket at the beginning of a set is literal.
            start_length = 2 if pattern.startswith("[^", position) else 1
            start_length += pattern.startswith("]", position + start_length)
            kept.append(pattern[position : position + start_length])
            position += start_length
            continue
        if in_set or character == "]" or character not in _BLANKS:
            kept.append(character)
        position += 1
    return "".join(kept)


def _matches(text: object, pattern: object, modifiers: object) -> Iterator[Any] | None:
    """Return the matches from left to right, or None if an argument is of the wrong type."""
    if type(text) is not str or type(pattern) is not str or type(modifiers) is not str:
        return None
    compiled = _compile(pattern, modifiers)
    if not _is_unicode(text):
        return None
    if len(text) * compiled.programsize > _MATCHING_STEPS_MAX:
        raise MalformedRequest(
            reason="The text is too long for this regular expression. Use a shorter text or pattern."
        )
    matches: Iterator[Any] = compiled.finditer(text)
    return matches


def _is_unicode(text: str) -> bool:
    """Return whether UTF-8 can encode the text, which it cannot with half of a surrogate pair."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _is_match(text: object, pattern: object, modifiers: object = "") -> object:
    matches = _matches(text, pattern, modifiers)
    return UNDEFINED if matches is None else next(matches, None) is not None


def _extract(text: object, pattern: object, modifiers: object = "", group: object = 0) -> object:
    """Return the first match, or a group of it; undefined without a match."""
    matches, number = _matches(text, pattern, modifiers), integer_of(group)
    if matches is None or number is None:
        return UNDEFINED
    match = next(matches, None)
    return UNDEFINED if match is None else _group(match, number)


def _extract_all(text: object, pattern: object, modifiers: object = "", group: object = 0) -> object:
    """Return all matches, or a group of each; matches without the group are skipped."""
    matches, number = _matches(text, pattern, modifiers), integer_of(group)
    if matches is None or number is None:
        return UNDEFINED
    count_max = min(_MATCHES_MAX, _SEARCHED_CHARACTERS_MAX // max(len(str(text)), 1))
    found = []
    for match in islice(matches, count_max + 1):
        pause()
        found.append(match)
    if len(found) > count_max:
        raise MalformedRequest(
            reason=f"The regular expression has more than {count_max} matches in the text. Use a stricter one."
        )
    return [text for match in found if (text := _group(match, number)) is not UNDEFINED]


def _group(match: Any, number: int) -> object:
    if not 0 <= number <= match.re.groups:
        return UNDEFINED
    text = match.group(number)
    return UNDEFINED if text is None else text


REGULAR_EXPRESSION_FUNCTIONS: Final[dict[str, Function]] = {
    "REGEXMATCH": Function(2, 3, _is_match),
    "REGEXEXTRACT": Function(2, 4, _extract),
    "REGEXEXTRACTALL": Function(2, 4, _extract_all),
}
