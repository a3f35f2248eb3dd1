"""Parts of the writes of a collection: batches of inserts, runs of keys, and decisions about documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from asterism.models.collections.layout import DocumentKey, unpack_document
from asterism.models.collections.planner import DocumentChange, PlannedChanges, duplicate
from asterism.models.collections.results import Action, Change, DuplicateKey
from asterism.models.collections.rules import CollectionRules
from asterism.values.bson.raw_documents import get_field

# Documents and bytes of one batch: large enough to share a write to the disk, small enough not to hold up others.
BATCH_DOCUMENTS_MAX = 1000
BATCH_BYTES_MAX = 4 * 1024 * 1024

Decide = Callable[[DocumentKey, bytes | None], Change]


def blamed_insert(
    planned: PlannedChanges, key: bytes, group: Sequence[tuple[int, DocumentKey, bytes]]
) -> tuple[int, DuplicateKey]:
    place, rules, index, values = planned.blame[key]
    shown = values if index is not None else (get_field(group[place][2], "_id"),)
    return place, duplicate(rules, index, shown)


def decide_all(
    rules: CollectionRules, keys: Sequence[DocumentKey], values: Sequence[bytes | None], decide: Decide
) -> tuple[list[Change], list[DocumentChange]]:
    decisions: list[Change] = []
    changes: list[DocumentChange] = []
    for key, stored in zip(keys, values, strict=True):
        before = None if stored is None else unpack_document(stored, key.stored)
        decision = decide(key, None if before is None else before.body)
        decisions.append(decision)
        if decision.action is Action.PUT:
            changes.append(
                DocumentChange(
                    rules,
                    key,
                    before,
                    decision.body,
                    decision.document,
                    "insert" if before is None else decision.operation,
                    decision.description,
                )
            )
        elif decision.action is Action.DELETE and before is not None:
            changes.append(DocumentChange(rules, key, before, None, operation="delete"))
    return decisions, changes


def insert_groups(
    pending: Sequence[tuple[int, DocumentKey, bytes]], *, ordered: bool
) -> list[list[tuple[int, DocumentKey, bytes]]]:
    """Divide inserts into batches of one logical partition each: neighbors, or all of it where the order is free."""
    entries = pending if ordered else sorted(pending, key=lambda entry: entry[1].point)
    groups: list[list[tuple[int, DocumentKey, bytes]]] = []
    size = 0
    for entry in entries:
        body_bytes = len(entry[2])
        last = groups[-1] if groups else None
        fits = last is not None and len(last) < BATCH_DOCUMENTS_MAX and size + body_bytes <= BATCH_BYTES_MAX
        if last is not None and fits and last[0][1].point == entry[1].point:
            last.append(entry)
            size += body_bytes
        else:
            groups.append([entry])
            size = body_bytes
    return groups


def runs_of(keys: Sequence[DocumentKey]) -> list[list[DocumentKey]]:
    runs: list[list[DocumentKey]] = []
    for key in sorted(set(keys)):
        if runs and runs[-1][0].point == key.point and len(runs[-1]) < BATCH_DOCUMENTS_MAX:
            runs[-1].append(key)
        else:
            runs.append([key])
    return runs
