"""Every way the database says no has its place in the protocol."""

from __future__ import annotations

from typing import Any, cast

import pytest

from asterism import errors
from asterism.apis.nosql.errors import (
    ContainerRecreated,
    NeedsQueryPlan,
    Refusal,
    error_response,
    failure_response,
    refusal_response,
    size_text,
)
from asterism.apis.transports.http import Response
from asterism.errors import AsterismError
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.limits import GIB, KIB
from asterism.values.json.text import loads
from tests.unit.apis.error_answers import all_errors, example


def body_of(response: Response) -> dict[str, Any]:
    return cast("dict[str, Any]", loads(response.body))


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_has_a_body_with_code_message_and_activity_id(kind: type[AsterismError]) -> None:
    response = error_response(example(kind), "the-activity")
    body = body_of(response)
    assert 400 <= response.status < 600
    assert body["code"]
    assert body["message"].endswith("\r\nActivityId: the-activity")
    assert dict(response.headers)["content-type"] == "application/json"
    assert "x-ms-request-charge" in dict(response.headers)


@pytest.mark.parametrize(
    ("error", "status", "substatus"),
    [
        (errors.PartitionKeyMismatch(), 400, "1001"),
        (NeedsQueryPlan(plan_json="{}"), 400, "1004"),
        (ContainerRecreated(name="c"), 400, "1024"),
        (errors.LsnNotReached(), 404, "1002"),
        (errors.OwnerNotFound(kind="container", name="c"), 404, "1003"),
        (errors.ItemNotFound(item_id="i"), 404, None),
        (errors.LogicalPartitionFull(bytes_max=20 * GIB), 403, "1014"),
        (errors.RequestRateTooLarge(retry_after_seconds=1.0), 429, "3200"),
    ],
)
def test_clients_find_the_status_and_substatus_they_act_on(
    error: AsterismError, status: int, substatus: str | None
) -> None:
    response = error_response(error, "a")
    assert response.status == status
    assert dict(response.headers).get("x-ms-substatus") == substatus


def test_a_throttled_client_is_told_how_long_to_wait_in_whole_milliseconds_rounded_up() -> None:
    response = error_response(errors.RequestRateTooLarge(retry_after_seconds=0.0104), "a")
    assert dict(response.headers)["x-ms-retry-after-ms"] == "11"


def test_a_query_error_tells_its_code_and_place_as_json() -> None:
    response = error_response(MalformedQuery("SC1001", "Syntax error.", 3, 5), "a")
    details = body_of(response)["message"].removeprefix("Message: ").partition("\r\n")[0]
    assert loads(details) == {
        "errors": [
            {"severity": "Error", "location": {"start": 3, "end": 5}, "code": "SC1001", "message": "Syntax error."}
        ]
    }


def test_a_query_that_needs_a_plan_brings_it_along() -> None:
    response = error_response(NeedsQueryPlan(plan_json='{"a":1}'), "a")
    assert body_of(response)["additionalErrorInfo"] == '{"a":1}'


def test_a_full_logical_partition_names_the_limit_in_force() -> None:
    response = error_response(errors.LogicalPartitionFull(bytes_max=64 * KIB), "a")
    assert "Partition key reached maximum size of 64 KB" in body_of(response)["message"]


def test_an_unexpected_failure_tells_nothing_but_where_to_look() -> None:
    response = failure_response("a")
    assert response.status == 500
    assert set(body_of(response)) == {"code", "message"}
    assert "Traceback" not in body_of(response)["message"]


def test_a_refusal_of_the_door_itself_has_the_same_shape() -> None:
    response = refusal_response(Refusal(405, "MethodNotAllowed", "No."), "a")
    assert (response.status, body_of(response)["code"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(20 * GIB, "20 GB"), (1536 * KIB, "1536 KB"), (100, "100 bytes"), (2048, "2 KB")]
)
def test_sizes_are_told_in_the_largest_whole_unit(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


def test_a_query_is_told_of_everything_that_is_wrong() -> None:
    more = MalformedQuery("2206", "No path.", 7, 9)
    response = error_response(MalformedQuery("SC2203", "No TOP.", 3, 5, (more,)), "the-activity")
    message = body_of(response)["message"].removeprefix("Message: ").partition("\r\n")[0]
    assert loads(message) == {
        "errors": [
            {"severity": "Error", "location": {"start": 3, "end": 5}, "code": "SC2203", "message": "No TOP."},
            {"severity": "Error", "code": 2206, "message": "No path."},
        ]
    }
