"""Faults that a test suite asks for: which requests they meet, and how often."""

from __future__ import annotations

import pytest

from asterism.apis.http_pipeline import HttpCall, make_pipeline
from asterism.apis.injected_faults import FAULTS_MAX, STATUSES, Fault, InjectedFaults
from asterism.apis.pipeline import RequestMeter
from asterism.apis.transports.http import Request, Response
from asterism.errors import AsterismError, MalformedRequest, RequestRateTooLarge


def faults_of_two_doors() -> InjectedFaults:
    faults = InjectedFaults()
    faults.know_door("items", {"read", "write"})
    faults.know_door("tables", {"insert"})
    return faults


def test_a_fault_happens_as_often_as_asked() -> None:
    faults = faults_of_two_doors()
    faults.add(Fault(429, times=2, retry_after_seconds=0.5))
    met = [faults.take("items", "read") for _ in range(3)]
    assert [type(error) for error in met] == [RequestRateTooLarge, RequestRateTooLarge, type(None)]
    assert faults.pending == []


def test_faults_meet_their_own_door_and_operation_in_the_order_of_asking() -> None:
    faults = faults_of_two_doors()
    faults.add(Fault(503, door="tables"))
    faults.add(Fault(429, operation="write"))
    faults.add(Fault(404))
    assert [fault.status for fault in faults.pending] == [503, 429, 404]
    assert faults.take("items", "write") is not None
    assert faults.take("items", "write") is not None
    assert [fault.status for fault in faults.pending] == [503]


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_has_an_error_with_a_category(status: int) -> None:
    faults = faults_of_two_doors()
    faults.add(Fault(status))
    assert isinstance(faults.take("items", "read"), AsterismError)


def test_no_list_of_faults_grows_without_end() -> None:
    faults = faults_of_two_doors()
    for _ in range(FAULTS_MAX):
        faults.add(Fault(429))
    with pytest.raises(MalformedRequest):
        faults.add(Fault(429))


class Words:
    def refuse(self, error: AsterismError, call: HttpCall) -> Response:
        return Response(429, [], str(error).encode())

    def refuse_own(self, problem: Exception, call: HttpCall) -> Response | None:
        return None

    def fail(self, call: HttpCall) -> Response:
        return Response(500, [])

    def describe(self, call: HttpCall) -> str:
        return ""

    def charge_of(self, call: HttpCall, answer: Response) -> str:
        return ""


def call_with_body(body: bytes) -> HttpCall:
    return HttpCall(Request("POST", "/", "", {}, body, "http", "here"), "1")


async def answer_routed(call: HttpCall) -> Response:
    call.operation = "write"
    assert call.request.read_body is not None
    return Response(200, [], await call.request.read_body())


async def answer_plainly(call: HttpCall) -> Response:
    assert call.request.read_body is None
    return Response(200, [])


async def test_a_fault_is_met_when_the_route_is_known_and_before_anything_is_done() -> None:
    faults = InjectedFaults()
    meter = RequestMeter(lambda: 0.0, faults=faults)
    pipeline = make_pipeline("items", Words(), answer_routed, meter, operations={"read", "write"})
    faults.add(Fault(429, operation="read"))
    assert (await pipeline.run(call_with_body(b"kept"))).body == b"kept"
    faults.add(Fault(429, operation="write"))
    assert (await pipeline.run(call_with_body(b"kept"))).status == 429
    assert (await pipeline.run(call_with_body(b"kept"))).status == 200


async def test_a_door_without_operations_and_a_server_without_faults_are_left_as_they_are() -> None:
    faults = InjectedFaults()
    faults.add(Fault(429))
    for meter in (RequestMeter(lambda: 0.0, faults=faults), RequestMeter(lambda: 0.0)):
        pipeline = make_pipeline("admin", Words(), answer_plainly, meter)
        assert (await pipeline.run(call_with_body(b""))).status == 200
