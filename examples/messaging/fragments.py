"""A partitioned queue: messages without a key are spread over its fragments, those of a key stay together.

Needs a queue:

    asterism bus create parcels --partitioned
"""

from __future__ import annotations

import sys
from collections import defaultdict

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode

EMULATOR = (
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
)
QUEUE = "parcels"
CITIES = ("Bern", "Oslo", "Riga")
PARCELS_EACH = 5
# The upper 16 bits of a sequence number are the fragment, the other 48 count within it.
NUMBER_BITS = 48


def main(connection: str) -> None:
    client = ServiceBusClient.from_connection_string(connection)
    sender = client.get_queue_sender(QUEUE)
    receiver = client.get_queue_receiver(QUEUE, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE)
    with client, sender, receiver:
        for number in range(PARCELS_EACH):
            for city in CITIES:
                sender.send_messages(ServiceBusMessage(f"{city} {number}", partition_key=city))
        # Without a key, each goes to the next fragment that is up.
        for number in range(16):
            sender.send_messages(ServiceBusMessage(f"anywhere {number}"))

        fragments: dict[str, set[int]] = defaultdict(set)
        order: dict[str, list[int]] = defaultdict(list)
        count = 0
        while count < PARCELS_EACH * len(CITIES) + 16:
            for message in receiver.receive_messages(100, max_wait_time=60):
                assert message.sequence_number is not None
                name, number_text = str(message).split()
                fragments[name].add(message.sequence_number >> NUMBER_BITS)
                order[name].append(int(number_text))
                count += 1
    for city in CITIES:
        print(f"{city}: {len(fragments[city])} fragment, in order: {order[city] == sorted(order[city])}")
    print(f"anywhere: {len(fragments['anywhere'])} fragments")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else EMULATOR)
