"""A container of blobs, as the door calls it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.blobs.appends import append_block
from asterism.models.blobs.blocks import block_lists, commit_blocks, put_block
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
    TagPage,
    Which,
)
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions
from asterism.models.blobs.finding import find_record
from asterism.models.blobs.layout import point_of
from asterism.models.blobs.listing import list_blobs
from asterism.models.blobs.pages import PageBlobs
from asterism.models.blobs.reading import read_content
from asterism.models.blobs.record import BlobRecord
from asterism.models.blobs.rules import NO_RULES, AccountRules
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.state import ContainerState
from asterism.models.blobs.tags_search import TagSearch, TagTest
from asterism.models.blobs.uploads import Upload
from asterism.models.blobs.writing import change_record, delete_blob, put_blob, take_snapshot, undelete_blob


class Container:
    """The blobs of a container. Held for the length of a request.

    Every call raises OwnerNotFound if the container was deleted meanwhile, and BlobRefused with the reason for which
    the blob does not permit it; nothing was changed then.
    """

    __slots__ = ("space",)

    def __init__(self, space: BlobSpace) -> None:
        self.space = space

    @property
    def account(self) -> str:
        return self.space.account

    @property
    def name(self) -> str:
        return self.space.name

    @property
    def keyspace(self) -> Keyspace:
        return self.space.keyspace

    @property
    def state(self) -> ContainerState:
        """The state that is in force now."""
        return self.space.state

    @property
    def pages(self) -> PageBlobs:
        """The calls on page blobs."""
        return PageBlobs(self.space)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def find(
        self, name: str, which: Which = CURRENT, conditions: Conditions = NO_CONDITIONS, key: Key | None = None
    ) -> BlobRecord:
        """Return a blob, a snapshot or a version; NOT_FOUND, or the reason of a condition that does not hold. With
        `key`, the blob must have been written with the same (NO_KEY: with none)."""
        return await find_record(self.space, name, which, conditions, key)

    def read(self, record: BlobRecord, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` to before `end` of a record that was found, in pieces of at most 256 KiB.

        Of any kind of blob; what a page blob has not written is zeros. The content is that of the record, although
        the blob may change meanwhile. Close the iterator if it is not read to its end.
        """
        return read_content(self.space, record, start, end)

    async def block_list(
        self,
        name: str,
        which: Which = CURRENT,
        conditions: Conditions = NO_CONDITIONS,
        *,
        committed: bool = True,
        uncommitted: bool = True,
    ) -> BlockLists:
        return await block_lists(self.space, name, which, conditions, committed=committed, uncommitted=uncommitted)

    async def list(self, query: ListQuery) -> ListPage:
        return await list_blobs(self.space, query)

    async def find_by_tags(self, tests: Sequence[TagTest], after: str | None = None, limit: int = 5_000) -> TagPage:
        """Return the blobs for which all tests hold, from the name `after` on (that included)."""
        return await TagSearch(self.space).find(tests, after, limit)

    # --- data -------------------------------------------------------------------------------------------------------

    def begin_upload(self, name: str) -> Upload:
        """Return an empty upload for a blob, to be used with `async with`."""
        return self.space.begin_upload(point_of(name))

    async def put_block(
        self, name: str, block_id: bytes, upload: Upload, *, lease_id: str | None = None, key: Key = NO_KEY
    ) -> None:
        """Store an uncommitted block in place of one with the same id. Ids of a blob have one length."""
        await put_block(self.space, name, block_id, upload, lease_id=lease_id, key=key)

    async def commit_blocks(
        self,
        name: str,
        entries: Sequence[BlockEntry],
        properties: NewBlob,
        conditions: Conditions = NO_CONDITIONS,
        rules: AccountRules = NO_RULES,
    ) -> BlobRecord:
        return await commit_blocks(self.space, name, entries, properties, conditions, rules)

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
        return await put_blob(self.space, name, upload, properties, conditions, rules)

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
        assert upload.point == point_of(name), "the upload was begun for another blob"
        return await append_block(self.space, upload, conditions, position=position, max_size=max_size, key=key)

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
        return await change_record(self.space, name, change, which, conditions, rules, key)

    async def snapshot(
        self,
        name: str,
        metadata: dict[str, str] | None = None,
        conditions: Conditions = NO_CONDITIONS,
        rules: AccountRules = NO_RULES,
        key: Key | None = None,
    ) -> Snapshotted:
        """Take a snapshot; with `metadata` in place of those of the blob. It changes neither etag nor time."""
        return await take_snapshot(self.space, name, metadata, conditions, rules, key)

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
        return await delete_blob(self.space, name, which, conditions, rules, snapshots=snapshots, permanent=permanent)

    async def undelete(self, name: str) -> None:
        """Restore all that is soft-deleted under a name; NOT_FOUND if the name was never used."""
        await undelete_blob(self.space, name)
