"""The resource manager's client for Event Hubs, as far as the tests use it."""

from __future__ import annotations

from conformance.amqp.managers import EventHubManagementClient

__all__ = ["EventHubManagementClient"]
