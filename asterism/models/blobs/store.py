"""The containers of all accounts, as keyspaces of the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions
from asterism.models.blobs.container import Container
from asterism.models.blobs.rules import NO_RULES, AccountRules
from asterism.models.blobs.state import ContainerState

# Decides on a change of a container's state: gets the state and the moment, returns the state after it or raises.
StateChange = Callable[[ContainerState, int], ContainerState]


class BlobStore:
    """Creates, finds, lists and deletes containers, and keeps small documents about accounts. One per process."""

    @property
    def is_shared(self) -> bool:
        raise NotImplementedError

    @property
    def known_lsn(self) -> int:
        raise NotImplementedError

    async def catch_up(self) -> int:
        raise NotImplementedError

    def find_container(self, account: str, name: str) -> Container | None:
        """Return a container that is not deleted."""
        raise NotImplementedError

    async def create_container(
        self,
        account: str,
        name: str,
        *,
        metadata: Mapping[str, str] | None = None,
        public_access: str | None = None,
        default_encryption_scope: str | None = None,
        denies_scope_override: bool = False,
        has_version_immutability: bool = False,
    ) -> Container:
        """Create a container; BlobRefused (CONTAINER_EXISTS)."""
        raise NotImplementedError

    async def delete_container(
        self, account: str, name: str, conditions: Conditions = NO_CONDITIONS, rules: AccountRules = NO_RULES
    ) -> None:
        """Delete a container; with container retention it can be restored for that time. CONTAINER_NOT_FOUND."""
        raise NotImplementedError

    async def restore_container(
        self, account: str, deleted_name: str, deleted_version: str, new_name: str
    ) -> Container:
        """Restore a deleted container; CONTAINER_EXISTS if another has the name, CONTAINER_NOT_FOUND."""
        raise NotImplementedError

    async def change_container(
        self, container: Container, change: StateChange, conditions: Conditions = NO_CONDITIONS
    ) -> ContainerState:
        """Change the state as `change` decides on the state in force; conditions are checked in the same decision (not
        the lease, unless they have a lease id). Return the state after it."""
        raise NotImplementedError

    def list_containers(
        self, account: str, *, prefix: str = "", after: str | None = None, limit: int = 5_000, deleted: bool = False
    ) -> list[Container]:
        """List containers in the order of their names, from `after` on (that included); with `deleted`, deleted ones
        too, which follow those of the same name."""
        raise NotImplementedError

    async def get_document(self, account: str, name: str) -> bytes | None:
        """Return a small document about an account, such as its service properties."""
        raise NotImplementedError

    async def put_document(self, account: str, name: str, content: bytes) -> None:
        raise NotImplementedError

    def containers(self) -> list[Container]:
        """List the containers of all accounts, deleted ones too."""
        raise NotImplementedError
