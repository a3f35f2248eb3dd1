"""Event Hubs through the official client for Python."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import (
    EventData,
    EventHubConsumerClient,
    EventHubProducerClient,
    LoadBalancingStrategy,
    PartitionContext,
    TransportType,
)
from azure.eventhub.exceptions import (
    AuthenticationError,
    ConnectError,
    ConnectionLostError,
    EventDataSendError,
    EventHubError,
)
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore

from tests.clients.blob_server import BlobServer, new_name
from tests.clients.hub_server import GROUP, HubServer, receive, receiving
from tests.clients.messaging_server import KEY, KEY_NAME, WAIT_SECONDS
from tests.support.commands import run_well
from tests.support.server import RunningServer, running_server


@pytest.fixture(scope="session")
def hubs(server: RunningServer) -> HubServer:
    return HubServer(server)


# --- sending ----------------------------------------------------------------------------------------------------------


def test_an_event_arrives_as_it_was_sent(hubs: HubServer) -> None:
    hub = hubs.new_hub()
    sent = EventData("hello")
    sent.properties = {"count": 7, "text": "t"}
    sent.content_type, sent.correlation_id, sent.message_id = "text/plain", "c", "m"
    with hubs.producer(hub) as producer:
        producer.send_event(sent, partition_key="alphabet")
    ((partition, event),) = receive(hubs.consumer(hub), 1).events
    assert (partition, event.body_as_str()) == ("0", "hello")
    assert event.properties == {b"count": 7, b"text": b"t"}
    assert (event.content_type, event.correlation_id, event.message_id) == ("text/plain", "c", "m")
    assert (event.sequence_number, event.offset, event.partition_key) == (0, "0", b"alphabet")
    assert event.enqueued_time is not None


def test_the_key_of_a_batch_decides_on_its_partition(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=4)
    # As the service places them among four partitions.
    places = {"7": "3", "TheBestParitionEver": "2", "日本": "0", "abcdefghijklm": "3"}
    for key in places:
        hubs.send(hub, f"{key} 1", f"{key} 2", partition_key=key)
    arrivals = receive(hubs.consumer(hub), 8)
    assert {body: place for place, event in arrivals.events for body in [event.body_as_str()]} == {
        f"{key} {number}": place for key, place in places.items() for number in (1, 2)
    }


def test_events_of_a_named_partition_keep_their_order(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=3)
    wanted = [str(number) for number in range(2000)]
    with hubs.producer(hub) as producer:
        for start in range(0, len(wanted), 100):
            batch = producer.create_batch(partition_id="2")
            for body in wanted[start : start + 100]:
                batch.add(EventData(body))
            producer.send_batch(batch)
    with receiving(hubs.consumer(hub), prefetch=50, partition_id="2") as arrivals:
        arrivals.until(lambda: len(arrivals.events) >= len(wanted))
    assert arrivals.bodies_of("2") == wanted
    assert [event.sequence_number for _, event in arrivals.events] == list(range(2000))


def test_batches_without_a_key_take_turns(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=2)
    with hubs.producer(hub) as producer:
        for number in range(8):
            producer.send_batch([EventData(f"{number} a"), EventData(f"{number} b")])
    arrivals = receive(hubs.consumer(hub), 16)
    # With several processes each has turns of its own, and a client stays with one of them.
    assert sorted(len(arrivals.bodies_of(partition)) for partition in "01") == [8, 8]


def test_a_buffered_producer_delivers_everything(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=4)
    sent: list[str] = []
    failed: list[Exception] = []

    def on_success(events: list[EventData], _: str | None) -> None:
        sent.extend(event.body_as_str() for event in events)

    def on_error(_: object, __: str | None, error: Exception) -> None:
        failed.append(error)

    producer = hubs.producer(hub, buffered_mode=True, on_success=on_success, on_error=on_error, max_wait_time=1)
    with producer:
        for number in range(200):
            producer.send_event(EventData(f"{number}"), partition_key=str(number % 7))
        for number in range(200, 300):
            producer.send_event(EventData(f"{number}"))
        producer.flush(timeout=WAIT_SECONDS)
    assert failed == []
    assert sorted(sent, key=int) == [str(number) for number in range(300)]
    arrivals = receive(hubs.consumer(hub), 300)
    assert sorted(arrivals.bodies, key=int) == [str(number) for number in range(300)]
    keyed = [body for body in arrivals.bodies if int(body) < 200 and int(body) % 7 == 3]
    assert keyed == [str(number) for number in range(200) if number % 7 == 3]


def test_large_events_pass_in_both_directions(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    body = "x" * 900_000
    hubs.send(hub, body)
    hubs.send(hub, "small")
    assert receive(hubs.consumer(hub), 2).bodies == [body, "small"]


def test_an_event_that_is_too_large_is_refused(hubs: HubServer) -> None:
    hub = hubs.new_hub()
    with hubs.producer(hub) as producer:
        assert producer.create_batch().max_size_in_bytes == 1024 * 1024
        with pytest.raises(ValueError, match="size limit"):
            producer.create_batch().add(EventData("x" * 1_100_000))
        with pytest.raises(EventDataSendError):
            producer.send_event(EventData("x" * 1_100_000))
        producer.send_event(EventData("small"))
    assert receive(hubs.consumer(hub), 1).bodies == ["small"]


# --- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "is_inclusive", "expected"),
    [
        (lambda _: "-1", False, ["0", "1", "2", "3"]),
        (lambda event: event.sequence_number, False, ["2", "3"]),
        (lambda event: event.sequence_number, True, ["1", "2", "3"]),
        (lambda event: event.offset, False, ["2", "3"]),
        (lambda event: event.offset, True, ["1", "2", "3"]),
        (lambda event: event.enqueued_time, False, ["2", "3"]),
        (lambda event: event.enqueued_time, True, ["1", "2", "3"]),
        (lambda event: event.enqueued_time - timedelta(days=2), False, ["0", "1", "2", "3"]),
        (lambda event: {"0": event.sequence_number}, False, ["2", "3"]),
    ],
)
def test_a_consumer_begins_where_it_wishes(
    hubs: HubServer, position: Callable[[EventData], Any], is_inclusive: bool, expected: list[str]
) -> None:
    hub = hubs.new_hub(partitions=1)
    for number in range(4):
        hubs.send(hub, str(number))
        # Times of events are in milliseconds.
        time.sleep(0.01)
    second = receive(hubs.consumer(hub), 4).events[1][1]
    consumer = hubs.consumer(hub)
    arrivals = receive(
        consumer, len(expected), starting_position=position(second), starting_position_inclusive=is_inclusive
    )
    assert arrivals.bodies == expected


def test_a_consumer_at_the_end_gets_only_what_is_new(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    hubs.send(hub, "old")
    with receiving(hubs.consumer(hub), starting_position="@latest") as arrivals:
        for number in range(500):
            hubs.send(hub, str(number))
            if arrivals.events:
                break
        arrivals.until(lambda: bool(arrivals.events))
    assert "old" not in arrivals.bodies


def test_a_checkpoint_behind_the_end_is_refused(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    hubs.send(hub, "first")
    with receiving(hubs.consumer(hub, retry_total=0), starting_position="5000") as arrivals:
        error = arrivals.first_error()
    assert isinstance(error, ConnectError)
    assert "behind the end of partition 0" in str(error)


# --- properties -------------------------------------------------------------------------------------------------------


def test_hubs_and_partitions_have_properties(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=3)
    with hubs.producer(hub) as producer:
        properties = producer.get_eventhub_properties()
        assert properties["eventhub_name"] == hub
        assert properties["partition_ids"] == producer.get_partition_ids() == ["0", "1", "2"]
        empty = producer.get_partition_properties("1")
        producer.send_batch([EventData("a"), EventData("b")], partition_id="1")
        filled = producer.get_partition_properties("1")
    assert (empty["is_empty"], empty["last_enqueued_sequence_number"], empty["last_enqueued_offset"]) == (
        True,
        -1,
        "-1",
    )
    assert (filled["eventhub_name"], filled["id"], filled["is_empty"]) == (hub, "1", False)
    assert (filled["beginning_sequence_number"], filled["last_enqueued_sequence_number"]) == (0, 1)
    assert filled["last_enqueued_offset"] == "1"
    assert filled["last_enqueued_time_utc"] >= properties["created_at"]


def test_a_consumer_can_follow_how_far_it_is_behind(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    hubs.send(hub, "a", "b", "c")
    seen: list[dict[str, Any]] = []

    def on_each(context: PartitionContext, _: EventData) -> None:
        seen.append(dict(context.last_enqueued_event_properties or {}))

    with receiving(hubs.consumer(hub), on_each, track_last_enqueued_event_properties=True) as arrivals:
        arrivals.until(lambda: len(seen) == 3)
    assert [(each["sequence_number"], each["offset"]) for each in seen] == [(2, "2")] * 3
    assert all(each["retrieval_time"] >= each["enqueued_time"] for each in seen)


# --- groups, epochs, balance ------------------------------------------------------------------------------------------


def test_every_group_reads_everything(hubs: HubServer) -> None:
    hub = hubs.new_hub(groups=("readers", "auditors"))
    hubs.send(hub, "a", "b")
    assert receive(hubs.consumer(hub, "readers"), 2).bodies == ["a", "b"]
    assert receive(hubs.consumer(hub, "AUDITORS"), 2).bodies == ["a", "b"]
    assert receive(hubs.consumer(hub), 2).bodies == ["a", "b"]


def test_a_consumer_with_a_higher_epoch_takes_the_partition(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    hubs.send(hub, "a")
    with receiving(hubs.consumer(hub), partition_id="0") as plain:
        plain.until(lambda: plain.bodies == ["a"])
        with receiving(hubs.consumer(hub), partition_id="0", owner_level=1) as first:
            first.until(lambda: first.bodies == ["a"])
            assert isinstance(plain.first_error(), ConnectionLostError)
            with receiving(hubs.consumer(hub), partition_id="0", owner_level=2) as second:
                second.until(lambda: second.bodies == ["a"])
                assert isinstance(first.first_error(), ConnectionLostError)
                with receiving(hubs.consumer(hub, retry_total=0), partition_id="0", owner_level=1) as third:
                    assert isinstance(third.first_error(), ConnectionLostError)
                hubs.send(hub, "b")
                second.until(lambda: second.bodies == ["a", "b"])
                assert second.errors == []


def test_two_consumers_share_the_partitions_and_go_on_from_checkpoints(hubs: HubServer, blobs: BlobServer) -> None:
    hub = hubs.new_hub(partitions=4, groups=("readers",))
    container = new_name()
    blobs.service().create_container(container)
    balance = {
        "load_balancing_interval": 0.3,
        "partition_ownership_expiration_interval": 3,
        "load_balancing_strategy": LoadBalancingStrategy.GREEDY,
    }

    def consumer() -> EventHubConsumerClient:
        store = BlobCheckpointStore.from_connection_string(blobs.connection_string, container)
        return hubs.consumer(hub, "readers", checkpoint_store=store, **balance)

    def checkpoint(context: PartitionContext, event: EventData) -> None:
        context.update_checkpoint(event)

    def send_round(number: int) -> set[str]:
        bodies = {partition: f"{number} of {partition}" for partition in "0123"}
        for partition, body in bodies.items():
            hubs.send(hub, body, partition_id=partition)
        return set(bodies.values())

    sent = send_round(0)
    with receiving(consumer(), checkpoint) as first:
        first.until(lambda: set(first.bodies) == sent)
        with receiving(consumer(), checkpoint) as second:
            first.until(lambda: (len(first.owned), len(second.owned)) == (2, 2))
            assert first.owned | second.owned == set("0123")
            sent |= send_round(1)
            first.until(lambda: set(first.bodies) | set(second.bodies) == sent)
        # The second has gone: its partitions are taken back.
        first.until(lambda: len(first.owned) == 4)
        sent |= send_round(2)
        first.until(lambda: set(first.bodies) | set(second.bodies) == sent)
    news = send_round(3)
    with receiving(consumer(), checkpoint) as third:
        third.until(lambda: set(third.bodies) >= news)
    # Nothing that has a checkpoint is read again.
    assert set(third.bodies) == news


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_hub_that_is_missing_is_an_error_of_authentication(hubs: HubServer) -> None:
    with hubs.producer("missing", retry_total=0) as producer:
        with pytest.raises(AuthenticationError):
            producer.send_event(EventData("a"))
        with pytest.raises(ConnectError):
            producer.get_eventhub_properties()
    with receiving(hubs.consumer("missing", retry_total=0), partition_id="0") as arrivals:
        assert isinstance(arrivals.first_error(), AuthenticationError)


def test_a_partition_that_is_missing_is_refused(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=2)
    with hubs.producer(hub, retry_total=0) as producer:
        # The client asks for the partitions before it sends.
        with pytest.raises(ConnectError, match="Invalid partition 2"):
            producer.send_event(EventData("a"), partition_id="2")
        with pytest.raises(ConnectError, match="has no partition '2'"):
            producer.get_partition_properties("2")


def test_a_group_that_is_missing_is_refused(hubs: HubServer) -> None:
    hub = hubs.new_hub()
    with receiving(hubs.consumer(hub, "nobody", retry_total=0), partition_id="0") as arrivals:
        error = arrivals.first_error()
    assert isinstance(error, ConnectionLostError)
    assert "has no consumer group 'nobody'" in str(error)


def test_a_wrong_key_is_an_error_of_authentication(hubs: HubServer) -> None:
    hub = hubs.new_hub()
    producer = EventHubProducerClient.from_connection_string(
        hubs.connection_string(key="wrong"), eventhub_name=hub, retry_total=0
    )
    with producer, pytest.raises(AuthenticationError):
        producer.send_event(EventData("a"))


def test_a_key_that_may_only_listen_cannot_send(hubs: HubServer) -> None:
    hub = hubs.new_hub()
    hubs.send(hub, "a")
    hubs.manage("PUT", f"/{hub}/authorizationRules/listener", {"rights": ["Listen"]})
    key = hubs.manage("POST", f"/{hub}/authorizationRules/listener/listKeys")["primaryKey"]
    string = hubs.connection_string(key=key, key_name="listener")
    consumer = EventHubConsumerClient.from_connection_string(string, GROUP, eventhub_name=hub)
    assert receive(consumer, 1).bodies == ["a"]
    producer = EventHubProducerClient.from_connection_string(string, eventhub_name=hub, retry_total=0)
    with producer, pytest.raises(ConnectionLostError):
        producer.send_event(EventData("b"))


def test_the_links_of_a_deleted_hub_end(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    with hubs.producer(hub, retry_total=0) as producer:
        producer.send_event(EventData("a"))
        with receiving(hubs.consumer(hub, retry_total=0), partition_id="0") as arrivals:
            arrivals.until(lambda: arrivals.bodies == ["a"])
            hubs.manage("DELETE", f"/{hub}")
            assert isinstance(arrivals.first_error(), EventHubError)
        with pytest.raises(EventHubError):
            producer.send_event(EventData("b"))
    hubs.manage("PUT", f"/{hub}", {"partitionCount": 1})
    hubs.send(hub, "new")
    ((_, event),) = receive(hubs.consumer(hub), 1).events
    assert (event.body_as_str(), event.sequence_number) == ("new", 0)


def test_a_hub_that_is_disabled_takes_nothing(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1)
    hubs.manage("PUT", f"/{hub}", {"status": "SendDisabled"})
    with hubs.producer(hub, retry_total=0) as producer, pytest.raises(EventHubError, match="SendDisabled"):
        producer.send_event(EventData("a"))
    hubs.manage("PUT", f"/{hub}", {"status": "Active"})
    hubs.send(hub, "b")
    assert receive(hubs.consumer(hub), 1).bodies == ["b"]


def test_a_hub_with_throughput_units_slows_its_senders_down(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=1, throughputUnits=1)

    def send_a_lot() -> None:
        for _ in range(100):
            producer.send_batch([EventData("x") for _ in range(1000)])

    with hubs.producer(hub, retry_total=0) as producer, pytest.raises(EventDataSendError, match="throughput"):
        send_a_lot()
    # Clients that try again get through.
    hubs.send(hub, "last")
    with hubs.producer(hub) as producer:
        count = producer.get_partition_properties("0")["last_enqueued_sequence_number"] + 1
    assert receive(hubs.consumer(hub), count).bodies[-1] == "last"


# --- transports -------------------------------------------------------------------------------------------------------


def test_websockets_carry_the_same(hubs: HubServer) -> None:
    hub = hubs.new_hub()
    options: dict[str, Any] = {
        "transport_type": TransportType.AmqpOverWebsocket,
        "custom_endpoint_address": f"http://localhost:{hubs.amqp_port}",
    }
    with hubs.producer(hub, **options) as producer:
        producer.send_batch([EventData(str(number)) for number in range(300)], partition_id="1")
        assert producer.get_partition_ids() == ["0", "1"]
    arrivals = receive(hubs.consumer(hub, **options), 300)
    assert arrivals.bodies == [str(number) for number in range(300)]


def test_tls_is_verified_with_the_certificate_of_the_server(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", doors=("nosql", "amqp")) as running:
        hubs = HubServer(running)
        hub = hubs.new_hub()
        address = f"sb://localhost:{running.ports['amqps']}"
        # The certificate is made for the first client that needs it.
        ssl.get_server_certificate(("localhost", running.ports["amqps"]))
        certificate = next((tmp_path / "data").rglob("certificate.pem"))
        string = f"Endpoint=sb://localhost;SharedAccessKeyName={KEY_NAME};SharedAccessKey={KEY}"
        options: dict[str, Any] = {
            "eventhub_name": hub,
            "custom_endpoint_address": address,
            "retry_total": 0,
        }
        trusting = {**options, "connection_verify": str(certificate)}
        for count, transport in enumerate((TransportType.Amqp, TransportType.AmqpOverWebsocket), start=1):
            way = {**trusting, "transport_type": transport}
            with EventHubProducerClient.from_connection_string(string, **way) as producer:
                producer.send_event(EventData(transport.name), partition_id="0")
            consumer = EventHubConsumerClient.from_connection_string(string, GROUP, **way)
            assert receive(consumer, count, partition_id="0").bodies[-1] == transport.name
        distrustful = EventHubProducerClient.from_connection_string(
            string, transport_type=TransportType.Amqp, **options
        )
        with distrustful, pytest.raises(EventHubError):
            distrustful.send_event(EventData("a"))


# --- what stays -------------------------------------------------------------------------------------------------------


def test_offsets_stay_true_over_a_restart(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", doors=("nosql", "amqp")) as running:
        hubs = HubServer(running)
        hub = hubs.new_hub(partitions=1, groups=("readers",))
        hubs.send(hub, *(str(number) for number in range(10)))
        middle = receive(hubs.consumer(hub, "readers"), 10).events[4][1].offset
        running.kill()
    with running_server(tmp_path / "data", doors=("nosql", "amqp")) as running:
        hubs = HubServer(running)
        hubs.send(hub, "10")
        arrivals = receive(hubs.consumer(hub, "readers"), 6, starting_position=middle)
        assert arrivals.bodies == [str(number) for number in range(5, 11)]
        assert [event.sequence_number for _, event in arrivals.events] == list(range(5, 11))


def test_retention_by_size_removes_from_the_front(hubs: HubServer, server: RunningServer) -> None:
    hub = f"hub-{new_name()}"
    run_well(server, "hubs", "create", hub, "--partitions", "1", "--retention-mb", "1")
    for number in range(5):
        hubs.send(hub, f"{number}" * 400_000)
    with hubs.producer(hub) as producer:
        deadline = time.monotonic() + WAIT_SECONDS
        first = 0
        while first < 3:
            assert time.monotonic() < deadline
            time.sleep(0.2)
            first = producer.get_partition_properties("0")["beginning_sequence_number"]
    # A place that is gone is that of the oldest event.
    arrivals = receive(hubs.consumer(hub), 2, starting_position="0", starting_position_inclusive=True)
    assert [(event.sequence_number, event.body_as_str()[0]) for _, event in arrivals.events] == [(3, "3"), (4, "4")]


def test_hundreds_of_hubs_live_side_by_side(hubs: HubServer) -> None:
    names = [f"many-{new_name()}-{number}" for number in range(200)]
    for name in names:
        hubs.manage("PUT", f"/{name}", {"partitionCount": 2})
    listed = {each["name"] for each in hubs.manage("GET")["value"]}
    assert listed >= set(names)
    for name in names[::40]:
        hubs.send(name, name)
        assert receive(hubs.consumer(name), 1).bodies == [name]
    for name in names:
        hubs.manage("DELETE", f"/{name}")
    assert not {each["name"] for each in hubs.manage("GET")["value"]} & set(names)


def test_many_threads_send_at_once_and_nothing_is_lost(hubs: HubServer) -> None:
    hub = hubs.new_hub(partitions=2)

    def send(sender: int) -> None:
        with hubs.producer(hub) as producer:
            for number in range(50):
                producer.send_event(EventData(f"{sender}:{number}"), partition_id="0")

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    arrivals = receive(hubs.consumer(hub), 400)
    for sender in range(8):
        own = [body for body in arrivals.bodies if body.startswith(f"{sender}:")]
        assert own == [f"{sender}:{number}" for number in range(50)]
    assert [event.sequence_number for _, event in arrivals.events] == list(range(400))
