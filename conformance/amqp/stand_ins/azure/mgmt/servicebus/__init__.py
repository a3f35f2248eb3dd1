"""The resource manager's client for Service Bus, as far as the tests use it."""

from __future__ import annotations

from conformance.amqp.managers import ServiceBusManagementClient

__all__ = ["ServiceBusManagementClient"]
