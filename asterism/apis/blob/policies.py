"""Stored access policies as containers keep them, and as documents and signatures have them."""

from __future__ import annotations

from collections.abc import Mapping

from asterism.access.sas_grants import Policy
from asterism.apis.storage.access_policies import StoredPolicies, policies_for_signing
from asterism.models.blobs.state import AccessPolicy, ContainerState


def signing_policies(state: ContainerState) -> Mapping[str, Policy]:
    return policies_for_signing(shown_policies(state)) if state.policies else {}


def shown_policies(state: ContainerState) -> StoredPolicies:
    """Return the policies of a container as its document lists them."""
    return {policy.policy_id: _fields(policy) for policy in state.policies}


def _fields(policy: AccessPolicy) -> dict[str, str] | None:
    values = (("Start", policy.start), ("Expiry", policy.expiry), ("Permission", policy.permissions))
    given = {name: value for name, value in values if value is not None}
    return given or None


def kept_policies(policies: StoredPolicies) -> tuple[AccessPolicy, ...]:
    """Return the policies of a document as a container keeps them."""
    return tuple(
        AccessPolicy(name, (fields or {}).get("Start"), (fields or {}).get("Expiry"), (fields or {}).get("Permission"))
        for name, fields in policies.items()
    )
