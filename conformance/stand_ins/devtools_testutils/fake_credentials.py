"""A key of the right form that opens nothing."""

from __future__ import annotations

STORAGE_ACCOUNT_FAKE_KEY = "bm8ga2V5"
