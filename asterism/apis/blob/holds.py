"""The containers whose blobs can have immutability policies and legal holds of their own."""

from __future__ import annotations

from asterism.apis.storage.refusals import Refusal
from asterism.models.blobs.container import Container


def check_permits_holds(container: Container) -> None:
    """Refuse policies and holds of single blobs where the container was not made for them."""
    if not container.state.has_version_immutability:
        raise Refusal(
            409,
            "VersionLevelImmutabilityNotEnabled",
            "The container does not permit immutability policies and legal holds of single blobs. Start the server "
            "with --blob-immutability ACCOUNT, and create the container anew.",
        )
