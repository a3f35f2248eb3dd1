"""Sets of characters in the notation of RE2: what the escapes of PCRE stand for, outside and inside of brackets."""

from __future__ import annotations

from typing import Final

from asterism.languages.mongo.regex.nodes import RegexProblem

_LAST: Final = 0x10FFFF
Ranges = tuple[tuple[int, int], ...]

_DIGITS: Final[Ranges] = ((0x30, 0x39),)
_WORD: Final[Ranges] = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Final[Ranges] = ((0x09, 0x0D), (0x20, 0x20))
_HORIZONTAL_SPACE: Final[Ranges] = (
    (0x09, 0x09),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x180E, 0x180E),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
_VERTICAL_SPACE: Final[Ranges] = ((0x0A, 0x0D), (0x85, 0x85), (0x2028, 0x2029))
_BY_LETTER: Final = {
    "d": _DIGITS,
    "w": _WORD,
    "s": _SPACE,
    "h": _HORIZONTAL_SPACE,
    "v": _VERTICAL_SPACE,
    "N": ((0x0A, 0x0A),),
}

# With (*UCP) the classes are those of Unicode.
_UNICODE_BY_LETTER: Final = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": r"\p{L}\p{N}_",
    "s": r"\p{Z}\x{9}-\x{d}\x{85}",
}
_UNICODE_BY_NAME: Final = {
    "alpha": r"\p{L}",
    "lower": r"\p{Ll}",
    "upper": r"\p{Lu}",
    "alnum": r"\p{L}\p{N}",
    "digit": r"\p{Nd}",
    "word": r"\p{L}\p{N}_",
    "space": r"\p{Z}\x{9}-\x{d}\x{85}",
}
_NAMES: Final = frozenset(
    [
        "alpha",
        "lower",
        "upper",
        "alnum",
        "digit",
        "word",
        "space",
        "blank",
        "cntrl",
        "graph",
        "print",
        "punct",
        "xdigit",
        "ascii",
    ]
)

ANY: Final = f"[\\x{{0}}-\\x{{{_LAST:x}}}]"
ANY_BUT_NEWLINE: Final = r"[^\n]"
NEWLINE_CHARACTER: Final = r"[\x{a}-\x{d}\x{85}\x{2028}\x{2029}]"


def character_form(character: str) -> str:
    """A character in a form that means itself, in brackets as well as outside."""
    return f"\\x{{{ord(character):x}}}"


def _form_of(ranges: Ranges) -> str:
    return "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges)


def _complement(ranges: Ranges) -> Ranges:
    result = []
    begin = 0
    for first, last in ranges:
        if begin < first:
            result.append((begin, first - 1))
        begin = last + 1
    return (*result, (begin, _LAST))


def letter_form(letter: str, *, is_unicode: bool) -> str | None:
    """The members of `\\d`, `\\W` and so on, without brackets; None for a letter that is no set."""
    if is_unicode and letter in _UNICODE_BY_LETTER:
        return _UNICODE_BY_LETTER[letter]
    if letter == "N":
        return _form_of(_complement(_BY_LETTER["N"]))
    if letter in _BY_LETTER:
        return _form_of(_BY_LETTER[letter])
    if letter.lower() in _BY_LETTER and letter != "N":
        return _form_of(_complement(_BY_LETTER[letter.lower()]))
    return None


def set_of_letter(letter: str, *, is_unicode: bool) -> str | None:
    """The set of `\\d`, `\\W` and so on with its brackets; None for a letter that is no set."""
    if is_unicode and letter in ("W", "S"):
        return f"[^{_UNICODE_BY_LETTER[letter.lower()]}]"
    form = letter_form(letter, is_unicode=is_unicode)
    return None if form is None else f"[{form}]"


def word_set(*, is_unicode: bool) -> str:
    return f"[{letter_form('w', is_unicode=is_unicode)}]"


def named_form(name: str, *, is_unicode: bool) -> str:
    """The members of `[:alpha:]` and so on."""
    is_negative = name.startswith("^")
    plain = name.removeprefix("^")
    if plain not in _NAMES:
        raise RegexProblem("unknown POSIX class name")
    if is_unicode and plain in _UNICODE_BY_NAME and not is_negative:
        return _UNICODE_BY_NAME[plain]
    return f"[:{name}:]"
