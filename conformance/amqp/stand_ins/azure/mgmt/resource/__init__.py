"""The client for groups of resources, as far as the messaging clients' tests use it."""

from __future__ import annotations

from conformance.amqp.managers import ResourceManagementClient

__all__ = ["ResourceManagementClient"]
