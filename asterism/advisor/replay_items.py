"""Items of a replay: the contents that the requests of a capture give them, and which stored items to load first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from asterism.advisor.candidate_keys import CandidateKey
from asterism.advisor.captured_request import CapturedRequest
from asterism.partitioning.key_path import parse_key_path
from asterism.partitioning.partition_key import PartitionKey, value_at
from asterism.values.json.text import dumps
from asterism.values.undefined import UNDEFINED

Item = dict[str, Any]
# The id, and the present partition key where a request names it or the item has it.
ItemName = tuple[str, PartitionKey | None]

# Given by the database, and to be left out of what is written.
SYSTEM_PROPERTIES: Final = ("_rid", "_self", "_etag", "_attachments", "_ts", "_lsn")
# Fills an item up to the size that the captured one had.
PADDING: Final = "padding"


def plain_item(item: Mapping[str, Any]) -> Item:
    return {name: value for name, value in item.items() if name not in SYSTEM_PROPERTIES}


def with_values(item: Mapping[str, Any], values: Mapping[str, Any]) -> Item:
    """Return an item with other values at some paths."""
    changed = dict(item)
    for path, value in values.items():
        *parents, name = path.strip("/").split("/")
        inner = changed
        for parent in parents:
            below = inner.get(parent)
            inner[parent] = inner = dict(below) if isinstance(below, dict) else {}
        inner[name] = value
    return changed


def padded(item: Item, size_bytes: int | None) -> Item:
    """Return the item with so much padding that it has the size of the captured one."""
    missing = 0 if size_bytes is None else size_bytes - len(dumps(item)) - len(f',"{PADDING}":""')
    return {**item, PADDING: "x" * missing} if missing > 0 else item


def written_item(request: CapturedRequest, before: Mapping[str, Any] | None) -> Item:
    """Return the item that a create, an upsert or a replace writes. `before` is the stored one: the capture has neither
    arrays nor more than a number of paths, so the rest is taken from there."""
    item = with_values(before or {}, request.values)
    if request.item_id is not None:
        item["id"] = request.item_id
    return item if before is not None else padded(item, request.size_bytes)


class ItemModel:
    """The items of a container as a replay knows them, by name. Reads are answered by the server, not from here."""

    def __init__(self, present: CandidateKey, items: Iterable[Mapping[str, Any]] = ()) -> None:
        self._present = present
        self._items: dict[ItemName, Item] = {}
        self._names: dict[str, ItemName] = {}
        for item in items:
            self.put(plain_item(item))

    def __len__(self) -> int:
        return len(self._items)

    def all(self) -> Iterable[Item]:
        return self._items.values()

    def put(self, item: Item) -> None:
        name = (str(item.get("id")), self._present.key_of(item))
        self._items[name] = item
        self._names[name[0]] = name

    def find(self, request: CapturedRequest) -> Item | None:
        """Return the item that a request names: by its id and key, or by its id alone if it names no key."""
        name = self._name(request)
        return None if name is None else self._items.get(name)

    def remove(self, request: CapturedRequest) -> None:
        name = self._name(request)
        if name is not None:
            self._items.pop(name, None)

    def _name(self, request: CapturedRequest) -> ItemName | None:
        if request.item_id is None:
            return None
        exact = (request.item_id, request.key)
        return exact if exact in self._items else self._names.get(request.item_id)


class WantedItems:
    """The stored items that the requests of a replay need: those that they name, and all that their queries find.

    An item that the replay itself creates first is not wanted: its create would be a conflict.
    """

    def __init__(self, requests: Iterable[CapturedRequest], present: CandidateKey) -> None:
        self._present = present
        self._named: set[ItemName] = set()
        self._created: set[ItemName] = set()
        self._relations: dict[tuple[str, ...], set[tuple[Any, ...]]] = {}
        for request in requests:
            self._add_name(request)
            relation = relation_of(request)
            if relation is not None:
                self._relations.setdefault(relation[0], set()).update(relation[1])
        self._names = {paths: [parse_key_path(path) for path in paths] for paths in self._relations}

    def _add_name(self, request: CapturedRequest) -> None:
        if request.item_id is None:
            return
        name = (request.item_id, request.key)
        if name not in self._named and name not in self._created:
            (self._created if is_first_write(request) else self._named).add(name)

    def is_named(self, item: Mapping[str, Any]) -> bool:
        return not self._named.isdisjoint(self._names_of(item))

    def is_created(self, item: Mapping[str, Any]) -> bool:
        return not self._created.isdisjoint(self._names_of(item))

    def is_queried(self, item: Mapping[str, Any]) -> bool:
        return any(
            tuple(_hashable(value_at(item, names)) for names in self._names[paths]) in relations
            for paths, relations in self._relations.items()
        )

    def _names_of(self, item: Mapping[str, Any]) -> tuple[ItemName, ItemName]:
        item_id = str(item.get("id"))
        return (item_id, None), (item_id, self._present.key_of(item))


def is_first_write(request: CapturedRequest) -> bool:
    """Return whether a request makes an item that did not exist: an upsert, as far as its status says."""
    return request.operation == "create" or (request.operation == "upsert" and request.status == 201)


def relation_of(request: CapturedRequest) -> tuple[tuple[str, ...], list[tuple[Any, ...]]] | None:
    """Return the paths that a query fixes, and the values that items must have there to be found."""
    paths = tuple(sorted(path for path in request.equal if "[]" not in path))
    if not paths:
        return None
    combinations: list[tuple[Any, ...]] = [()]
    for path in paths:
        combinations = [(*before, _hashable(value)) for before in combinations for value in request.equal[path]]
    return paths, combinations


def _hashable(value: object) -> object:
    return UNDEFINED if isinstance(value, dict | list) else value


def choose_items(
    items: Iterable[Mapping[str, Any]],
    requests: Sequence[CapturedRequest],
    *,
    present: CandidateKey,
    items_max: int,
) -> list[Item]:
    """Return the items to load, at most so many: those that requests name, then those that queries find, then others,
    which make the partitions as uneven as they are."""
    wanted = WantedItems(requests, present)
    named: list[Item] = []
    queried: list[Item] = []
    others: list[Item] = []
    for item in items:
        if wanted.is_created(item):
            continue
        chosen = named if wanted.is_named(item) else queried if wanted.is_queried(item) else others
        if len(chosen) < items_max:
            chosen.append(plain_item(item))
    return [*named, *queried, *others][:items_max]
