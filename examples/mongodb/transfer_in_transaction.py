"""A transfer between two accounts and its entry in a journal, all or nothing.

Collections without a shard key lie together, so a transaction may change any number of them in one database.
"""

from __future__ import annotations

import sys
from typing import Any

from pymongo import MongoClient
from pymongo.client_session import ClientSession

Document = dict[str, Any]


class NotEnough(Exception):
    pass


def transfer(session: ClientSession, *, source: str, target: str, amount: int) -> None:
    """Move money. The driver calls this again if another transaction was faster."""
    bank = session.client["bank_example"]
    paid = bank.accounts.update_one(
        {"_id": source, "balance": {"$gte": amount}}, {"$inc": {"balance": -amount}}, session=session
    )
    if not paid.modified_count:
        raise NotEnough
    bank.accounts.update_one({"_id": target}, {"$inc": {"balance": amount}}, session=session)
    bank.journal.insert_one({"from": source, "to": target, "amount": amount}, session=session)


def main(connection: str) -> None:
    with MongoClient[Document](connection) as client, client.start_session() as session:
        bank = client["bank_example"]
        client.drop_database(bank.name)
        bank.accounts.insert_many([{"_id": "anna", "balance": 100}, {"_id": "ben", "balance": 0}])
        session.with_transaction(lambda inside: transfer(inside, source="anna", target="ben", amount=60))
        try:
            session.with_transaction(lambda inside: transfer(inside, source="anna", target="ben", amount=60))
        except NotEnough:
            print("the second transfer was undone")
        print({account["_id"]: account["balance"] for account in bank.accounts.find()})
        print("entries in the journal:", bank.journal.count_documents({}))


if __name__ == "__main__":
    main(sys.argv[1])
