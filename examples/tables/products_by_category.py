"""Products, partitioned by category.

PartitionKey = category, RowKey = product number. Products that are shown and changed together are stored together: the
price list of a category is one read, and a change of several prices is one transaction, applied as a whole or not at
all.
"""

from __future__ import annotations

import sys

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import TableServiceClient, TableTransactionError, TransactionOperation, UpdateMode

PRODUCTS = [
    ("Bicycles", "b-100", "Town bicycle", 499.0, 12),
    ("Bicycles", "b-200", "Touring bicycle", 899.0, 4),
    ("Bicycles", "b-300", "Cargo bicycle", 1999.0, 1),
    ("Helmets", "h-010", "Town helmet", 39.0, 80),
]


def main(connection: str) -> None:
    service = TableServiceClient.from_connection_string(connection)
    products = service.create_table_if_not_exists("ProductsByCategory")
    for category, number, name, price, stock in PRODUCTS:
        products.upsert_entity(
            {"PartitionKey": category, "RowKey": number, "Name": name, "Price": price, "Stock": stock},
            mode=UpdateMode.REPLACE,
        )

    # A tenth off every bicycle, all of them or none.
    bicycles = list(products.query_entities("PartitionKey eq 'Bicycles'", select=["PartitionKey", "RowKey", "Price"]))
    products.submit_transaction(
        [
            (TransactionOperation.UPDATE, {**bicycle, "Price": round(bicycle["Price"] * 0.9, 2)}, {"mode": "merge"})
            for bicycle in bicycles
        ]
    )
    cheap = products.query_entities("PartitionKey eq 'Bicycles' and Price lt 1000.0")
    print("below 1000:", [(product["RowKey"], product["Price"]) for product in cheap])

    # The last cargo bicycle can be sold once: an update based on an older version is refused.
    first, second = (products.get_entity("Bicycles", "b-300") for _ in range(2))
    for buyer, seen in (("first", first), ("second", second)):
        try:
            products.update_entity(
                {**seen, "Stock": seen["Stock"] - 1},
                etag=seen.metadata["etag"],
                match_condition=MatchConditions.IfNotModified,
            )
            print(buyer, "buyer: sold")
        except ResourceModifiedError:
            print(buyer, "buyer: too late, read again")

    # If one operation fails, nothing of the transaction is applied; the error has the index of the operation.
    try:
        products.submit_transaction(
            [
                ("upsert", {"PartitionKey": "Helmets", "RowKey": "h-020", "Name": "Racing helmet", "Price": 99.0}),
                ("create", {"PartitionKey": "Helmets", "RowKey": "h-010", "Name": "Town helmet", "Price": 39.0}),
            ]
        )
    except TableTransactionError as error:
        print("operation", error.index, "failed:", error.error_code)
    print("helmets:", [helmet["RowKey"] for helmet in products.query_entities("PartitionKey eq 'Helmets'")])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "UseDevelopmentStorage=true")
