"""The same names for tests that are coroutines."""

from __future__ import annotations

from .. import GenericTestProxyParametrize1, GenericTestProxyParametrize2, StorageRecordedTestCase

__all__ = ["AsyncStorageRecordedTestCase", "GenericTestProxyParametrize1", "GenericTestProxyParametrize2"]


class AsyncStorageRecordedTestCase(StorageRecordedTestCase):
    pass
