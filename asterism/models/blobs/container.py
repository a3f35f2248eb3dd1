"""A container of blobs, as the door calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.blobs.calls import (
    CURRENT,
    NO_KEY,
    Appended,
    BlockEntry,
    BlockLists,
    Key,
    ListPage,
    ListQuery,
    NewBlob,
    RecordChange,
    SnapshotDeletion,
    Snapshotted,
    Which,
)
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions
from asterism.models.blobs.record import BlobRecord
from asterism.models.blobs.rules import NO_RULES, AccountRules
from asterism.models.blobs.state import ContainerState
from asterism.models.blobs.uploads import Upload


class Container:
    """The blobs of a container. Held for the length of a request.

    Every call raises OwnerNotFound if the container was deleted meanwhile, and BlobRefused with the reason for which
    the blob does not permit it; nothing was changed then.
    """

    account: str
    name: str
    keyspace: Keyspace

    @property
    def state(self) -> ContainerState:
        """The state that is in force now."""
        raise NotImplementedError

    # --- reading ----------------------------------------------------------------------------------------------------

    async def find(
        self, name: str, which: Which = CURRENT, conditions: Conditions = NO_CONDITIONS, key: Key | None = None
    ) -> BlobRecord:
        """Return a blob, a snapshot or a version; NOT_FOUND, or the reason of a condition that does not hold. With
        `key`, the blob must have been written with the same (NO_KEY: with none)."""
        raise NotImplementedError

    def read(self, record: BlobRecord, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` to before `end` of a record that was found, in pieces of at most 256 KiB.

        Of any kind of blob; what a page blob has not written is zeros. The content is that of the record, although
        the blob may change meanwhile. Close the iterator if it is not read to its end.
        """
        raise NotImplementedError

    async def block_list(
        self,
        name: str,
        which: Which = CURRENT,
        conditions: Conditions = NO_CONDITIONS,
        *,
        committed: bool = True,
        uncommitted: bool = True,
    ) -> BlockLists:
        raise NotImplementedError

    async def list(self, query: ListQuery) -> ListPage:
        raise NotImplementedError

    # --- data -------------------------------------------------------------------------------------------------------

    def begin_upload(self, name: str) -> Upload:
        """Return an empty upload for a blob, to be used with `async with`."""
        raise NotImplementedError

    async def put_block(
        self, name: str, block_id: bytes, upload: Upload, *, lease_id: str | None = None, key: Key = NO_KEY
    ) -> None:
        """Store an uncommitted block in place of one with the same id. Ids of a blob have one length."""
        raise NotImplementedError

    async def commit_blocks(
        self,
        name: str,
        entries: Sequence[BlockEntry],
        properties: NewBlob,
        conditions: Conditions = NO_CONDITIONS,
        rules: AccountRules = NO_RULES,
    ) -> BlobRecord:
        raise NotImplementedError

    async def put_blob(
        self,
        name: str,
        upload: Upload | None,
        properties: NewBlob,
        conditions: Conditions = NO_CONDITIONS,
        rules: AccountRules = NO_RULES,
    ) -> BlobRecord:
        """Make a blob, in place of what has the name: a block blob of the data, an append blob without data, or a page
        blob of `properties.size`."""
        raise NotImplementedError

    async def append(
        self,
        name: str,
        upload: Upload,
        conditions: Conditions = NO_CONDITIONS,
        *,
        position: int | None = None,
        max_size: int | None = None,
        key: Key = NO_KEY,
    ) -> Appended:
        """Append a block to an append blob; `position` is the size that it must have, `max_size` the most that it may
        have afterwards."""
        raise NotImplementedError

    # --- properties, snapshots, versions ----------------------------------------------------------------------------

    async def change(
        self,
        name: str,
        change: RecordChange,
        which: Which = CURRENT,
        conditions: Conditions = NO_CONDITIONS,
        rules: AccountRules = NO_RULES,
        key: Key | None = None,
    ) -> BlobRecord:
        """Apply a change of `changes.py`; return the record after it."""
        raise NotImplementedError

    async def snapshot(
        self,
        name: str,
        metadata: dict[str, str] | None = None,
        conditions: Conditions = NO_CONDITIONS,
        rules: AccountRules = NO_RULES,
        key: Key | None = None,
    ) -> Snapshotted:
        """Take a snapshot; with `metadata` in place of those of the blob. It changes neither etag nor time."""
        raise NotImplementedError

    async def delete(
        self,
        name: str,
        which: Which = CURRENT,
        conditions: Conditions = NO_CONDITIONS,
        rules: AccountRules = NO_RULES,
        *,
        snapshots: SnapshotDeletion | None = None,
        permanent: bool = False,
    ) -> bool:
        """Delete a blob, a snapshot or a version. Return True if it can be restored, as a soft-deleted record or a
        previous version. `permanent` removes a soft-deleted snapshot or version."""
        raise NotImplementedError

    async def undelete(self, name: str) -> None:
        """Restore all that is soft-deleted under a name; NOT_FOUND if the name was never used."""
        raise NotImplementedError
