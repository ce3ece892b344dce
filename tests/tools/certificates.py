"""Certificates for tests, made when they are asked for."""

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


class Signed(NamedTuple):
    """A certificate and its key, as PEM files."""

    cert: Path
    key: Path


class Authority:
    """An authority whose certificate is in `pem`; what it signs is put into the same folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("authority")
        builder = self._builder(self._name, self._key, NOW + DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(SIGNS, critical=True)
        self.pem = folder / "authority.pem"
        self.pem.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def sign(
        self, name: str, *, until: datetime.datetime = NOW + DAY, host: str = "127.0.0.1", password: str = ""
    ) -> Signed:
        key = ec.generate_private_key(ec.SECP256R1())
        addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
        builder = self._builder(_name(name), key, until).add_extension(addresses, critical=False)
        signed = Signed(self._folder / f"{name}.pem", self._folder / f"{name}.key.pem")
        signed.cert.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        locked: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            locked = serialization.BestAvailableEncryption(password.encode())
        signed.key.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
        )
        return signed

    def serving(self, signed: Signed, *, ask: bool = False) -> ssl.SSLContext:
        """For a server that shows this certificate, and asks for one of the client's if `ask`."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.pem)
        context.load_cert_chain(signed.cert, signed.key)
        if ask:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _builder(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime.datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - 30 * DAY)
            .not_valid_after(until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
