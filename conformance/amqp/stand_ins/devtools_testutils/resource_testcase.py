"""The argument of the tests that names a group of resources."""

from __future__ import annotations

RESOURCE_GROUP_PARAM = "resource_group"
