"""The event loop of the server, and a certificate for all tests of a worker."""

from __future__ import annotations

import asyncio
import datetime

import pytest
import uvloop

from asterism.server.listeners.certificates import ensure_certificate
from asterism.server.listeners.tls import CertificateFiles


@pytest.fixture(scope="session")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    return uvloop.EventLoopPolicy()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return ensure_certificate(tmp_path_factory.mktemp("tls"), (), now=datetime.datetime.now(datetime.UTC))
