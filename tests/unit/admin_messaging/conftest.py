"""A server without a socket, for tests of the operator's routes on messaging."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.admin_messaging.operator_at_hand import MessagingOperator, operator_at_hand


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncIterator[MessagingOperator]:
    async with operator_at_hand(tmp_path) as operator:
        yield operator
