"""The messaging door of a running server: connection strings, and entities of a test's own."""

from __future__ import annotations

import ssl
import uuid
from dataclasses import dataclass
from typing import Any

import urllib3
from azure.servicebus import ServiceBusClient, TransportType
from azure.servicebus.aio import ServiceBusClient as AsyncServiceBusClient
from azure.servicebus.management import ServiceBusAdministrationClient

from tests.support.server import RunningServer

# The certificate of the server is its own.
urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)

KEY_NAME = "RootManageSharedAccessKey"
KEY = "SAS_KEY_VALUE"
# No test waits for so long unless something is wrong.
WAIT_SECONDS = 60


@dataclass(frozen=True)
class MessagingServer:
    server: RunningServer

    @property
    def amqp_port(self) -> int:
        return self.server.ports["amqp"]

    def connection_string(self, *, key: str = KEY, key_name: str = KEY_NAME) -> str:
        return (
            f"Endpoint=sb://localhost:{self.amqp_port};SharedAccessKeyName={key_name};SharedAccessKey={key};"
            "UseDevelopmentEmulator=true"
        )

    @property
    def administration_string(self) -> str:
        port = self.server.ports["messaging"]
        return f"Endpoint=sb://localhost:{port};SharedAccessKeyName={KEY_NAME};SharedAccessKey={KEY}"

    def client(self, **options: Any) -> ServiceBusClient:
        return ServiceBusClient.from_connection_string(self.connection_string(), **options)

    def aio_client(self, **options: Any) -> AsyncServiceBusClient:
        return AsyncServiceBusClient.from_connection_string(self.connection_string(), **options)

    def tls_client(self) -> ServiceBusClient:
        """Return a client that uses TLS, as those without the emulator's flag do."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        string = f"Endpoint=sb://localhost;SharedAccessKeyName={KEY_NAME};SharedAccessKey={KEY}"
        return ServiceBusClient.from_connection_string(
            string,
            custom_endpoint_address=f"sb://localhost:{self.server.ports['amqps']}",
            transport_type=TransportType.Amqp,
            ssl_context=context,
        )

    def websocket_client(self) -> ServiceBusClient:
        return ServiceBusClient.from_connection_string(
            self.connection_string(),
            custom_endpoint_address=f"http://localhost:{self.amqp_port}",
            transport_type=TransportType.AmqpOverWebsocket,
        )

    def administration(self) -> ServiceBusAdministrationClient:
        return ServiceBusAdministrationClient.from_connection_string(
            self.administration_string, connection_verify=False
        )

    def new_queue(self, **options: Any) -> str:
        name = f"queue-{uuid.uuid4()}"
        with self.administration() as administration:
            administration.create_queue(name, **options)
        return name

    def new_topic(self, *subscriptions: str, **options: Any) -> str:
        name = f"topic-{uuid.uuid4()}"
        with self.administration() as administration:
            administration.create_topic(name, **options)
            for subscription in subscriptions:
                administration.create_subscription(name, subscription)
        return name
