"""Base classes and helpers of the tests of blobs and queues."""

from __future__ import annotations

import inspect
import io
import logging
import math
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from .. import AzureRecordedTestCase

_LOGGER = logging.getLogger("azure.storage")
_DATE = "%Y-%m-%dT%H:%M:%S.%f"
# Of one byte for each character: tests give the number of characters as the length of the data.
_WORDS = ("hello", "world", "python", "a", "text")
_SIGNING_KEY = "a" * 30 + "b" * 30


def _signature() -> str:
    """A shared access signature of a real form, for tests of what clients do with it."""
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

    now = datetime.now(UTC)
    made: str = generate_account_sas(
        account_name="test",
        account_key=_SIGNING_KEY,
        resource_types=ResourceTypes(object=True),
        permission=AccountSasPermissions(read=True, list=True),
        start=now - timedelta(days=1),
        expiry=now + timedelta(days=8),
    )
    return f"?{made}"


class StorageRecordedTestCase(AzureRecordedTestCase):
    logger = _LOGGER
    sas_token: str

    # pytest calls it with the class.
    def setup_class(cls) -> None:
        cls.sas_token = _signature()

    def setup_method(self, _: Any) -> None:
        self.configure_logging()

    def connection_string(self, account_name: str, key: str) -> str:
        # The client is to take names in any case.
        account = f"AcCounTName={account_name};AccOuntKey={key}"
        return f"DefaultEndpointsProtocol=https;{account};EndpoIntSuffix=core.windows.net"

    def account_url(self, account: str, kind: str) -> str:
        return f"https://{account}.{kind}.core.windows.net"

    def configure_logging(self) -> None:
        self.enable_logging()

    def enable_logging(self) -> None:
        _LOGGER.handlers = [logging.StreamHandler(io.StringIO())]
        _LOGGER.setLevel(logging.DEBUG)
        _LOGGER.propagate = True
        _LOGGER.disabled = False

    def disable_logging(self) -> None:
        _LOGGER.handlers = []
        _LOGGER.propagate = False
        _LOGGER.disabled = True

    def get_random_bytes(self, size: int) -> bytes:
        return random.Random(size).randbytes(size)

    def get_random_text_data(self, size: int) -> str:
        chosen = random.Random(size)
        text = ""
        while len(text) < size:
            text += f" {chosen.choice(_WORDS)}"
        return text

    def assertNamedItemInContainer(self, container: Iterable[Any], item_name: str, _: Any = None) -> None:
        assert any(_is_named(item, item_name) for item in container), f"{item_name!r} is not there"

    def assertNamedItemNotInContainer(self, container: Iterable[Any], item_name: str, _: Any = None) -> None:
        assert not any(_is_named(item, item_name) for item in container), f"{item_name!r} is there"

    def assert_upload_progress(
        self, size: int, max_chunk_size: int, progress: Sequence[tuple[int, int | None]], unknown_size: bool = False
    ) -> None:
        assert len(progress) == math.ceil(size / max_chunk_size)
        for done, total in progress:
            assert done == size or done % max_chunk_size == 0
            assert total == (None if unknown_size else size)

    def assert_download_progress(
        self, size: int, max_chunk_size: int, max_get_size: int, progress: Sequence[tuple[int, int]]
    ) -> None:
        later = max(size - max_get_size, 0)
        assert len(progress) == 1 + math.ceil(later / max_chunk_size)
        # Pieces may arrive in any order, so only the last can be short.
        for done, total in progress[1:]:
            assert done % max_chunk_size in {0, later % max_chunk_size, max_get_size % max_chunk_size}
            assert total == size

    def get_datetime_variable(self, variables: dict[str, str], name: str, when: datetime) -> datetime:
        return datetime.strptime(variables.setdefault(name, when.strftime(_DATE)), _DATE)


def _is_named(item: Any, name: str) -> bool:
    if isinstance(item, str):
        return item == name
    if isinstance(item, dict):
        return bool(item["name"] == name)
    return bool(item.name == name or getattr(item, "snapshot", None) == name)


class LogCaptured:
    """Log lines of the client while a block runs."""

    def __init__(self, test_case: StorageRecordedTestCase) -> None:
        self.test_case = test_case
        self.stream = io.StringIO()
        self.handler = logging.StreamHandler(self.stream)

    def __enter__(self) -> io.StringIO:
        self.test_case.enable_logging()
        _LOGGER.addHandler(self.handler)
        return self.stream

    def __exit__(self, *_: Any) -> None:
        _LOGGER.removeHandler(self.handler)
        self.test_case.configure_logging()


class GenericTestProxyParametrize1:
    """Makes a parameter visible to pytest below a decorator that hides it."""

    def __call__(self, test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            async def run_async(self: Any, a: Any, **named: Any) -> Any:
                return await test(self, a, **named)

            return run_async

        def run(self: Any, a: Any, **named: Any) -> Any:
            return test(self, a, **named)

        return run


class GenericTestProxyParametrize2:
    def __call__(self, test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            async def run_async(self: Any, a: Any, b: Any, **named: Any) -> Any:
                return await test(self, a, b, **named)

            return run_async

        def run(self: Any, a: Any, b: Any, **named: Any) -> Any:
            return test(self, a, b, **named)

        return run
