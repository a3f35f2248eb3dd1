"""Descriptions of hubs."""

from __future__ import annotations

from conformance.amqp.managers import AccessRights, Description

__all__ = ["AccessRights", "Eventhub"]

Eventhub = Description
