"""The same for tests that are coroutines."""

from __future__ import annotations

from conformance.stand_ins.devtools_testutils.aio import recorded_by_proxy_async

__all__ = ["recorded_by_proxy_async"]
