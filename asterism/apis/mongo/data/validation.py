"""Validators of collections: a filter, or a schema, that documents must match to be written."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from asterism.apis.mongo.arguments import as_bool
from asterism.apis.mongo.data.scopes import read_collation
from asterism.apis.mongo.data.variables import CommandScope
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import VALIDATOR_FEATURES, compile_filter
from asterism.models.collections.records import CollectionRecord
from asterism.values.bson.codec import decode
from asterism.values.bson.types import Document

# Compiled validators that are kept, by the collection's UUID.
_KEPT_MAX = 1000

Check = Callable[[Document, Document | None], None]


class Validator:
    """The compiled validator of one version of a collection's options."""

    __slots__ = ("_is_moderate", "_matches", "_options", "_source")

    def __init__(self, options: Document, scope: CommandScope) -> None:
        self._options = options
        self._source: Document = options["validator"]
        self._is_moderate = options.get("validationLevel") == "moderate"
        match = compile_filter(self._source, scope.context, features=VALIDATOR_FEATURES)
        self._matches = match.with_variables(scope.variables)

    def is_of(self, options: Document) -> bool:
        return self._options is options

    @property
    def depends_on_time(self) -> bool:
        """True if the present moment is part of what was compiled."""
        text = repr(self._source)
        return "$$NOW" in text or "$$CLUSTER_TIME" in text

    def check(self, document: Document, before: Document | None) -> None:
        """Refuse a document that does not match. With the moderate level a document that did not match before the
        change need not match after it."""
        if self._matches(document):
            return
        if self._is_moderate and before is not None and not self._matches(before):
            return
        raise MongoFailure(
            121,
            "Document failed validation",
            details={"errInfo": {"failingDocumentId": document.get("_id"), "details": self._details()}},
        )

    def _details(self) -> Document:
        operator = next(iter(self._source), "$and")
        if operator == "$jsonSchema":
            return {"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": []}
        return {"operatorName": operator if operator.startswith("$") else "$eq", "specifiedAs": self._source}


class ValidatorCache:
    """Validators of the collections that were written to last."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Validator] = OrderedDict()

    def find(self, record: CollectionRecord, scope: CommandScope) -> Validator | None:
        """Return the validator of a collection; None if nothing is to be refused."""
        options = record.options
        if not options.get("validator") or options.get("validationLevel") == "off":
            return None
        if options.get("validationAction") == "warn":
            return None
        known = self._known.get(record.uuid)
        if known is None or not known.is_of(options):
            collation = read_collation(None, options.get("collation"))
            own = CommandScope(scope.now, scope.cluster_time, collate=collation.collate)
            known = Validator(options, own)
            if known.depends_on_time:
                return known
            self._known[record.uuid] = known
            if len(self._known) > _KEPT_MAX:
                self._known.popitem(last=False)
        return known


VALIDATORS = ValidatorCache()


def validator_of(record: CollectionRecord, scope: CommandScope, *, bypass: bool) -> Validator | None:
    """Return the validator that a write must obey."""
    return None if bypass else VALIDATORS.find(record, scope)


def check_body(validator: Validator | None, body: bytes) -> None:
    if validator is not None:
        validator.check(decode(body), None)


def is_bypassed(value: Any) -> bool:
    """Return whether `bypassDocumentValidation` was asked for; numbers count as booleans."""
    return value is not None and as_bool(value)
