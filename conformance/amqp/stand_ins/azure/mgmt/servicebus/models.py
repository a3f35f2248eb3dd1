"""Descriptions of entities."""

from __future__ import annotations

from conformance.amqp.managers import AccessRights, Description

__all__ = ["AccessRights", "SBAuthorizationRule", "SBQueue", "SBSubscription"]

SBQueue = SBSubscription = SBAuthorizationRule = Description
