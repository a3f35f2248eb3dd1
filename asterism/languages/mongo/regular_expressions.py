"""Regular expressions as queries and expressions use them: PCRE's notation and meaning, in time that is bounded.

A pattern is parsed once. RE2 runs it if it can; what RE2 does not have is run by a matcher that counts its steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.regex.matcher import Found, LimitExceeded, Matcher
from asterism.languages.mongo.regex.nodes import Pattern, RegexProblem
from asterism.languages.mongo.regex.parser import Flags, parse
from asterism.languages.mongo.regex.re2_form import Unsupported, compile_form, ends_before_newline, form_of

INVALID_PATTERN: Final = 51091
INVALID_OPTION: Final = 51108
_LIMIT_EXCEEDED: Final = 51156
# The limit of the reference server, in bytes.
PATTERN_BYTES_MAX: Final = 16 * 1024
_OPTIONS: Final = {"i": "ignore_case", "m": "multiple_lines", "s": "dot_is_all", "x": "extended"}

__all__ = ["CompiledRegex", "Found", "compile_regex"]


class CompiledRegex:
    """A regular expression that is ready to search."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._matcher: Matcher | None = None
        self._minds_last_newline = ends_before_newline(pattern.root)
        try:
            self._fast = compile_form(form_of(pattern.root))
        except Unsupported:
            self._fast = None
            self._matcher = _new_matcher(pattern)

    @property
    def group_count(self) -> int:
        return self._pattern.group_count

    def search(self, text: str, start: int = 0) -> Found | None:
        """The first match that begins at `start` or later, or None."""
        return next(self._matches(text, start), None)

    def find_all(self, text: str) -> Iterator[Found]:
        """All matches, each beginning where the one before ends, or a character later if that one was empty. An empty
        match at the end of the text counts only if the text is empty."""
        place = 0
        matches = self._matches(text, place)
        while True:
            found = next(matches, None)
            if found is None or (text and found.start == len(text)):
                return
            yield found

    def _matches(self, text: str, start: int) -> Iterator[Found]:
        if self._fast is None or (self._minds_last_newline and text.endswith("\n")):
            return self._matches_slowly(text, start)
        return self._matches_fast(text, start)

    def _matches_slowly(self, text: str, start: int) -> Iterator[Found]:
        if self._matcher is None:
            self._matcher = _new_matcher(self._pattern)
        while start <= len(text):
            try:
                found = self._matcher.search(text, start)
            except LimitExceeded:
                raise MongoFailure(
                    _LIMIT_EXCEEDED, "The regular expression needs too many steps for a text. Simplify it."
                ) from None
            if found is None:
                return
            yield found
            start = max(found.end, start) if found.end > found.start else found.end + 1

    def _matches_fast(self, text: str, start: int) -> Iterator[Found]:
        assert self._fast is not None
        # RE2 works on UTF-8: on the bytes themselves, places need not be translated for each match anew.
        encoded = text.encode("utf-8", "surrogatepass")
        places = _Places(encoded, is_plain=len(encoded) == len(text))
        offset = places.byte_offset(start)
        while offset <= len(encoded):
            found = self._fast.search(encoded, offset)
            if found is None:
                return
            first, last = found.span()
            spans = (found.span(number) for number in range(1, self._pattern.group_count + 1))
            begin = places.place(first)
            yield Found(
                begin,
                begin + places.length(first, last),
                tuple(
                    None if a < 0 else (places.place_near(a, first, begin), places.place_near(b, first, begin))
                    for a, b in spans
                ),
            )
            offset = last if last > first else last + places.character_size(last)


class _Places:
    """Translates offsets of bytes into places of characters, from left to right."""

    def __init__(self, encoded: bytes, *, is_plain: bool) -> None:
        self._encoded = encoded
        self._is_plain = is_plain
        self._offset = 0
        self._place = 0

    def length(self, first: int, last: int) -> int:
        return last - first if self._is_plain else _count_characters(self._encoded[first:last])

    def place(self, offset: int) -> int:
        """The place of an offset that is not before the one asked for last."""
        if self._is_plain:
            return offset
        self._place += _count_characters(self._encoded[self._offset : offset])
        self._offset = offset
        return self._place

    def place_near(self, offset: int, known_offset: int, known_place: int) -> int:
        """The place of an offset of a group within a match, whose own place is known."""
        return known_place + self.length(known_offset, offset)

    def byte_offset(self, place: int) -> int:
        if self._is_plain or place == 0:
            return place
        text = self._encoded.decode("utf-8", "surrogatepass")
        return len(text[:place].encode("utf-8", "surrogatepass"))

    def character_size(self, offset: int) -> int:
        if self._is_plain or offset >= len(self._encoded):
            return 1
        size = 1
        while offset + size < len(self._encoded) and self._encoded[offset + size] & 0xC0 == 0x80:
            size += 1
        return size


def _count_characters(encoded: bytes) -> int:
    return len(encoded.decode("utf-8", "surrogatepass"))


def _new_matcher(pattern: Pattern) -> Matcher:
    try:
        return Matcher(pattern)
    except Unsupported:
        # A set of characters that does not exist, such as a script of an unknown name.
        raise RegexProblem("unknown property name after \\P or \\p") from None


@lru_cache(maxsize=512)
def _compile(pattern: str, options: str) -> CompiledRegex:
    flags = Flags(**{_OPTIONS[letter]: True for letter in options if letter != "u"})
    return CompiledRegex(parse(pattern, flags))


def compile_regex(pattern: str, options: str, *, code: int = INVALID_PATTERN) -> CompiledRegex:
    """Compile a pattern with the options `i`, `m`, `s`, `x` and `u`. Raises MongoFailure, for a pattern that is not one
    with the given code."""
    for letter in options:
        if letter != "u" and letter not in _OPTIONS:
            raise MongoFailure(INVALID_OPTION, f"invalid flag in regex options: {options}")
    if len(pattern.encode("utf-8", "surrogatepass")) > PATTERN_BYTES_MAX:
        raise MongoFailure(code, "Regular expression is invalid: pattern is too large")
    try:
        return _compile(pattern, "".join(sorted(set(options))))
    except RegexProblem as problem:
        raise MongoFailure(code, f"Regular expression is invalid: {problem}") from None
    except RecursionError:
        raise MongoFailure(code, "Regular expression is invalid: parentheses are too deeply nested") from None
