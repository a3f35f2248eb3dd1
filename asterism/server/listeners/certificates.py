"""A certificate of the server's own, kept in the data directory so that clients need to trust it only once."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import ipaddress
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from asterism.server.config import StartRefused
from asterism.server.listeners.tls import CertificateFiles

ALWAYS_NAMED = ("localhost", "127.0.0.1", "::1")
# Long enough that no test machine breaks on a date; it is trusted by hand or not at all.
VALID_DAYS = 3650
# A certificate this close to its end is made anew at the next start.
RENEW_DAYS = 30


def ensure_certificate(folder: Path, names: Sequence[str], *, now: datetime.datetime) -> CertificateFiles:
    """Return the kept certificate, or a new one if it is missing, has other names or expires soon."""
    files = CertificateFiles(folder / "certificate.pem", folder / "private-key.pem")
    wanted = tuple(dict.fromkeys((*ALWAYS_NAMED, *names)))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(folder):
            if not _is_usable(files, wanted, now):
                _make(files, wanted, now)
    except OSError as error:
        raise StartRefused(f"the certificate in {folder} cannot be kept: {error.strerror}") from None
    return files


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other workers out, whose first clients with TLS may come at the same moment."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_usable(files: CertificateFiles, names: Sequence[str], now: datetime.datetime) -> bool:
    try:
        kept = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        key = serialization.load_pem_private_key(files.private_key.read_bytes(), password=None)
        kept_names = kept.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (FileNotFoundError, ValueError, TypeError, x509.ExtensionNotFound):
        return False
    if now + datetime.timedelta(days=RENEW_DAYS) > kept.not_valid_after_utc or key.public_key() != kept.public_key():
        return False
    return set(kept_names) == {_general_name(name) for name in names}


def _make(files: CertificateFiles, names: Sequence[str], now: datetime.datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Asterism")])
    general_names = [_general_name(name) for name in names]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A day back: clocks of containers and their hosts differ.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(general_names), critical=False)
        # It signs itself, so a client that trusts it must find an authority in it.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    # PKCS#8: the form the listener reads.
    key_text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(files.private_key, key_text, mode=0o600)
    _write(files.certificate, certificate.public_bytes(serialization.Encoding.PEM), mode=0o644)


def _general_name(name: str) -> x509.GeneralName:
    with contextlib.suppress(ValueError):
        return x509.IPAddress(ipaddress.ip_address(name))
    try:
        return x509.DNSName(name)
    except ValueError:
        raise StartRefused(f"{name!r} cannot stand in a certificate; give host names in ASCII, or addresses") from None


def _write(path: Path, text: bytes, *, mode: int) -> None:
    """Written aside and moved into place, so that a crash leaves no half file, and never readable for others."""
    aside = path.with_suffix(".new")
    aside.unlink(missing_ok=True)
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(handle)
    aside.replace(path)
