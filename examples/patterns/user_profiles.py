"""User profiles: the user is the key.

A profile is read and written by the user's id, thousands of times more often than in any other way. With `/userId` as
partition key these are point reads of 1 RU, users spread evenly, and everything about a user can change in one
transaction. By country, most users share a partition, a login that knows only the id must ask all of them, and a user
who moves to another country cannot be updated in place.
"""

from __future__ import annotations

from typing import Any

from azure.cosmos import ContainerProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError
from burst import LARGE_TEXT, send_burst
from connection import connect, fresh_database, lower_throughput, of_four_partitions
from costs import ask, charge_of
from partition_picture import print_picture

USERS = 60
# Most users of most applications live in one country.
COUNTRIES = ("DE",) * 9 + ("CH",)
LAST_SEEN = [{"op": "set", "path": "/lastSeen", "value": "2026-11-18"}]
MOVE = [{"op": "set", "path": "/country", "value": "FR"}]


def profile(number: int) -> dict[str, Any]:
    return {
        "id": f"u-{number}",
        "userId": f"u-{number}",
        "country": COUNTRIES[number % len(COUNTRIES)],
        "name": f"User {number}",
        "email": f"user{number}@example.com",
    }


def record_visit(container: ContainerProxy, number: int) -> None:
    container.create_item({**profile(number % USERS), "id": f"visit-{number}", "pages": LARGE_TEXT})


def main() -> None:
    with connect() as client:
        database = fresh_database(client, "patterns_user_profiles")
        by_country = of_four_partitions(database, "by-country", PartitionKey("/country"))
        by_user = of_four_partitions(database, "by-user", PartitionKey("/userId"))
        for number in range(USERS):
            by_country.create_item(profile(number))
            by_user.create_item(profile(number))

        found = ask(by_country, "SELECT * FROM c WHERE c.userId = @user", user="u-19")
        print("by country, the id alone:", found)
        print(f"by user, a point read: {charge_of(by_user.read_item('u-19', 'u-19')):.2f} RU")
        try:
            by_country.patch_item("u-19", "CH", MOVE)
        except CosmosHttpResponseError as refused:
            print("by country, the user moves:", refused.status_code)
        print("by user, the user moves:", by_user.patch_item("u-19", "u-19", MOVE)["country"])

        settings = {"id": "settings", "userId": "u-19", "theme": "dark"}
        batch = [("create", (settings,)), ("patch", ("u-19", LAST_SEEN))]
        results = by_user.execute_item_batch(batch, "u-19")
        print("one transaction for profile and settings:", [result["statusCode"] for result in results])

        lower_throughput(by_country, by_user)
        for container, load in send_burst((by_country, by_user), record_visit):
            print_picture(container.id, load, by="request_units")


if __name__ == "__main__":
    main()
