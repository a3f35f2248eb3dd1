"""From the database's errors to those of administration: a status and a sub-code, in one table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from asterism import errors
from asterism.apis import http_pipeline
from asterism.apis.amqp.administration.arm_json import json_response
from asterism.apis.amqp.administration.atom import error_response
from asterism.apis.damage import report_damage
from asterism.apis.translation import Translation
from asterism.errors import AsterismError, Category

if TYPE_CHECKING:
    from asterism.apis.amqp.administration.call import AdministrationCall
    from asterism.apis.transports.http import BodyRefused, Request, Response

# Status, sub-code of Atom, code of the resource manager.
_Row = tuple[int, int, str]

TRANSLATION: Final = Translation[_Row](
    {
        Category.MALFORMED: (400, 40000, "BadRequest"),
        Category.TOO_LARGE: (413, 41300, "RequestEntityTooLarge"),
        Category.UNAUTHENTICATED: (401, 40100, "Unauthorized"),
        Category.DENIED: (403, 40300, "Forbidden"),
        Category.ABSENT: (404, 40400, "NotFound"),
        Category.EXISTS: (409, 40900, "Conflict"),
        Category.PRECONDITION: (412, 41200, "PreconditionFailed"),
        Category.REFUSED: (400, 40000, "BadRequest"),
        Category.CONTENTION: (409, 40901, "Conflict"),
        Category.THROTTLED: (503, 50004, "ServerBusy"),
        Category.TIMED_OUT: (504, 50400, "GatewayTimeout"),
        Category.FULL: (403, 40301, "InsufficientStorage"),
        Category.UNAVAILABLE: (503, 50300, "ServiceUnavailable"),
        Category.INTERNAL: (500, 50000, "InternalServerError"),
    },
    {errors.QuotaExceeded: (403, 40300, "QuotaExceeded")},
)
_UNFORESEEN: Final = "The server met an error of its own; its log has the details."
# Requests of the resource manager are answered in its own form.
_MANAGER_PATH: Final = re.compile(r"/subscriptions/[^/]+/resourcegroups/", re.IGNORECASE)


class AdministrationWords:
    """The door's answers for the pipeline."""

    describe = staticmethod(http_pipeline.describe)

    def refuse(self, error: AsterismError, call: AdministrationCall) -> Response:
        status, sub_code, code = TRANSLATION.row(error)
        return _answer(call.request, status, sub_code, code, _sentence(error), call.request_id)

    def refuse_own(self, problem: Exception, call: AdministrationCall) -> Response | None:  # noqa: ARG002
        return None

    def fail(self, call: AdministrationCall) -> Response:
        return _answer(call.request, 500, 50000, "InternalServerError", _UNFORESEEN, call.request_id)

    def charge_of(self, call: AdministrationCall, answer: Response) -> str:  # noqa: ARG002
        return ""


def word_refusal(refused: BodyRefused, request: Request) -> Response:
    """Word what the listener refuses on its own."""
    return _answer(request, refused.status, refused.status * 100, refused.code, refused.message, "")


def is_of_manager(request: Request) -> bool:
    return _MANAGER_PATH.match(request.path) is not None


def _answer(request: Request, status: int, sub_code: int, code: str, sentence: str, request_id: str) -> Response:
    if is_of_manager(request):
        return json_response(status, {"error": {"code": code, "message": sentence}})
    # Clients take the sub-code out of the text, and show the rest.
    tracking = f" TrackingId:{request_id}" if request_id else ""
    return error_response(status, f"SubCode={sub_code}. {sentence}{tracking}")


def _sentence(error: AsterismError) -> str:
    match error:
        case errors.ResourceNotFound(kind, name) | errors.OwnerNotFound(kind, name):
            return f"The {kind} '{name}' could not be found."
        case errors.ResourceExists(kind, name):
            return f"An entity with the name '{name}' exists already; the {kind} was not created."
        case errors.StoredDamage():
            return report_damage(error)
        case _:
            return error.sentence
