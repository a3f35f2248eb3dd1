"""The settings of messaging: namespaces, limits, and the file that describes entities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asterism.apis.amqp.accounts import DEFAULT_NAMESPACE, PUBLIC_KEY, NamespaceAccount, parse_namespaces
from asterism.apis.settings import HOW, WHERE, WHO, option
from asterism.limits import KIB, MIB, limit

if TYPE_CHECKING:
    from asterism.apis.amqp.administration.config_file import MessagingConfig
    from asterism.apis.amqp.bus.limits import BusLimits
    from asterism.apis.amqp.engine.settings import EngineSettings
    from asterism.models.event_logs.description import HubLimits


def _parse_config(path: str) -> MessagingConfig | None:
    if not path:
        return None
    from asterism.apis.amqp.administration.config_file import read_config

    return read_config(path)


@dataclass(frozen=True, slots=True)
class MessagingSettings:
    """Limits that the vendor documents have its numbers (spec S4); an operator may change each of them."""

    # Without any there is the namespace of the vendor's emulators, with its public key.
    given_namespaces: tuple[NamespaceAccount, ...] = option(
        (),
        "--messaging-namespace",
        "A namespace of hubs, queues and topics with the text of its key; may be repeated. The first is the default.",
        panel=WHO,
        metavar="NAME:KEY",
        is_repeatable=True,
        is_secret=True,
        default_help=f"{DEFAULT_NAMESPACE} with the key of the vendor's emulators",
        parse=parse_namespaces,
    )
    unsigned_tokens: bool = option(
        False,
        "--unsigned-tokens",
        "Let tables, queues, blobs and messaging take bearer tokens that nobody has signed. For tests only.",
        panel=WHO,
    )
    messaging_config: MessagingConfig | None = option(
        None,
        "--messaging-config",
        "A Config.json of the vendor's emulators for messaging: entities that do not exist are created.",
        panel=WHERE,
        kind=str,
        metavar="FILE",
        parse=_parse_config,
    )
    partitioned_auto_delete_refused: bool = option(
        False,
        "--no-partitioned-auto-delete",
        "Refuse partitioned queues and topics that are deleted when they are idle, as the service once did.",
        panel=HOW,
    )
    hub_throughput_units: int | None = option(
        None,
        "--hub-throughput-units",
        "Throughput units of each hub without its own: 1 MB or 1,000 events a second in, and 2 MB out, for each. "
        "No limit if omitted.",
        panel=HOW,
        kind=int,
        metavar="N",
        minimum=1,
    )
    messaging_request_bytes_max: int = limit(
        4 * MIB, "The largest body of an administration request of messaging; larger ones are answered with 413."
    )
    # --- entities of a namespace ---
    bus_entities_max: int = limit(10_000, "Queues and topics of a namespace; one more is refused with 403.")
    bus_partitioned_entities_max: int = limit(100, "Of these, the partitioned ones.")
    bus_subscriptions_max: int = limit(2_000, "Subscriptions of a topic.")
    bus_sql_filters_max: int = limit(2_000, "SQL filters of a topic.")
    bus_correlation_filters_max: int = limit(100_000, "Correlation filters of a topic.")
    # The dearer tiers of the service have 80 GB.
    bus_entity_megabytes_max: int = limit(80 * KIB, "The size in MB that a queue or topic can be given.")
    # --- messages ---
    bus_message_bytes_max: int = limit(256 * KIB, "The largest message of Service Bus.")
    bus_property_bytes_max: int = limit(32 * KIB, "The largest property of a message of Service Bus.")
    bus_properties_bytes_max: int = limit(64 * KIB, "All properties of a message of Service Bus.")
    bus_id_characters_max: int = limit(128, "Characters of ids of messages and sessions.")
    # --- connections, links and transactions ---
    messaging_connections_max: int = limit(5_000, "Connections of AMQP of one process.")
    messaging_links_max: int = limit(5_000, "Links of a connection of AMQP.")
    messaging_token_seconds_max: int = limit(20, "Until the first token of a connection of AMQP; then it is closed.")
    messaging_linkless_seconds_max: int = limit(60, "The same until its first link.")
    messaging_idle_seconds_max: int = limit(300, "The same after its last link.")
    messaging_silence_seconds_max: int = limit(240, "The same after its last frame; clients send empty ones.")
    bus_receivers_max: int = limit(5_000, "Receivers of a queue or subscription.")
    bus_transaction_messages_max: int = limit(100, "Messages of a transaction.")
    bus_transaction_seconds_max: int = limit(120, "From the beginning of a transaction to its end.")
    # --- hubs ---
    hub_partitions_max: int = limit(32, "Partitions that a hub can be created with; the service has up to 2,000.")
    hub_groups_max: int = limit(20, "Consumer groups of a hub.")
    hub_event_bytes_max: int = limit(MIB, "The largest event, and the largest batch of events, of Event Hubs.")
    hub_plain_receivers_max: int = limit(5, "Receivers without an epoch of a consumer group and partition.")

    @property
    def has_own_namespaces(self) -> bool:
        return bool(self.given_namespaces)

    @property
    def namespaces(self) -> dict[str, NamespaceAccount]:
        """The namespaces of the configuration, the default one first."""
        given = self.given_namespaces or (NamespaceAccount(DEFAULT_NAMESPACE, (PUBLIC_KEY,)),)
        return {account.name: account for account in given}

    def first_keys(self) -> dict[str, bytes]:
        """Return the first key of each namespace, as `DoorSpec.account_keys` does."""
        return {name: account.keys[0].encode() for name, account in self.namespaces.items()}

    def bus_limits(self) -> BusLimits:
        from asterism.apis.amqp.bus.limits import BusLimits

        return BusLimits(
            receivers_per_entity_max=self.bus_receivers_max,
            id_characters_max=self.bus_id_characters_max,
            property_bytes_max=self.bus_property_bytes_max,
            properties_bytes_max=self.bus_properties_bytes_max,
            transaction_messages_max=self.bus_transaction_messages_max,
            transaction_seconds_max=float(self.bus_transaction_seconds_max),
        )

    def engine_settings(self) -> EngineSettings:
        from asterism.apis.amqp.engine.settings import EngineSettings

        return EngineSettings(
            links_per_connection_max=self.messaging_links_max,
            token_seconds_max=float(self.messaging_token_seconds_max),
            linkless_seconds_max=float(self.messaging_linkless_seconds_max),
            idle_link_seconds_max=float(self.messaging_idle_seconds_max),
            silence_seconds_max=float(self.messaging_silence_seconds_max),
            # Peers are asked to send at half the time.
            idle_milliseconds=self.messaging_silence_seconds_max * 500,
        )

    def hub_limits(self) -> HubLimits:
        from asterism.models.event_logs.description import HubLimits

        return HubLimits(
            partitions_max=self.hub_partitions_max,
            groups_max=self.hub_groups_max,
            plain_receivers_max=self.hub_plain_receivers_max,
            message_bytes_max=self.hub_event_bytes_max,
            throughput_units=self.hub_throughput_units,
        )
