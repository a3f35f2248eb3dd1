"""Requests of operators for promotions: begin one, and find it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asterism.errors import ReshapeRefused, ResourceNotFound
from asterism.keyspaces.routing.families import after_prefix
from asterism.models.documents.container import Container
from asterism.models.documents.promotion.job import PromotionJob
from asterism.models.documents.promotion.promoter import scope_of
from asterism.models.documents.rekey.job import RekeyStep
from asterism.models.documents.store import DocumentStore
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.partition_key import PartitionKey
from asterism.throughput.budgets import Throughput
from asterism.values.undefined import UNDEFINED


@dataclass(frozen=True, slots=True)
class Promotion:
    """A promotion as the operator asks for it."""

    source: Container
    key: PartitionKey
    target_name: str
    # The partition key of the target; None for that of the source.
    paths: Sequence[str] | None = None
    # None for that of the source.
    throughput: Throughput | None = None


async def begin_promotion(store: DocumentStore, asked: Promotion) -> PromotionJob:
    """Make the container, and begin to move the items into it."""
    source, catalog = asked.source, store.catalog
    _check_source(store, source)
    prefix = storage_point(source.record.definition, asked.key)
    _check_prefix(source, prefix)
    description = _description(store, asked)
    shown: list[object] = [{} if value is UNDEFINED else value for value in asked.key]
    number = await catalog.work.new_task_number()

    def new_job(target_rid: bytes) -> PromotionJob:
        return PromotionJob(number, source.record.rid.hex(), target_rid.hex(), shown)

    scope = scope_of(new_job(b""), source)
    if not (await store.promoter.size_of(source, scope)).items:
        raise ReshapeRefused(
            reason=f"The container '{source.record.name}' has no items with this partition key. A number or a "
            'hierarchical key is given as a JSON array, such as [42] or ["a", "b"].'
        )
    offer = catalog.offer_for(source.record.rid)
    # In one batch: whatever happens, every target has a job that fills it.
    target = await store.create_container(
        catalog.databases[source.record.database_rid],
        description,
        asked.throughput or (None if offer is None else offer.throughput),
        with_puts=lambda rid: [catalog.work.promotion_entry(number, new_job(rid).to_bytes())],
    )
    store.promoter.on_step(RekeyStep.TARGET_MADE)
    job = new_job(target.record.rid)
    catalog.work.promotions[number] = job.to_bytes()
    store.promoter.start(job)
    return job


def find_promotion(store: DocumentStore, source: Container, key: PartitionKey) -> PromotionJob:
    prefix = storage_point(source.record.definition, key)
    rid = source.record.rid.hex()
    for job in store.promoter.jobs.values():
        if job.source_rid == rid and scope_of(job, source).start == prefix:
            return job
    raise ResourceNotFound(kind="promotion", name=source.record.name)


def _check_source(store: DocumentStore, source: Container) -> None:
    record, profile = source.keyspace.record, store.services.profile
    if record.definition.system_key:
        raise ReshapeRefused(reason=f"The container '{record.name}' has no partition key.")
    if profile.computes_key(record.settings):
        raise ReshapeRefused(
            reason=f"The partition key of '{record.name}' is synthetic. Promote from a container with a plain key: "
            "requests that name the sources of a synthetic key cannot be forwarded."
        )
    if profile.keeps_incoming_edges(record.settings):
        raise ReshapeRefused(
            reason=f"The container '{record.name}' is a graph, whose edges lead from one partition key to another."
        )
    if record.writes_refused or store.rekeyer.is_busy_with(record.rid):
        raise ReshapeRefused(reason=f"The container '{record.name}' is being copied to another partition key.")
    if store.promoter.is_busy_with(record.rid):
        raise ReshapeRefused(
            reason=f"Another key of '{record.name}' is being promoted, or it is the target of a promotion. Wait until "
            "requests are forwarded."
        )


def _check_prefix(source: Container, prefix: bytes) -> None:
    end = after_prefix(prefix)
    for rule in source.keyspace.record.forwarding or ():
        if rule.covers(prefix) or (prefix <= rule.prefix and (end is None or rule.prefix < end)):
            raise ReshapeRefused(
                reason=f"The partition key {list(rule.key)} was promoted to '{rule.target_name}' already. Use --status "
                "to see it, --end and --forget to end that."
            )


def _description(store: DocumentStore, asked: Promotion) -> Mapping[str, Any]:
    record, profile = asked.source.keyspace.record, store.services.profile
    paths = record.definition.paths
    if asked.paths is None or tuple(asked.paths) == paths:
        return profile.with_name(record.settings, name=asked.target_name)
    if tuple(asked.paths) != (*paths, "/id"):
        raise ReshapeRefused(
            reason=f"The new partition key must be that of '{record.name}', or that and /id behind it "
            f"({', '.join((*paths, '/id'))}): requests that name the old key and an id could not be forwarded "
            "otherwise. Promote with the same key, end the forwarding, and use `asterism rekey` for another one."
        )
    if len(asked.key) != len(paths):
        raise ReshapeRefused(reason="Below a prefix of a hierarchical key, the new container needs the same key.")
    if asked.source.planner.unique_keys is not None or not record.definition.hashes_version_2:
        raise ReshapeRefused(
            reason=f"The container '{record.name}' has unique keys, or a partition key of version 1, which only a "
            "container with the same partition key can keep."
        )
    return profile.with_key(record.settings, name=asked.target_name, paths=asked.paths)
