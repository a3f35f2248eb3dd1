"""Customers, partitioned by the city they live in.

PartitionKey = city, RowKey = customer id. A city is read as one contiguous piece, a customer with two keys by a point
query, and several neighboring cities by a range. A second table finds customers by name (the index table pattern): its
entities hold the properties that a search shows, so that most searches need no second read.
"""

from __future__ import annotations

import sys

from azure.data.tables import TableClient, TableServiceClient, TransactionOperation

CUSTOMERS = [
    ("Aarhus", "c-0017", "Freja Holm", "freja@example.com"),
    ("Bonn", "c-0003", "Mira Vogel", "mira@example.com"),
    ("Bonn", "c-0021", "Jan Ritter", "jan@example.com"),
    ("Brno", "c-0008", "Tomas Novak", "tomas@example.com"),
    ("Delft", "c-0011", "Saskia Vos", "saskia@example.com"),
]


def main(connection: str) -> None:
    service = TableServiceClient.from_connection_string(connection)
    customers = service.create_table_if_not_exists("CustomersByCity")
    by_name = service.create_table_if_not_exists("CustomersByName")
    add_customers(customers, by_name)

    jan = customers.get_entity("Bonn", "c-0021")
    print("point query:", jan["Name"])
    in_bonn = customers.query_entities("PartitionKey eq 'Bonn'")
    print("one partition:", [customer["Name"] for customer in in_bonn])
    with_b = customers.query_entities("PartitionKey ge 'B' and PartitionKey lt 'C'")
    print("a range of partitions:", [f"{customer['PartitionKey']} {customer['RowKey']}" for customer in with_b])
    found = by_name.query_entities("PartitionKey eq 'V' and RowKey ge 'Vos' and RowKey lt 'Vot'")
    print("by the index table:", [(entry["City"], entry["CustomerId"], entry["Email"]) for entry in found])


def add_customers(customers: TableClient, by_name: TableClient) -> None:
    """Write all customers of a city in one transaction, then their entries in the index.

    No transaction spans two tables. The index is written after the customers and may lack one for a moment; a program
    that was stopped in between writes the same entries again, which changes nothing.
    """
    for city in sorted({city for city, *_ in CUSTOMERS}):
        group = [
            {"PartitionKey": city, "RowKey": number, "Name": name, "Email": email}
            for place, number, name, email in CUSTOMERS
            if place == city
        ]
        customers.submit_transaction([(TransactionOperation.UPSERT, customer) for customer in group])
    for city, number, name, email in CUSTOMERS:
        surname = name.split()[-1]
        by_name.upsert_entity(
            {
                "PartitionKey": surname[0],
                "RowKey": f"{surname}_{number}",
                "City": city,
                "CustomerId": number,
                "Email": email,
            }
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "UseDevelopmentStorage=true")
