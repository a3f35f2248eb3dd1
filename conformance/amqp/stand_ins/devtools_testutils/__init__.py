"""The names that the messaging clients' tests import from an unpublished package of the vendor.

Most of them are those of the other clients' tests. Preparers create entities before a test and remove them after it.
"""

from __future__ import annotations

import functools
import inspect
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.error import HTTPError

from azure.core.exceptions import AzureError

from conformance.amqp.credentials import get_credential as get_credential
from conformance.amqp.managers import Resource
from conformance.amqp.namespace import NAMESPACE
from conformance.stand_ins import devtools_testutils as common
from conformance.stand_ins.devtools_testutils import PowerShellPreparer as PowerShellPreparer
from conformance.stand_ins.devtools_testutils import is_live as is_live
from conformance.stand_ins.devtools_testutils import recorded_by_proxy as recorded_by_proxy
from conformance.stand_ins.devtools_testutils import test_proxy as test_proxy
from conformance.stand_ins.devtools_testutils import wanted_by as wanted_by

FakeResource = Resource
_RANDOM_DIGITS_MIN = 8
_cached: dict[tuple[Any, ...], dict[str, Any]] = {}


class AzureTestError(Exception):
    """A fault of a preparer."""


class ReservedResourceNameError(Exception):
    """A name that nothing may have."""


class AzureRecordedTestCase(common.AzureRecordedTestCase):
    def create_random_name(self, prefix: str) -> str:
        """Another one in every run: tests of several workers share a namespace."""
        return prefix + uuid.uuid4().hex[:_RANDOM_DIGITS_MIN]

    get_resource_name = create_random_name

    def get_credential(self, *_: Any, is_async: bool = False, **__: Any) -> Any:
        return get_credential(is_async=is_async)

    @staticmethod
    def await_prepared_test(test: Callable[..., Any]) -> Callable[..., Any]:
        # The plugin for coroutines awaits it.
        return test


AzureMgmtRecordedTestCase = AzureRecordedTestCase


class AzureMgmtPreparer:
    """A decorator that creates an entity before the test and removes it after it; cached ones stay for later tests.

    Subclasses have `create_resource(name, **named)`, which returns more arguments of the test, and `remove_resource`.
    """

    is_live = True

    def __init__(self, name_prefix: str = "", random_name_length: int = 24, *_: Any, **options: Any) -> None:
        self.name_prefix = name_prefix
        self.random_name_length = random_name_length
        self.random_name_enabled = options.get("random_name_enabled", False)
        self.resource: Any = None
        self.client: Any = None
        self.moniker: str | None = None
        self.resource_moniker: str | None = None
        self.resource_random_name: str | None = None
        self.test_class_instance: Any = None
        self._is_cached = False
        self._cache_key: tuple[Any, ...] = ()

    def set_cache(self, enabled: bool, *key: Any) -> None:
        self._is_cached = enabled
        # Some of the keys are lists.
        self._cache_key = tuple(map(str, key))

    def create_mgmt_client(self, kind: Callable[..., Any], **_: Any) -> Any:
        return kind()

    def create_resource(self, _: str, **__: Any) -> dict[str, Any]:
        raise NotImplementedError

    def remove_resource(self, _: str, **__: Any) -> None:
        raise NotImplementedError

    def __call__(self, test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def prepared(case: Any, *arguments: Any, **named: Any) -> Any:
                name = self._prepare(case, named)
                try:
                    return await test(case, *arguments, **wanted_by(test, named))
                finally:
                    self._finish(name, named)
        else:

            @functools.wraps(test)
            def prepared(case: Any, *arguments: Any, **named: Any) -> Any:
                name = self._prepare(case, named)
                try:
                    return test(case, *arguments, **wanted_by(test, named))
                finally:
                    self._finish(name, named)

        prepared.__dict__["__is_preparer"] = True
        return prepared

    def _prepare(self, case: Any, named: dict[str, Any]) -> str | None:
        """Add to the arguments of the test; return the name of an entity that is to be removed."""
        self.test_class_instance = case
        key = (type(self).__name__, self.name_prefix, self._cache_key, _parent_of(named))
        if self._is_cached and key in _cached:
            named.update(_cached[key])
            return None
        name = self._new_name()
        made = self.create_resource(name, **named)
        named.update(made)
        if self._is_cached:
            _cached[key] = made
            return None
        return name

    def _new_name(self) -> str:
        if type(self).__name__.endswith("NamespacePreparer"):
            return NAMESPACE
        length = max(self.random_name_length, len(self.name_prefix) + _RANDOM_DIGITS_MIN)
        return (self.name_prefix + uuid.uuid4().hex)[:length]

    def _finish(self, name: str | None, named: dict[str, Any]) -> None:
        if name is not None:
            # The test may have removed it itself.
            with suppress(AzureError, HTTPError):
                self.remove_resource(name, **named)


def _parent_of(named: Mapping[str, Any]) -> str | None:
    """The topic that cached subscriptions belong to."""
    topic = named.get("servicebus_topic")
    return topic.name if topic is not None else None


class ResourceGroupPreparer(AzureMgmtPreparer):
    def create_resource(self, _: str, **__: Any) -> dict[str, Any]:
        return {"resource_group": Resource("group"), "location": get_region_override()}

    def remove_resource(self, _: str, **__: Any) -> None:
        return None


RandomNameResourceGroupPreparer = CachedResourceGroupPreparer = ResourceGroupPreparer


def get_region_override(default: str = "westus") -> str:
    return default


def __getattr__(name: str) -> Any:
    """Everything that would configure recordings: nothing to do."""
    if name.startswith(("add_", "set_", "remove_")):
        return lambda *_, **__: None
    raise AttributeError(name)
