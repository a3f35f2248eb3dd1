"""Requests of a test suite to its server: fail the next requests, shift the clock, forget everything.

Served only with `--test-controls`, for the holder of a full key, who could delete everything anyway.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Any

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import body_object
from asterism.apis.admin.routes import Route, RouteKey
from asterism.apis.admin.services import AdminServices
from asterism.apis.injected_faults import RETRY_AFTER_SECONDS_DEFAULT, Fault
from asterism.apis.suite_controls import SuiteControls
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.values.json.text import dumps

# A century: any shift that a test can mean, within the times that can be stored.
SKEW_SECONDS_MAX = 100 * 366 * 86_400
RETRY_AFTER_SECONDS_MAX = 3600


async def show_controls(services: AdminServices, _: Request) -> Response:
    return _state(_controls(services))


async def fail_next(services: AdminServices, request: Request) -> Response:
    controls, body = _controls(services), body_object(request)
    fault = Fault(
        status=_whole_number(body, "status", None),
        times=_whole_number(body, "times", 1),
        door=_optional_text(body, "door"),
        operation=_optional_text(body, "operation"),
        retry_after_seconds=_seconds(
            body, "retry_after_seconds", default=RETRY_AFTER_SECONDS_DEFAULT, limit=RETRY_AFTER_SECONDS_MAX
        ),
    )
    if fault.retry_after_seconds < 0:
        raise MalformedRequest(reason="'retry_after_seconds' must not be negative.")
    controls.faults.add(fault)
    return _state(controls)


async def set_clock_skew(services: AdminServices, request: Request) -> Response:
    controls = _controls(services)
    controls.skew.seconds = _seconds(body_object(request), "seconds", default=None, limit=SKEW_SECONDS_MAX)
    return _state(controls)


async def reset(services: AdminServices, _: Request) -> Response:
    """Delete all data and all accounts that the configuration does not give; forget faults and the clock's skew."""
    controls, store = _controls(services), services.store
    controls.faults.clear()
    controls.skew.seconds = 0.0
    made = [record.name for record in services.accounts.all() if record.name not in services.configured_accounts]
    for name in made:
        await services.accounts.close(name)
    for database in list(store.catalog.databases.values()):
        # A request that is still under way may delete it too.
        with suppress(ResourceNotFound):
            await store.delete_database(database.account, database.name)
    for name in made:
        await services.accounts.delete(name)
    return _state(controls)


CONTROL_ROUTES: dict[RouteKey, Route] = {
    ("GET", "_asterism/testing"): Route(show_controls, "The faults to come and the clock's skew.", takes_bearer=True),
    ("POST", "_asterism/testing/fail-next"): Route(
        fail_next, "Fails requests: status, times, door, operation, retry_after_seconds.", takes_bearer=True
    ),
    ("POST", "_asterism/testing/clock-skew"): Route(
        set_clock_skew, "Shifts the clock that stored times and expiry go by: seconds.", takes_bearer=True
    ),
    ("POST", "_asterism/testing/reset"): Route(
        reset, "Deletes all data and made accounts, and ends faults and skew.", takes_bearer=True
    ),
}


def _controls(services: AdminServices) -> SuiteControls:
    if services.controls is None:
        raise MalformedRequest(reason="The server has no test controls. Start it with --test-controls.")
    return services.controls


def _state(controls: SuiteControls) -> Response:
    faults = [asdict(fault) for fault in controls.faults.pending]
    return Response(200, JSON_HEADERS, dumps({"faults": faults, "clock_skew_seconds": controls.skew.seconds}))


def _whole_number(body: dict[str, Any], name: str, default: int | None) -> int:
    value = body.get(name, default)
    if type(value) is not int:
        raise MalformedRequest(reason=f"'{name}' must be a whole number.")
    return value


def _seconds(body: dict[str, Any], name: str, *, default: float | None, limit: int) -> float:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -limit <= value <= limit:
        raise MalformedRequest(reason=f"'{name}' must be a number of seconds, at most {limit:,}.")
    return float(value)


def _optional_text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise MalformedRequest(reason=f"'{name}' must be a text, or be left out.")
    return value
