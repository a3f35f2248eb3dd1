"""The door's table of errors, and the forms in which clients are told."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from asterism import errors
from asterism.apis.storage.refusals import Refusal
from asterism.apis.table.errors import error_body, error_headers, refusal_of, throttled
from asterism.values.json.text import loads


@pytest.mark.parametrize("error", [errors.StorageUnavailable(reason="x"), errors.TooMuchContention()])
def test_what_may_pass_is_a_server_that_is_busy(error: errors.AsterismError) -> None:
    assert (refusal_of(error).status, refusal_of(error).code) == (503, "ServerBusy")


def test_a_throttled_request_is_told_when_to_come_again_in_both_headers() -> None:
    assert throttled(0.25).more_headers == [("retry-after", "1"), ("x-ms-retry-after-ms", "250")]


def test_json_has_code_and_message_and_nothing_else() -> None:
    body: Any = loads(error_body(Refusal(400, "InvalidInput", "No."), request_id="r", now_wall_seconds=0))
    assert body == {
        "odata.error": {
            "code": "InvalidInput",
            "message": {"lang": "en-US", "value": "No.\nRequestId:r\nTime:1970-01-01T00:00:00.0000000Z"},
        }
    }


def test_xml_has_the_same_and_escapes_what_clients_sent() -> None:
    refusal = Refusal(400, "InvalidInput", "<&>", is_xml=True)
    root = ElementTree.fromstring(error_body(refusal, request_id="r", now_wall_seconds=0))
    assert [str(child.tag).rpartition("}")[2] for child in root] == ["code", "message"]
    assert str(root[1].text).startswith("<&>\n")
    assert ("x-ms-error-code", "InvalidInput") in error_headers(refusal)
