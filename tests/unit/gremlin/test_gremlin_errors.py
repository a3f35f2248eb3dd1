"""Errors in the service's words: every category has a code and a status, and times have the form of .NET."""

from __future__ import annotations

import pytest

from asterism import errors
from asterism.apis.gremlin.errors import Refusal, as_refusal, time_span
from asterism.apis.gremlin.malformed import InvalidCredentials, MalformedMessage, OperationRefused, ResultRefused
from asterism.languages.gremlin import failure
from tests.unit.apis.error_answers import examples

CODES = {401, 498, 500, 595, 597, 598, 599}


@pytest.mark.parametrize("name", sorted(examples()))
def test_every_error_of_the_database_has_an_answer(name: str) -> None:
    refusal = as_refusal(examples()[name])

    assert refusal is not None
    assert refusal.code in CODES
    assert refusal.sentence
    assert "class" not in refusal.message(activity_id="a", request_id="r").split("ExceptionMessage")[0]


@pytest.mark.parametrize(
    ("problem", "code", "status", "exception"),
    [
        (errors.ItemExists(item_id="a"), 500, 409, "ConflictException"),
        (errors.PreconditionFailed(), 500, 412, "PreconditionFailedException"),
        (errors.TooMuchContention(), 500, 412, "PreconditionFailedException"),
        (errors.ItemNotFound(item_id="a"), 500, 404, "NotFoundException"),
        (errors.RequestRateTooLarge(retry_after_seconds=0.5), 500, 429, "RequestRateTooLargeException"),
        (errors.Forbidden(reason="no"), 500, 403, "ForbiddenException"),
        (errors.MalformedRequest(reason="no"), 597, 1000, "GraphRuntimeException"),
        (failure.CompileFailure("no"), 597, 1000, "GraphCompileException"),
        (failure.ExecutionFailure("no"), 597, 1000, "GraphRuntimeException"),
        (failure.LimitExceeded("no"), 597, 429, "GraphRuntimeException"),
        (failure.MemoryExceeded("no"), 500, 1003, "GraphOutOfMemoryException"),
        (failure.TimeExceeded("no"), 598, 1009, "GraphTimeoutException"),
        (failure.FailStep("no"), 595, 1000, "GraphRuntimeException"),
        (MalformedMessage("no"), 498, 1004, "GraphMalformedException"),
        (ResultRefused("no"), 599, 1001, "GraphSerializationException"),
        (OperationRefused("no"), 500, 1000, "GraphRuntimeException"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_problems_have_the_codes_of_the_service(problem: Exception, code: int, status: int, exception: str) -> None:
    refusal = as_refusal(problem)

    assert refusal is not None
    assert (refusal.code, refusal.status, refusal.exception) == (code, status, exception)


def test_a_refused_login_has_its_sentence_alone() -> None:
    refusal = as_refusal(InvalidCredentials())

    assert isinstance(refusal, Refusal)
    assert refusal.message(activity_id="a", request_id="r") == "Unauthorized: Invalid credentials provided"


def test_an_exception_that_no_code_foresaw_has_no_answer_here() -> None:
    assert as_refusal(RuntimeError("secret")) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.033, "00:00:00.0330000"), (0.0, "00:00:00.0000001"), (61.5, "00:01:01.5000000"), (3600.0, "01:00:00.0000000")],
)
def test_times_to_wait_have_the_form_that_samples_parse(seconds: float, text: str) -> None:
    assert time_span(seconds) == text
