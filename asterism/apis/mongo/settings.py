"""The settings of the door."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.apis.settings import HOW, WHERE, option
from asterism.limits import limit


@dataclass(frozen=True, slots=True)
class MongoSettings:
    advertised_address: str = option(
        "",
        "--mongo-address",
        "The HOST:PORT under which clients reach the MongoDB port, where that is not its own address.",
        panel=WHERE,
        metavar="HOST:PORT",
        default_help="the address of the connection",
    )
    allow_missing_shard_key: bool = option(
        False,
        "--mongo-missing-shard-key",
        "Store documents without the shard key, as MongoDB does; the service refuses them.",
        panel=HOW,
    )
    holds_throttled: bool = option(
        False,
        "--mongo-server-side-retry",
        "Hold requests without request units for up to 60 seconds, as the service's server side retry does.",
        panel=HOW,
    )
    mongo_message_bytes_max: int = limit(48_000_000, "The largest message of the MongoDB protocol.")
    mongo_idle_seconds_max: int = limit(1800, "Between two messages of a MongoDB connection.")
    mongo_transaction_seconds_max: int = limit(60, "The life of a MongoDB transaction; the service's own is 5 seconds.")
