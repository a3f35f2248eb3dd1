"""`encryptedFields`: queryable encryption, which needs an index of tags that this server does not keep."""

from __future__ import annotations

from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document


def check_encrypted_fields(_: Document, __: Document) -> None:
    raise MongoFailure(
        115, "Queryable encryption is not served. Encrypt fields in the client and store them as binary data instead."
    )
