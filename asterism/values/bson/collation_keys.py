"""Sort keys of text in a language: bytes that compare as the texts do.

A key has up to five levels, as the Unicode collation has: base letters, accents, case, ignored punctuation, and the
text itself. A level counts only where all levels before it are equal. The order is the root order of the Unicode
collation for what most texts consist of, with the letters that some languages have of their own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from asterism.values.bson.types import Document

# A number of more digits is compared in parts, as ICU does.
_NUMBER_DIGITS_MAX: Final = 254
_LEVEL_END: Final = b"\x00\x00"
# Secondary weights: a letter, and the accents behind it in the order of the Unicode tables.
_LETTER: Final = b"\x05"
_ACCENTS: Final = (
    "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0338\u0327\u0328\u0304"  # acute, grave, breve, ...
)
# Groups of the root order: spaces, punctuation, symbols, digits, letters.
_GROUPS: Final = {"Z": b"\x10", "C": b"\x10", "P": b"\x20", "S": b"\x30", "N": b"\x40", "L": b"\x50"}
_PUNCTUATION: Final = "_-,;:!?.'\"()[]{}@*/\\&#%"
_SYMBOLS: Final = "`^+<=>|~$"
_CONTROL_SPACES: Final = "\t\n\v\f\r\x85\u2028\u2029"
_NO_BREAK_SPACE: Final = "\u00a0"
# Letters that are others in disguise, in every language: two letters, or a letter with a stroke.
_EXPANSIONS: Final = {
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o\u0338", "Ø": "O\u0338",
    "đ": "d\u0338", "Đ": "D\u0338", "ł": "l\u0338", "Ł": "L\u0338",
}  # fmt: skip

# Letters of their own, by language: each is placed behind the letter that it is spelled with here. `zå` is the first
# letter behind z.
_NORDIC: Final = {"å": "z1", "ä": "z2", "æ": "z2", "ö": "z3", "ø": "z3"}
_DANISH: Final = {"æ": "z1", "ä": "z1", "ø": "z2", "ö": "z2", "å": "z3"}
_SPANISH: Final = {"ñ": "n1"}
_DOTLESS_I: Final = "\u0131"
_DOTTED_CAPITAL_I: Final = "\u0130"
_TURKISH: Final = {_DOTLESS_I: "h1", "ç": "c1", "ğ": "g1", "ö": "o1", "ş": "s1", "ü": "u1"}
_OWN_LETTERS: Final[dict[str, dict[str, str]]] = {
    "sv": _NORDIC, "fi": _NORDIC, "da": _DANISH, "nb": _DANISH, "nn": _DANISH, "es": _SPANISH, "tr": _TURKISH,
    "az": _TURKISH,
}  # fmt: skip
_PHONEBOOK: Final = {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "AE", "Ö": "OE", "Ü": "UE"}
_KATAKANA_TO_HIRAGANA: Final = 0x30A1 - 0x3041


class _Element(NamedTuple):
    """A character of the text as the levels see it. `base` is empty for one that only adds an accent."""

    base: bytes
    accent: bytes
    case: int
    is_variable: bool = False


# Behind two letters that are written as one, which differ from the two as an accent does.
_TWO_LETTERS: Final = _Element(b"", b"\x0f", 0)
# Added to the case of a katakana, which Japanese tells from hiragana at the fourth level only.
_KATAKANA: Final = 0x40


def key_maker(specification: Document) -> Callable[[str], bytes]:
    """Return the function that makes keys, for a specification that is complete."""
    language, _, variant = specification["locale"].partition("@collation=")
    language = language.partition("_")[0] if language != "en_US_POSIX" else language
    if language == "en_US_POSIX":
        # The order of code points, whatever the strength is.
        return lambda text: text.encode("utf-8", "surrogatepass")
    reader = _Reader(specification, language, variant)
    strength = specification["strength"]
    with_case = strength >= 3 or specification["caseLevel"]
    backwards = specification["backwards"]
    is_shifted = specification["alternate"] == "shifted"

    @lru_cache(maxsize=4096)
    def key(text: str) -> bytes:
        elements = reader.elements(text)
        shown = [element for element in elements if not (is_shifted and element.is_variable)]
        levels = [b"".join(element.base for element in shown)]
        if strength >= 2:
            accents = [_LETTER if element.base else element.accent for element in shown]
            # Letters without accents at the end say nothing.
            levels.append(b"".join(accents[::-1] if backwards else accents).rstrip(_LETTER))
        if with_case:
            levels.append(bytes(element.case & ~_KATAKANA for element in shown if element.base))
        if is_shifted and strength >= 4:
            levels.append(b"".join(element.base if element.is_variable else b"\xff\xff" for element in elements))
        if language == "ja" and strength >= 4:
            levels.append(bytes(1 + (element.case & _KATAKANA) for element in shown if element.base))
        if strength >= 5:
            levels.append(unicodedata.normalize("NFD", text).encode("utf-8", "surrogatepass"))
        return _LEVEL_END.join(levels)

    return key


class _Reader:
    """Divides a text into elements."""

    def __init__(self, specification: Document, language: str, variant: str) -> None:
        self._numeric = specification["numericOrdering"]
        self._upper_first = specification["caseFirst"] == "upper"
        self._spaces_only = specification["maxVariable"] == "space"
        self._own = _OWN_LETTERS.get(language, {})
        self._is_turkish = language in ("tr", "az")
        self._is_japanese = language == "ja"
        self._spellings = {**_EXPANSIONS, **(_PHONEBOOK if (language, variant) == ("de", "phonebook") else {})}

    def elements(self, text: str) -> list[_Element]:
        found: list[_Element] = []
        digits = ""
        for character in unicodedata.normalize("NFC", text):
            if self._numeric and character.isdecimal():
                digits += str(unicodedata.decimal(character))
                continue
            if digits:
                found += _numbers(digits)
                digits = ""
            found += self._read(character)
        return found + _numbers(digits) if digits else found

    def _read(self, character: str) -> list[_Element]:
        if self._is_turkish and character in ("I", _DOTTED_CAPITAL_I):
            return [self._letter(_DOTLESS_I if character == "I" else "i", is_upper=True)]
        own = self._own.get(character.lower())
        if own is not None:
            return [self._letter(character.lower(), is_upper=character != character.lower())]
        spelled = self._spellings.get(character, character)
        found = [
            element for part in unicodedata.normalize("NFKD", spelled) for element in self._read_part(part, character)
        ]
        return [*found, _TWO_LETTERS] if len(spelled) > 1 else found

    def _read_part(self, part: str, character: str) -> list[_Element]:
        category = unicodedata.category(part)
        if category == "Mn":
            return [_Element(b"", _accent_weight(part), 0)]
        if category in ("Cf", "Cs") or (category == "Cc" and part not in _CONTROL_SPACES):
            return []
        is_space = category[0] == "Z" or category == "Cc"
        is_variable = is_space or category[0] == "P"
        if self._spaces_only:
            is_variable = is_space and character != _NO_BREAK_SPACE
        if is_variable or category[0] not in "LN":
            return [_Element(_weight(part, category), _LETTER, 1, is_variable)]
        return [
            self._letter(
                part, is_upper=part != part.lower(), is_other_form=part not in unicodedata.normalize("NFD", character)
            )
        ]

    def _letter(self, letter: str, *, is_upper: bool, is_other_form: bool = False) -> _Element:
        is_katakana = "\u30a1" <= letter <= "\u30f6"
        base = chr(ord(letter) - _KATAKANA_TO_HIRAGANA) if is_katakana else letter
        own = self._own.get(base)
        weight = _GROUPS["L"] + b"\x02" + own[0].encode() + b"\xf0" + own[1:].encode() + b"\x01" if own else b""
        case = 2 if is_upper != self._upper_first else 1
        if is_katakana:
            case = case + _KATAKANA if self._is_japanese else 3
        if is_other_form:
            # Ligatures, full-width forms and the like differ from what they stand for, as upper case does.
            case += 3
        return _Element(weight or _weight(base, unicodedata.category(base)), _LETTER, case)


def _numbers(digits: str) -> list[_Element]:
    parts = [digits[start : start + _NUMBER_DIGITS_MAX] for start in range(0, len(digits), _NUMBER_DIGITS_MAX)]
    return [_Element(_number_weight(part), _LETTER, 1) for part in parts]


def _number_weight(digits: str) -> bytes:
    stripped = digits.lstrip("0") or "0"
    return _GROUPS["N"] + len(stripped).to_bytes(2, "big") + stripped.encode() + b"\x01"


def _accent_weight(accent: str) -> bytes:
    place = _ACCENTS.find(accent)
    if place >= 0:
        return bytes((0x10 + place,))
    return b"\x40" + accent.encode("utf-8", "surrogatepass")


def _weight(character: str, category: str) -> bytes:
    group = _GROUPS.get(category[0], b"\x60")
    for order in (_PUNCTUATION, _SYMBOLS):
        place = order.find(character)
        if place >= 0:
            return group + bytes((1, place + 1)) + b"\x01"
    return group + b"\x02" + character.casefold().encode("utf-8", "surrogatepass") + b"\x01"
