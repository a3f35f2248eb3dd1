"""The namespace that the clients' tests use, and the way to the server under test by the product's own addresses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

NAMESPACE = "asterism"
HOST_NAME = f"{NAMESPACE}.servicebus.windows.net"
RULE = "RootManageSharedAccessKey"
KEY = "SAS_KEY_VALUE"

BLOB_HOST_SUFFIX = ".blob.core.windows.net"
# Of the certificate, which the clients check.
CERTIFICATE_NAMES = ("*.servicebus.windows.net", "*.blob.core.windows.net")
LOCAL_HOSTS = frozenset({"", "localhost", "127.0.0.1", "::1"})

# Ports of the product.
AMQPS, AMQP, HTTPS = 5671, 5672, 443


@dataclass(frozen=True)
class Ports:
    """Ports of the server under test."""

    amqp: int
    amqps: int
    administration: int
    blob: int

    def to_environment(self) -> dict[str, str]:
        return {f"ASTERISM_TESTS_{name.upper()}_PORT": str(port) for name, port in vars(self).items()}

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> Ports:
        return cls(*(int(variables[f"ASTERISM_TESTS_{name.upper()}_PORT"]) for name in cls.__annotations__))


class NoSuchHost(Exception):
    """A host that the tests may not reach: it is not the server under test."""


def local_port(host: str, port: int, ports: Ports) -> int | None:
    """Return the port of this machine that serves an address of the product; None for an address of this machine.

    Names of other namespaces do not exist, as in the product.
    """
    name = host.lower().rstrip(".")
    if name == HOST_NAME:
        return {AMQPS: ports.amqps, AMQP: ports.amqp, HTTPS: ports.administration}.get(port, port)
    if name.endswith(BLOB_HOST_SUFFIX):
        return ports.blob
    if name in LOCAL_HOSTS:
        return None
    raise NoSuchHost(name)


def connection_string(rule: str = RULE, key: str = KEY, entity: str | None = None) -> str:
    parts = [f"Endpoint=sb://{HOST_NAME}/", f"SharedAccessKeyName={rule}", f"SharedAccessKey={key}"]
    return ";".join([*parts, f"EntityPath={entity}"] if entity else parts)


def environment_of_tests(ports: Ports, certificate: os.PathLike[str], storage: Mapping[str, str]) -> dict[str, str]:
    """Return the variables from which the tests, and our stand-ins, take where they go.

    `storage`: those of the storage account in which checkpoints are kept.
    """
    return {
        **ports.to_environment(),
        **storage,
        "ASTERISM_TESTS_CERTIFICATE": os.fspath(certificate),
        # Read by `ssl` and by `requests`.
        "SSL_CERT_FILE": os.fspath(certificate),
        "REQUESTS_CA_BUNDLE": os.fspath(certificate),
        "AZURE_STORAGE_ACCOUNT": storage["ASTERISM_TESTS_STORAGE_ACCOUNT_NAME"],
        "ASTERISM_TESTS_SERVICEBUS_CONNECTION_STR": connection_string(),
        "ASTERISM_TESTS_SERVICEBUS_FULLY_QUALIFIED_NAMESPACE": HOST_NAME,
        "ASTERISM_TESTS_SERVICEBUS_SAS_POLICY": RULE,
        "ASTERISM_TESTS_SERVICEBUS_SAS_KEY": KEY,
        "EVENT_HUB_NAMESPACE": NAMESPACE,
        "EVENTHUB_RESOURCE_GROUP": "group",
        "AZURE_SUBSCRIPTION_ID": "00000000-0000-0000-0000-000000000000",
        "AZURE_TEST_RUN_LIVE": "true",
        "AZURE_SKIP_LIVE_RECORDING": "true",
    }
