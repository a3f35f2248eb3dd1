"""A folder with the client's tests in it, ready for pytest. Nothing of it is kept in the project."""

from __future__ import annotations

import base64
import importlib.metadata
import json
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

CLIENT_PACKAGE = "azure-cosmos"

MARKERS = (
    "cosmosAADCircuitBreaker",
    "cosmosAADCircuitBreakerMultiRegion",
    "cosmosAADLong",
    "cosmosAADMultiRegion",
    "cosmosAADPerPartitionAutomaticFailover",
    "cosmosAADQuery",
    "cosmosAADSplit",
    "cosmosCircuitBreaker",
    "cosmosCircuitBreakerMultiRegion",
    "cosmosEmulator",
    "cosmosGSI",
    "cosmosLong",
    "cosmosMultiRegion",
    "cosmosPerPartitionAutomaticFailover",
    "cosmosQuery",
    "cosmosSearchQuery",
    "cosmosSplit",
    "semanticReranker",
    "unittest",
)

# The tests import two names from a package that the vendor does not publish. The credential is asked for only when
# the endpoint is not the emulator's; it then carries the account key as the signature of an unsigned token.
STUB_RECORDED_TESTCASE = """
import time

TOKEN = {token!r}


class AccessToken:
    def __init__(self):
        self.token = TOKEN
        self.expires_on = int(time.time()) + 3600


class Credential:
    def get_token(self, *scopes, **options):
        return AccessToken()


class AsyncCredential:
    async def get_token(self, *scopes, **options):
        return AccessToken()

    async def close(self):
        pass


def get_credential(is_async=False, **options):
    return AsyncCredential() if is_async else Credential()
"""

STUB_HELPERS = """
def is_live():
    return is_live._cache


is_live._cache = False
"""


@dataclass(frozen=True)
class Workspace:
    """The folders of the tests and of their missing import."""

    client_version: str
    tests: Path
    stubs: Path


def prepare_workspace(build: Path, *, account_key: str) -> Workspace:
    """Download the source distribution of the installed client (once per version), with the imports its tests miss."""
    build.mkdir(parents=True, exist_ok=True)
    source, client_version = unpack_source(build, CLIENT_PACKAGE)
    stubs = build / "stubs"
    write_stubs(stubs, account_key=account_key)
    write_pytest_settings(source / "tests" / "pytest.ini")
    return Workspace(client_version, source / "tests", stubs)


def unpack_source(build: Path, package: str) -> tuple[Path, str]:
    """The source distribution of the installed version of a package, downloaded once, and that version."""
    version = importlib.metadata.version(package)
    stem = f"{package.replace('-', '_')}-{version}"
    source = build / stem
    if source.is_dir():
        return source, version
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package]
    subprocess.run([*pip, "--dest", str(build), f"{package}=={version}"], check=True)
    # The name of the archive has hyphens or underscores, as its maker liked.
    archive = next(build.glob(f"{package.replace('-', '[_-]')}-{version}.tar.gz"))
    with tarfile.open(archive) as tar:
        tar.extractall(build, filter="data")
    unpacked = build / archive.name.removesuffix(".tar.gz")
    return (unpacked if unpacked == source else unpacked.rename(source)), version


def write_stubs(stubs: Path, *, account_key: str) -> None:
    package = stubs / "devtools_testutils"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("")
    (package / "helpers.py").write_text(STUB_HELPERS)
    token = unsigned_token(account_key)
    (package / "azure_recorded_testcase.py").write_text(STUB_RECORDED_TESTCASE.format(token=token))


def unsigned_token(account_key: str) -> str:
    parts = (json.dumps({"alg": "none"}), json.dumps({"aud": "asterism"}), account_key)
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


def write_pytest_settings(path: Path) -> None:
    markers = "\n    ".join(MARKERS)
    path.write_text(
        f"[pytest]\nmarkers =\n    {markers}\nasyncio_mode = strict\nfilterwarnings =\n    ignore\n"
        "junit_family = xunit1\n"
    )
