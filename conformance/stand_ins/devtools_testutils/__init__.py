"""The names that the clients' tests import from an unpublished package of the vendor, as far as a live run needs them.

No recording and no resource manager: decorators pass through, and what they would prepare comes from the environment
(see the plugins of conformance/tables and conformance/storage).
"""

from __future__ import annotations

import functools
import inspect
import os
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from azure.core.credentials import AccessToken

from conformance.credentials import AsyncCredential, Credential


class Value(str):
    """A prepared argument; some tests ask it for its secret."""

    @property
    def secret(self) -> str:
        return str(self)


def prepared_value(name: str) -> Value:
    """An account's name or key, as the runner has put it into the environment."""
    return Value(os.environ.get(f"ASTERISM_TESTS_{name.upper()}", f"no-{name}"))


class PowerShellPreparer:
    """A decorator that gives a test the arguments that begin with the name of the service."""

    def __init__(self, service: str, *_: Any, **wanted: Any) -> None:
        self.names = [name for name in wanted if service in name]

    def __call__(self, test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def prepared(*arguments: Any, **named: Any) -> Any:
                return await test(*arguments, **self._fill(test, named))
        else:

            @functools.wraps(test)
            def prepared(*arguments: Any, **named: Any) -> Any:
                return test(*arguments, **self._fill(test, named))

        self._hide_arguments(test, prepared)
        return prepared

    def _fill(self, test: Callable[..., Any], named: dict[str, Any]) -> dict[str, Any]:
        return wanted_by(test, {**{name: prepared_value(name) for name in self.names}, **named})

    def _hide_arguments(self, test: Callable[..., Any], prepared: Any) -> None:
        """pytest would take them for fixtures."""
        signature = inspect.signature(test)
        variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        kept = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.name not in self.names and parameter.kind not in variable
        ]
        if not kept or kept[0].name != "self":
            kept.insert(0, inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD))
        prepared.__signature__ = signature.replace(parameters=kept)
        prepared.__dict__["__is_preparer"] = True


EnvironmentVariableLoader = PowerShellPreparer


class EnvironmentVariableOptions:
    """Names that a recording would hide."""

    def __init__(self, *, hide_secrets: Sequence[str] = ()) -> None:
        self.hide_secrets = hide_secrets


def wanted_by(test: Callable[..., Any], named: dict[str, Any]) -> dict[str, Any]:
    """Of the arguments, those that the test takes."""
    if getattr(test, "__is_preparer", False):
        return named
    signature = inspect.getfullargspec(inspect.unwrap(test))
    if signature.varkw:
        return named
    return {name: value for name, value in named.items() if name in signature.args or name in signature.kwonlyargs}


def trim_kwargs_from_test_function(test: Callable[..., Any], named: dict[str, Any]) -> None:
    for name in named.keys() - wanted_by(test, named).keys():
        del named[name]


def recorded_by_proxy(test: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> Any:
        return test(*arguments, **wanted_by(test, named))

    return run


class AzureRecordedTestCase:
    is_live = True
    in_recording = False

    @property
    def qualified_test_name(self) -> str:
        return os.environ["PYTEST_CURRENT_TEST"]

    def get_resource_name(self, prefix: str) -> str:
        """The same in every run, so that a run leaves no more than the last one did."""
        return f"{prefix}{zlib.adler32(os.environ['PYTEST_CURRENT_TEST'].encode()):x}"

    create_random_name = get_resource_name

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def is_playback(self) -> bool:
        return False

    def get_credential(self, *_: Any, is_async: bool = False, **__: Any) -> Any:
        return get_credential(is_async=is_async)

    def get_settings_value(self, _: str) -> str:
        return "00000000-0000-0000-0000-000000000000"

    def generate_sas(self, make: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        named.pop("fake_parameters", None)
        named.pop("fake_value", None)
        return make(*arguments, **named)


class RetryCounter:
    def __init__(self) -> None:
        self.count = 0

    def simple_count(self, _: Any) -> None:
        self.count += 1


class ResponseCallback:
    """A policy that changes the status of answers, so that the client retries."""

    def __init__(self, status: int | None = None, new_status: int | None = None) -> None:
        self.status = status
        self.new_status = new_status
        self.is_first = True
        self.count = 0

    def override_first_status(self, response: Any) -> None:
        if self.is_first and response.http_response.status_code == self.status:
            self.is_first = False
            response.http_response.status_code = self.new_status
        self.count += 1

    def override_status(self, response: Any) -> None:
        if response.http_response.status_code == self.status:
            response.http_response.status_code = self.new_status
        self.count += 1


class FakeTokenCredential:
    """A token that no service takes; some tests count how often it is asked for."""

    def __init__(self) -> None:
        self.token = AccessToken("no token", 0)
        self.get_token_count = 0

    def get_token(self, *_: Any, **__: Any) -> AccessToken:
        self.get_token_count += 1
        return self.token


def get_credential(*, is_async: bool = False, **_: Any) -> Any:
    return AsyncCredential() if is_async else Credential()


def is_live() -> bool:
    return True


@pytest.fixture(scope="session")
def test_proxy() -> None:
    return None


def __getattr__(name: str) -> Any:
    """Everything that would configure recordings: nothing to do."""
    if name.startswith(("add_", "set_", "remove_")):
        return lambda *_, **__: None
    raise AttributeError(name)
