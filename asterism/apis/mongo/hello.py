"""`hello`: the server as a member of a replica set of one, which is how the service presents itself."""

from __future__ import annotations

from typing import Any

from asterism.apis.mongo.call import Call
from asterism.apis.mongo.connection import Connection
from asterism.apis.mongo.topology import ELECTION_ID, seconds_to_wait
from asterism.apis.mongo.wire import MESSAGE_BYTES_MAX
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document

SET_NAME = "globaldb"
DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
WRITES_MAX = 100_000
SESSION_MINUTES = 30
WIRE_VERSION_MAX = 25
_APPLICATION_CHARACTERS_MAX = 128


async def hello(call: Call) -> Document:
    """Answer at once, or wait as long as the client says for a change of the topology."""
    body, context, connection = call.body, call.context, call.connection
    topology = context.topology
    if body.get("loadBalanced"):
        raise MongoFailure(72, "This server is no load balancer; remove loadBalanced=true from the connection string.")
    seconds = seconds_to_wait(topology, body)
    if seconds is not None:
        await connection.pause(seconds, topology.changed)
    call.goes_on = "topologyVersion" in body
    address = advertised_address(call)
    answer: Document = {}
    if call.name != "hello":
        answer["ismaster"] = True
    answer |= {
        "isWritablePrimary": True,
        "helloOk": True,
        "setName": SET_NAME,
        "setVersion": 1,
        "secondary": False,
        "hosts": [address],
        "primary": address,
        "me": address,
        "electionId": ELECTION_ID,
        "topologyVersion": topology.version,
        "maxBsonObjectSize": DOCUMENT_BYTES_MAX,
        "maxMessageSizeBytes": MESSAGE_BYTES_MAX,
        "maxWriteBatchSize": WRITES_MAX,
        "localTime": context.now(),
        "logicalSessionTimeoutMinutes": SESSION_MINUTES,
        "connectionId": connection.number,
        "minWireVersion": 0,
        "maxWireVersion": WIRE_VERSION_MAX,
        "readOnly": False,
    }
    offered = body.get("compression")
    if isinstance(offered, list) and "zlib" in offered:
        answer["compression"] = ["zlib"]
    mechanisms_for = body.get("saslSupportedMechs")
    if isinstance(mechanisms_for, str):
        answer["saslSupportedMechs"] = await context.authenticator.mechanisms(connection, mechanisms_for)
    speculative = body.get("speculativeAuthenticate")
    if isinstance(speculative, dict) and "saslStart" in speculative:
        try:
            started = await context.authenticator.start(connection, speculative, speculative.get("db"))
            answer["speculativeAuthenticate"] = started
        except MongoFailure:
            # The client logs in by commands then, and gets the reason there.
            connection.conversation = None
    return answer


def note_client(connection: Connection, client: Any) -> None:
    """Keep the name of the client's program, from the first hello that has one."""
    application = client.get("application") if isinstance(client, dict) else None
    name = application.get("name") if isinstance(application, dict) else None
    if isinstance(name, str) and not connection.application:
        connection.application = name[:_APPLICATION_CHARACTERS_MAX]


def advertised_address(call: Call) -> str:
    """Return the address under which the client reaches this server: configured, as asked by TLS, or its own."""
    configured = call.context.settings.advertised_address
    if configured:
        return configured
    connection = call.connection
    port = connection.local_address.rpartition(":")[2]
    if connection.server_name:
        return f"{connection.server_name}:{port}"
    return connection.local_address
