"""The server's own certificate."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509

from asterism.server.config import StartRefused
from asterism.server.listeners.certificates import VALID_DAYS, ensure_certificate

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)


def names_in(certificate: Path) -> x509.SubjectAlternativeName:
    loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    return loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value


def test_it_names_this_machine_and_what_the_operator_added(tmp_path: Path) -> None:
    names = names_in(ensure_certificate(tmp_path, ["db.test", "10.0.0.7", "db.test"], now=NOW).certificate)
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "db.test"]
    addresses = [ipaddress.ip_address(text) for text in ("127.0.0.1", "::1", "10.0.0.7")]
    assert names.get_values_for_type(x509.IPAddress) == addresses


def test_it_can_be_loaded_and_trusted(tmp_path: Path) -> None:
    files = ensure_certificate(tmp_path, [], now=NOW)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.private_key)
    ssl.create_default_context(cafile=str(files.certificate))


# S10 of asterism/server/DESIGN.md.
def test_only_its_owner_reads_the_private_key(tmp_path: Path) -> None:
    files = ensure_certificate(tmp_path / "tls", [], now=NOW)
    assert stat.S_IMODE(files.private_key.stat().st_mode) == 0o600
    assert {file.name for file in (tmp_path / "tls").iterdir()} == {"certificate.pem", "private-key.pem"}


# S10 of asterism/server/DESIGN.md.
def test_it_stays_the_same_while_its_names_do(tmp_path: Path) -> None:
    first = ensure_certificate(tmp_path, ["db.test"], now=NOW).certificate.read_bytes()
    later = NOW + datetime.timedelta(days=100)
    assert ensure_certificate(tmp_path, ["db.test"], now=later).certificate.read_bytes() == first
    assert ensure_certificate(tmp_path, ["other.test"], now=later).certificate.read_bytes() != first


def test_it_is_made_anew_before_it_ends(tmp_path: Path) -> None:
    first = ensure_certificate(tmp_path, [], now=NOW).certificate.read_bytes()
    later = NOW + datetime.timedelta(days=VALID_DAYS - 1)
    assert ensure_certificate(tmp_path, [], now=later).certificate.read_bytes() != first


@pytest.mark.parametrize("damaged", ["certificate.pem", "private-key.pem"])
def test_a_damaged_file_is_replaced(tmp_path: Path, damaged: str) -> None:
    files = ensure_certificate(tmp_path, [], now=NOW)
    (tmp_path / damaged).write_text("damaged")
    ensure_certificate(tmp_path, [], now=NOW)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.private_key)


def test_a_name_outside_ascii_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="cannot stand in a certificate"):
        ensure_certificate(tmp_path, ["münchen"], now=NOW)


def test_workers_that_need_it_at_the_same_moment_get_one_pair(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: ensure_certificate(tmp_path, [], now=NOW), range(8)))
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(made[0].certificate, made[0].private_key)
    assert len({files.certificate for files in made}) == 1
