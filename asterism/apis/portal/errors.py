"""From the database's errors to the portal's: a status, and a sentence that says what to do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from asterism import errors
from asterism.apis.damage import report_damage
from asterism.apis.translation import Translation
from asterism.errors import Category


class PeerRefusal(Exception):
    """Another door refused what a page needs."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class SignedOut(Exception):
    """The request has no session, or one that has ended."""


_BY_CATEGORY: Final = {
    Category.MALFORMED: 400,
    Category.TOO_LARGE: 413,
    Category.UNAUTHENTICATED: 401,
    Category.DENIED: 403,
    Category.ABSENT: 404,
    Category.EXISTS: 409,
    Category.PRECONDITION: 412,
    Category.REFUSED: 400,
    Category.CONTENTION: 449,
    Category.THROTTLED: 429,
    Category.TIMED_OUT: 408,
    Category.FULL: 507,
    Category.UNAVAILABLE: 503,
    Category.INTERNAL: 500,
}
TRANSLATION: Final = Translation(_BY_CATEGORY, {})

_SIGNED_OUT: Final = "Your session has ended. Sign in again."
_FAILED: Final = "The server met an error of its own; its log has the details."


def status_and_message(problem: Exception) -> tuple[int, str, str] | None:
    """Return status, code and sentence for a refusal; None for an error that no code foresaw."""
    match problem:
        case SignedOut():
            return 401, "SignedOut", _SIGNED_OUT
        case PeerRefusal(status=status, code=code, message=message):
            return status, code or phrase(status), message
        case errors.ResourceNotFound(kind, name) | errors.OwnerNotFound(kind, name):
            return 404, "NotFound", f"There is no {kind} '{name}'."
        case errors.StoredDamage():
            return 500, "StoredDamage", report_damage(problem)
        case errors.AsterismError():
            status = TRANSLATION.row(problem)
            return status, phrase(status), problem.sentence
        case _:
            return None


def failure() -> tuple[int, str, str]:
    return 500, "InternalServerError", _FAILED


def phrase(status: int) -> str:
    """Return the name of a status as a code: `NotFound`."""
    return HTTPStatus(status).phrase.replace(" ", "") if status in set(HTTPStatus) else f"Status{status}"
