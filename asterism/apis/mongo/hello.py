"""`hello`: the server as a member of a replica set of one, which is how the service presents itself."""

from __future__ import annotations

import asyncio

from asterism.apis.mongo.call import Call
from asterism.apis.mongo.wire import MESSAGE_BYTES_MAX
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document, Int64

SET_NAME = "globaldb"
DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
WRITES_MAX = 100_000
SESSION_MINUTES = 30
WIRE_VERSION_MAX = 25
_AWAIT_SECONDS_MAX = 60.0


async def hello(call: Call) -> Document:
    """Answer at once, or wait as long as the client says for a change of the topology, which never comes."""
    body, context, connection = call.body, call.context, call.connection
    version = body.get("topologyVersion")
    if isinstance(version, dict) and version.get("processId") == context.process_id:
        wait = body.get("maxAwaitTimeMS", 0)
        seconds = min(max(float(wait), 0.0) / 1000, _AWAIT_SECONDS_MAX)
        await asyncio.sleep(seconds)
    if "loadBalanced" in body:
        raise MongoFailure(72, "This server is no load balancer; remove loadBalanced=true from the connection string.")
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
        "electionId": context.election_id,
        "topologyVersion": {"processId": context.process_id, "counter": Int64(0)},
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
        answer["saslSupportedMechs"] = context.authenticator.mechanisms(connection)
    speculative = body.get("speculativeAuthenticate")
    if isinstance(speculative, dict) and "saslStart" in speculative:
        try:
            answer["speculativeAuthenticate"] = await context.authenticator.start(connection, speculative)
        except MongoFailure:
            # The client logs in by commands then, and gets the reason there.
            connection.conversation = None
    return answer


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
