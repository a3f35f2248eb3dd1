"""The home of a database: the keyspace of its collections without a shard key, as one process works with it."""

from __future__ import annotations

from typing import NamedTuple

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.collections.collection import Collection
from asterism.models.collections.records import CollectionRecord, HomeSettings
from asterism.models.collections.rekey.job import CollectionRekeyJob, CollectionRekeyPhase
from asterism.models.collections.rules import CollectionRules


class Retained(NamedTuple):
    """Places of re-keyed collections that readers may still be at: numbers in the home, and keyspaces."""

    numbers: frozenset[int]
    sharded: frozenset[str]


class Home:
    """The home of a database, read once for each version of its settings."""

    __slots__ = ("collections", "jobs", "keyspace", "records", "retained", "rules", "settings", "source")

    def __init__(self, database: str, keyspace: Keyspace) -> None:
        self.keyspace = keyspace
        self.source = keyspace.record.settings
        self.settings = HomeSettings.from_settings(self.source)
        self.records = {
            name: CollectionRecord.from_text(database, name, text) for name, text in self.settings.collections.items()
        }
        self.jobs = {
            job_id: CollectionRekeyJob.from_settings(job_id, stored) for job_id, stored in self.settings.rekeys.items()
        }
        kept = [job for job in self.jobs.values() if job.phase is CollectionRekeyPhase.SWITCHED]
        self.retained = Retained(
            frozenset(job.source_number for job in kept if not job.source_key),
            frozenset(job.source_key for job in kept if job.source_key),
        )
        self.rules: dict[str, CollectionRules] = {}
        self.collections: dict[str, Collection] = {}

    def job_on(self, name: str) -> CollectionRekeyJob | None:
        """Return the job that is giving a collection another shard key."""
        return next((job for job in self.jobs.values() if job.name == name and job.is_before_switch), None)

    @property
    def left_behind(self) -> list[tuple[str, str]]:
        """Return the names of collections with the keyspaces of their own that they have left, while these are kept."""
        kept = (CollectionRekeyPhase.SWITCHED, CollectionRekeyPhase.REMOVING)
        return [(job.name, job.source_key) for job in self.jobs.values() if job.source_key and job.phase in kept]
