"""The interpreter of `$where`, `$function` and `$accumulator`: the script hosts of the house.

Values cross as JSON text; `javascript.js` has the other half of the conversion. A call has the time limit of
user-defined functions, and a host that a script breaks is replaced.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from asterism.errors import MalformedRequest
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import Code, DatetimeMS, Decimal128, Document, Int64, Missing, ObjectId, Regex
from asterism.values.undefined import UNDEFINED

if TYPE_CHECKING:
    from asterism.scripts.runtime import ScriptRuntime
    from asterism.scripts.udf import UserFunction

MARK: Final = "\x00"
_SAFE_INTEGER_MAX: Final = 2**53
_IS_FUNCTION: Final = re.compile(r"\s*(?:async\s+)?function\b|\s*\(?[\w\s,]*\)?\s*=>")
_HAS_RETURN: Final = re.compile(r"\breturn\b")
# The text of a time limit that was passed, in the words of the script hosts.
_OUT_OF_TIME: Final = "time limit"


@cache
def _conversion() -> str:
    return files(__package__).joinpath("javascript.js").read_text(encoding="utf-8")


def _wrapped(function: str, call: str) -> str:
    """Return the text of a function over packed values around one over values."""
    return (
        f"(function () {{\n{_conversion()}\nconst called = ({function}\n);\n"
        'if (typeof called !== "function") { throw new TypeError("not a function"); }\n'
        f"return function (packed) {{ return {call}; }};\n}})()"
    )


class ScriptInterpreter:
    """An interpreter for the commands of one event loop."""

    __slots__ = ("_runtime",)

    def __init__(self, runtime: ScriptRuntime) -> None:
        self._runtime = runtime

    def where(self, code: str) -> ScriptPredicate:
        text = code.strip().rstrip(";")
        if _IS_FUNCTION.match(text):
            return self._where(text)
        if not _HAS_RETURN.search(text):
            try:
                return self._where(f"function () {{ return ({text}\n) }}")
            except MongoFailure as failure:
                if "SyntaxError" not in failure.message:
                    raise
        # Statements instead of an expression.
        return self._where(f"function () {{ {text}\n }}")

    def _where(self, text: str) -> ScriptPredicate:
        call = "(function (document) { globalThis.obj = document; return !!called.call(document, document); })"
        return ScriptPredicate(self._compile(_wrapped(text, f"{call}(revive(packed))")))

    def function(self, body: str) -> Callable[..., Any]:
        compiled = self._compile(_wrapped(body.strip().rstrip(";"), "pack(called(...revive(packed)))"))

        def call(*arguments: Any) -> Any:
            return unpack(_result(compiled, [pack(argument) for argument in arguments]))

        return call

    def _compile(self, text: str) -> Any:
        try:
            return self._runtime.compile_udf(text)
        except MalformedRequest as problem:
            raise _failure(problem) from None


class ScriptPredicate:
    """The condition of `$where`. Decisions that were made ahead are used once."""

    __slots__ = ("_ahead", "_compiled")

    def __init__(self, compiled: UserFunction) -> None:
        self._compiled = compiled
        self._ahead: dict[int, bool] = {}

    def matches(self, document: Document) -> bool:
        known = self._ahead.pop(id(document), None)
        return bool(_result(self._compiled, pack(document))) if known is None else known

    def foresee(self, documents: Sequence[Document]) -> None:
        results = self._compiled.results_ahead((pack(document),) for document in documents)
        self._ahead = {id(document): bool(result) for document, result in zip(documents, results, strict=False)}


def _result(compiled: UserFunction, packed: Any) -> Any:
    try:
        result = compiled(packed)
    except MalformedRequest as problem:
        raise _failure(problem) from None
    return None if result is UNDEFINED else result


def _failure(problem: MalformedRequest) -> MongoFailure:
    reason = problem.reason
    if _OUT_OF_TIME in reason:
        return MongoFailure(50, f"JavaScript exceeded the time limit of a call and was stopped: {reason}")
    return MongoFailure(139, f"JavaScript execution failed: {reason}")


def pack(value: Any) -> Any:
    """Return a value of BSON as JSON has it, with marks for what JSON does not have."""
    kind = type(value)
    if value is None or kind in (bool, str, int):
        return value
    if kind is dict:
        return {name: pack(inner) for name, inner in value.items()}
    if kind is list:
        return [pack(inner) for inner in value]
    if kind is float:
        return value if math.isfinite(value) else {MARK: ["d", _infinite_text(value)]}
    if kind is Missing:
        return {MARK: ["u"]}
    if kind is Int64:
        return int(value) if abs(value) <= _SAFE_INTEGER_MAX else {MARK: ["l", str(int(value))]}
    if kind is ObjectId:
        return {MARK: ["i", str(value)]}
    if kind is DatetimeMS:
        return {MARK: ["t", int(value)]}
    if kind is Decimal128:
        return {MARK: ["m", str(value)]}
    if kind is Regex and isinstance(value.pattern, str):
        return {MARK: ["r", value.pattern, _letters(value.flags)]}
    if kind is Code and value.scope is None:
        return str(value)
    return {MARK: ["x", base64.b64encode(encode({"v": value})).decode()]}


def _infinite_text(value: float) -> str:
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _letters(flags: int) -> str:
    return "".join(letter for letter, flag in _FLAGS.items() if flags & flag)


_FLAGS: Final = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "u": re.UNICODE, "x": re.VERBOSE}


def unpack(value: Any) -> Any:
    """Return a value of BSON for what a script has returned. Its numbers are doubles."""
    if type(value) is int or type(value) is float:
        return float(value)
    if type(value) is list:
        return [unpack(inner) for inner in value]
    if type(value) is not dict:
        return value
    if MARK in value:
        return _unpack_marked(value[MARK])
    return {name: unpack(inner) for name, inner in value.items()}


def _unpack_marked(content: Any) -> Any:
    """Return the value of a mark; a script may have written any."""
    try:
        return _UNPACKERS[content[0]](*content[1:])
    except Exception as problem:
        raise MongoFailure(139, f"JavaScript returned a value that BSON does not have: {problem}") from None


def _opaque(text: str) -> Any:
    return decode(base64.b64decode(text))["v"]


_UNPACKERS: Final[dict[str, Callable[..., Any]]] = {
    "d": float,
    "i": ObjectId,
    "l": lambda text: Int64(int(text)),
    "m": Decimal128,
    "n": int,
    "r": lambda source, letters: Regex(source, sum(_FLAGS[letter] for letter in letters if letter in _FLAGS)),
    "t": lambda milliseconds: None if milliseconds is None else DatetimeMS(int(milliseconds)),
    "u": lambda: None,
    "x": _opaque,
}
