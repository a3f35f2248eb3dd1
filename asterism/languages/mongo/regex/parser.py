"""The parser of PCRE's notation."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from asterism.languages.mongo.regex import sets
from asterism.languages.mongo.regex.nodes import (
    Anchor,
    AtomicGroup,
    BackReference,
    Character,
    CharacterSet,
    Choice,
    Conditional,
    Group,
    Look,
    MatchStart,
    Mode,
    Node,
    Pattern,
    Place,
    RegexProblem,
    Repeat,
    Sequence,
    width,
)

# Limits of PCRE itself.
_DEPTH_MAX: Final = 250
_REPEAT_MAX: Final = 65_535

_QUANTIFIER: Final = re.compile(r"\*|\+|\?|\{([0-9]+)(?:(,)([0-9]*))?\}", re.ASCII)
_VERB: Final = re.compile(r"\(\*(UTF8?|UCP)\)")
_FLAGS: Final = re.compile(r"\?(\^?[imsxnJU]*(?:-[imsxnJU]*)?)([:)])")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_CONTROL: Final = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LOOKS: Final = (("?=", False, False), ("?!", False, True), ("?<=", True, False), ("?<!", True, True))
_PLACES: Final = {"A": Place.TEXT_START, "z": Place.TEXT_END, "Z": Place.LAST_LINE_END, "G": Place.SEARCH_START}


@dataclass(frozen=True, slots=True)
class Flags:
    ignore_case: bool = False
    multiple_lines: bool = False
    dot_is_all: bool = False
    extended: bool = False


def parse(pattern: str, flags: Flags) -> Pattern:
    """The tree of a pattern. Raises RegexProblem."""
    parser = _Parser(pattern)
    root = parser.parse_pattern(flags)
    return Pattern(root, parser.group_count)


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0
        self._depth = 0
        self._is_unicode = False
        self._numbers: dict[str, int] = {}
        self.group_count = 0

    def parse_pattern(self, flags: Flags) -> Node:
        while verb := _VERB.match(self._pattern, self._place):
            self._is_unicode |= verb[1] == "UCP"
            self._place = verb.end()
        root = self._parse_choice(flags)
        if self._place < len(self._pattern):
            raise RegexProblem("unmatched closing parenthesis")
        self._check_references(root)
        return root

    def _take(self, text: str) -> bool:
        if self._pattern.startswith(text, self._place):
            self._place += len(text)
            return True
        return False

    def _peek(self) -> str:
        return self._pattern[self._place : self._place + 1]

    def _next(self) -> str:
        if self._place >= len(self._pattern):
            raise RegexProblem("the pattern ends too early")
        self._place += 1
        return self._pattern[self._place - 1]

    def _until(self, end: str) -> str:
        stop = self._pattern.find(end, self._place)
        if stop < 0:
            raise RegexProblem(f"missing '{end}'")
        text = self._pattern[self._place : stop]
        self._place = stop + len(end)
        return text

    def _parse_choice(self, flags: Flags, *, shares_numbers: bool = False) -> Node:
        """Everything up to the end of the group."""
        first_number = self.group_count
        most = first_number
        branches: list[Node] = []
        items: list[Node] = []
        while True:
            here = self._peek()
            if here in ("", ")", "|"):
                branches.append(items[0] if len(items) == 1 else Sequence(tuple(items)))
                most = max(most, self.group_count)
                if here != "|":
                    break
                self._place += 1
                items = []
                if shares_numbers:
                    self.group_count = first_number
                continue
            flags = self._parse_item(items, flags)
        self.group_count = most
        return branches[0] if len(branches) == 1 else Choice(tuple(branches), shares_numbers)

    def _parse_item(self, items: list[Node], flags: Flags) -> Flags:
        """Append the next node, and return the flags from there on."""
        if flags.extended and self._skip_extended():
            return flags
        character = self._next()
        if character == "\\":
            if self._take("Q"):
                quoted = self._until("\\E") if "\\E" in self._pattern[self._place :] else self._rest()
                items.extend(Character(letter, flags.ignore_case) for letter in quoted)
                return self._quantify(items, flags) if quoted else flags
            if self._take("E"):
                return flags
            items.append(self._parse_escape(flags))
        elif character == "(":
            changed = self._parse_group(items, flags)
            if changed is not None:
                return changed
        elif character == "[":
            items.append(CharacterSet(self._parse_set(), flags.ignore_case))
        elif character == ".":
            items.append(CharacterSet(sets.ANY if flags.dot_is_all else sets.ANY_BUT_NEWLINE, ignores_case=False))
        elif character == "^":
            items.append(Anchor(Place.LINE_START if flags.multiple_lines else Place.TEXT_START))
        elif character == "$":
            items.append(Anchor(Place.LINE_END if flags.multiple_lines else Place.LAST_LINE_END))
        elif character in "*+?":
            raise RegexProblem("quantifier does not follow a repeatable item")
        else:
            items.append(Character(character, flags.ignore_case))
        return self._quantify(items, flags)

    def _rest(self) -> str:
        text = self._pattern[self._place :]
        self._place = len(self._pattern)
        return text

    def _skip_extended(self) -> bool:
        """Skip white space and comments of the x flag."""
        start = self._place
        while (character := self._peek()) and (character in " \t\n\v\f\r" or character == "#"):
            if character == "#":
                stop = self._pattern.find("\n", self._place)
                self._place = len(self._pattern) if stop < 0 else stop + 1
            else:
                self._place += 1
        return self._place > start

    def _quantify(self, items: list[Node], flags: Flags) -> Flags:
        while True:
            if flags.extended:
                self._skip_extended()
            found = _QUANTIFIER.match(self._pattern, self._place)
            if found is None:
                return flags
            self._place = found.end()
            least, most = _bounds(found)
            mode = Mode.LAZY if self._take("?") else Mode.POSSESSIVE if self._take("+") else Mode.GREEDY
            items[-1] = Repeat(items[-1], least, most, mode)
            if self._peek() in ("*", "+", "?"):
                raise RegexProblem("quantifier does not follow a repeatable item")

    def _parse_escape(self, flags: Flags) -> Node:
        letter = self._next()
        if letter in "bB":
            place = Place.WORD_BOUNDARY if letter == "b" else Place.NO_WORD_BOUNDARY
            return Anchor(place, sets.word_set(is_unicode=self._is_unicode))
        if letter in _PLACES:
            return Anchor(_PLACES[letter])
        if letter == "K":
            return MatchStart()
        if letter == "R":
            pair = Sequence((Character("\r", False), Character("\n", False)))
            return AtomicGroup(Choice((pair, CharacterSet(sets.NEWLINE_CHARACTER, False))))
        form = sets.set_of_letter(letter, is_unicode=self._is_unicode)
        if form is not None:
            return CharacterSet(form, ignores_case=False)
        if letter in "pP":
            return CharacterSet(f"[{self._parse_property(letter)}]", flags.ignore_case)
        if letter in "gk" or letter in "123456789":
            return BackReference(self._parse_reference(letter), flags.ignore_case)
        return Character(self._parse_escaped_character(letter), flags.ignore_case)

    def _parse_property(self, letter: str) -> str:
        name = self._until("}") if self._take("{") else self._next()
        if not re.fullmatch(r"\^?[A-Za-z_&]+", name):
            raise RegexProblem("malformed \\P or \\p sequence")
        # Any letter that has a case.
        name = name.replace("L&", "L") if name.endswith("L&") else name
        return f"\\{letter}{{{name}}}"

    def _parse_reference(self, letter: str) -> int:
        if letter in "123456789":
            self._place -= 1
            digits = re.compile("[0-9]+", re.ASCII).match(self._pattern, self._place)
            assert digits is not None
            self._place = digits.end()
            return int(digits[0]) if len(digits[0]) < 6 else _REPEAT_MAX
        closing = {"{": "}", "<": ">", "'": "'"}.get(self._peek())
        if closing is None:
            if letter == "g" and re.match("[0-9]", self._peek()):
                return int(self._next())
            raise RegexProblem("a back reference needs a name or a number")
        self._place += 1
        name = self._until(closing)
        if re.fullmatch("-[1-9][0-9]{0,4}", name, re.ASCII):
            return self.group_count + 1 + int(name)
        if re.fullmatch("[1-9][0-9]{0,4}", name, re.ASCII):
            return int(name)
        return self._number_of(name)

    def _number_of(self, name: str) -> int:
        if name not in self._numbers:
            raise RegexProblem("reference to non-existent subpattern")
        return self._numbers[name]

    def _parse_escaped_character(self, letter: str) -> str:
        if letter in _CONTROL:
            return _CONTROL[letter]
        if letter == "x":
            digits = self._until("}") if self._take("{") else self._some("[0-9A-Fa-f]{0,2}")
            return _character_of(digits or "0", 16)
        if letter == "o" and self._take("{"):
            return _character_of(self._until("}"), 8)
        if letter == "0":
            return _character_of("0" + self._some("[0-7]{0,2}"), 8)
        if letter == "c":
            control = self._next()
            if not " " <= control <= "~":
                raise RegexProblem("\\c must be followed by a printable ASCII character")
            return chr(ord(control.upper()) ^ 64)
        if letter.isascii() and letter.isalnum():
            raise RegexProblem(f"unrecognized character follows \\: {letter}")
        return letter

    def _some(self, expression: str) -> str:
        found = re.compile(expression, re.ASCII).match(self._pattern, self._place)
        assert found is not None
        self._place = found.end()
        return found[0]

    def _parse_set(self) -> str:
        """A set in brackets, in the notation of RE2."""
        sign = "^" if self._take("^") else ""
        members: list[str] = []
        is_first = True
        while is_first or self._peek() != "]":
            is_first = False
            if self._take("[:"):
                members.append(sets.named_form(self._until(":]"), is_unicode=self._is_unicode))
                continue
            first = self._parse_member()
            if len(first) > 1:
                members.append(first)
                continue
            if self._peek() == "-" and self._pattern[self._place + 1 : self._place + 2] not in ("]", ""):
                before = self._place
                self._place += 1
                last = (
                    "" if self._peek() == "[" and self._pattern.startswith("[:", self._place) else self._parse_member()
                )
                if len(last) == 1:
                    if last < first:
                        raise RegexProblem("range out of order in character class")
                    members.append(f"{sets.character_form(first)}-{sets.character_form(last)}")
                    continue
                # A set cannot end a range: the hyphen means itself.
                self._place = before + 1
                members.extend((sets.character_form(first), sets.character_form("-")))
                continue
            members.append(sets.character_form(first))
        self._place += 1
        return f"[{sign}{''.join(members)}]"

    def _parse_member(self) -> str:
        """One character, or the longer form of a set within the set."""
        character = self._next()
        if character != "\\":
            return character
        letter = self._next()
        if letter == "b":
            return "\b"
        if letter == "Q":
            raise RegexProblem("quoting in a character class is not supported")
        if self._is_unicode and letter in "WS":
            raise RegexProblem("negated classes of Unicode within a character class are not supported")
        form = sets.letter_form(letter, is_unicode=self._is_unicode)
        if form is not None:
            return form
        if letter in "pP":
            return self._parse_property(letter)
        if letter in "1234567":
            self._place -= 1
            return _character_of(self._some("[0-7]{1,3}"), 8)
        return self._parse_escaped_character(letter)

    def _parse_group(self, items: list[Node], flags: Flags) -> Flags | None:
        """Append the group that begins here; for flags without a group, return the flags from there on."""
        if self._take("?#"):
            self._until(")")
            return flags
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise RegexProblem("parentheses are too deeply nested")
        change = _FLAGS.match(self._pattern, self._place)
        if change is not None:
            self._place = change.end()
            changed = _changed(flags, change[1])
            if change[2] == ")":
                self._depth -= 1
                return changed
            items.append(Group(self._parse_body(changed)))
        else:
            items.append(self._parse_special_group(flags))
        self._depth -= 1
        return None

    def _parse_body(self, flags: Flags, *, shares_numbers: bool = False) -> Node:
        body = self._parse_choice(flags, shares_numbers=shares_numbers)
        if not self._take(")"):
            raise RegexProblem("missing closing parenthesis")
        return body

    def _parse_special_group(self, flags: Flags) -> Node:
        for start, is_behind, is_negative in _LOOKS:
            if self._take(start):
                return self._parse_look(flags, is_behind=is_behind, is_negative=is_negative)
        if self._take("?>"):
            return AtomicGroup(self._parse_body(flags))
        if self._take("?|"):
            return Group(self._parse_body(flags, shares_numbers=True))
        if self._take("?("):
            return self._parse_conditional(flags)
        if self._take("?P="):
            return BackReference(self._number_of(self._until(")")), flags.ignore_case)
        name = None
        for start, end in (("?P<", ">"), ("?<", ">"), ("?'", "'")):
            if self._take(start):
                name = self._until(end)
                if not _NAME.fullmatch(name) or len(name) > 32 or name in self._numbers:
                    raise RegexProblem("the name of a group is malformed or used twice")
                break
        else:
            if self._peek() in ("?", "*"):
                raise RegexProblem("unrecognized or unsupported character after (?")
        self.group_count += 1
        number = self.group_count
        if name is not None:
            self._numbers[name] = number
        return Group(self._parse_body(flags), number)

    def _parse_look(self, flags: Flags, *, is_behind: bool, is_negative: bool) -> Look:
        body = self._parse_body(flags)
        if is_behind:
            branches = body.branches if isinstance(body, Choice) else (body,)
            if any(width(branch) is None for branch in branches):
                raise RegexProblem("lookbehind assertion is not fixed length")
        return Look(body, is_behind=is_behind, is_negative=is_negative)

    def _parse_conditional(self, flags: Flags) -> Node:
        condition: int | Look
        if self._peek() == "?":
            look = self._parse_special_group(flags)
            if not isinstance(look, Look):
                raise RegexProblem("assertion expected after (?(")
            condition = look
        else:
            name = self._until(")").strip("<>'")
            condition = int(name) if re.fullmatch("[0-9]{1,5}", name, re.ASCII) else self._number_of(name)
        body = self._parse_body(flags)
        branches = body.branches if isinstance(body, Choice) else (body,)
        if len(branches) > 2:
            raise RegexProblem("conditional subpattern contains more than two branches")
        return Conditional(condition, branches[0], branches[1] if len(branches) == 2 else Sequence(()))

    def _check_references(self, node: Node) -> None:
        numbers = _referenced_numbers(node)
        if any(number > self.group_count or number < 1 for number in numbers):
            raise RegexProblem("reference to non-existent subpattern")


def _referenced_numbers(node: Node) -> list[int]:
    match node:
        case BackReference(number=number):
            return [number]
        case Conditional(condition=condition, yes=yes, no=no):
            own = [condition] if isinstance(condition, int) else _referenced_numbers(condition)
            return own + _referenced_numbers(yes) + _referenced_numbers(no)
        case Sequence(items=parts) | Choice(branches=parts):
            return [number for part in parts for number in _referenced_numbers(part)]
        case Group(body=body) | AtomicGroup(body=body) | Look(body=body) | Repeat(body=body):
            return _referenced_numbers(body)
        case _:
            return []


def _bounds(found: re.Match[str]) -> tuple[int, int | None]:
    sign = found[0][0]
    if sign != "{":
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
    if len(found[1]) > 5 or len(found[3] or "") > 5:
        raise RegexProblem("number too big in {} quantifier")
    least = int(found[1])
    most = least if found[2] is None else int(found[3]) if found[3] else None
    if least > _REPEAT_MAX or (most or 0) > _REPEAT_MAX:
        raise RegexProblem("number too big in {} quantifier")
    if most is not None and most < least:
        raise RegexProblem("numbers out of order in {} quantifier")
    return least, most


def _changed(flags: Flags, change: str) -> Flags:
    if change.startswith("^"):
        flags, change = Flags(), change[1:]
    switched_on, _, switched_off = change.partition("-")
    if set(switched_on + switched_off) & set("nJU"):
        raise RegexProblem("the options n, J and U are not supported")
    names = {"i": "ignore_case", "m": "multiple_lines", "s": "dot_is_all", "x": "extended"}
    return replace(
        flags,
        **{names[letter]: True for letter in switched_on},
        **{names[letter]: False for letter in switched_off if letter not in switched_on},
    )


def _character_of(digits: str, base: int) -> str:
    try:
        code = int(digits, base)
    except ValueError:
        raise RegexProblem("a character code has digits that are none") from None
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise RegexProblem("character code point value is too large")
    return chr(code)
