"""Changes of a collection as they happen, and again from a place that was remembered.

A program that keeps the token of the last event it has handled misses nothing while it is away: the token names a place
in the log of changes, which splits, merges and restarts leave valid for 24 hours.
"""

from __future__ import annotations

import sys
from typing import Any

from pymongo import MongoClient

Document = dict[str, Any]


def main(connection: str) -> None:
    with MongoClient[Document](connection) as client:
        house = client["house_example"]
        client.drop_database(house.name)
        rooms = house.create_collection("rooms")
        with rooms.watch(full_document="updateLookup") as stream:
            rooms.insert_one({"_id": "kitchen", "celsius": 19})
            rooms.update_one({"_id": "kitchen"}, {"$set": {"celsius": 21}})
            event = next(stream)
            print(event["operationType"], event["fullDocument"])
            token = event["_id"]

        # Away; meanwhile:
        rooms.delete_one({"_id": "kitchen"})

        with rooms.watch(resume_after=token) as stream:
            for _ in range(2):
                event = next(stream)
                print(event["operationType"], event.get("updateDescription", {}).get("updatedFields", ""))


if __name__ == "__main__":
    main(sys.argv[1])
