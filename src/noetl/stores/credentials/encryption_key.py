"""The key that seals credentials: 32 bytes, as text in a file or in the environment."""

import base64
import binascii
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from noetl.ports.credentials import KeyWrong
from noetl.stores.durable_folder import flush_folder
from noetl.stores.private_files import open_private_file

KEY_BYTES = 32
_FORM = f"{KEY_BYTES} random bytes in base64 or hexadecimal digits"


class EncryptionKey(Struct, frozen=True):
    """`location` says where it was found. `id` names it without telling it."""

    data: bytes
    location: str

    @property
    def id(self) -> str:
        return hashlib.sha256(b"noetl key\0" + self.data).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"Key({self.id})"  # without `data`: what is printed of it ends up in logs


def generate_key(location: str = "") -> EncryptionKey:
    return EncryptionKey(secrets.token_bytes(KEY_BYTES), location)


def parse_key(text: str, location: str) -> EncryptionKey:
    """Raises KeyWrong if this is no key."""
    text = text.strip()
    # No text is a key in both: 32 bytes are 64 digits, or 43 characters of base64.
    for read in (bytes.fromhex, _from_base64):
        try:
            data = read(text)
        except (ValueError, binascii.Error):
            continue
        if len(data) == KEY_BYTES:
            return EncryptionKey(data, location)
    raise KeyWrong(f"{location} holds no key", f"a key is {_FORM}")


def _from_base64(text: str) -> bytes:
    plain = text.rstrip("=").translate(str.maketrans("-_", "+/"))
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)


class KeyLocation:
    """Where the key of a store is: the text that is given, or a file, which may be made.

    While a key is replaced the new one lies beside the file, so that at every moment one of the two opens
    what is stored.
    """

    def __init__(self, text: str = "", file: Path | None = None) -> None:
        self._text = text
        self.file = None if text else file

    def read_keys(self) -> list[EncryptionKey]:
        """The keys that there are, the one in use first; none if none was made yet. Raises KeyWrong."""
        if self._text:
            return [parse_key(self._text, "NOETL_KEY")]
        paths = [self.file, self.next_file] if self.file is not None else []
        return [key for path in paths if path is not None and (key := read_key_file(path)) is not None]

    def create_key(self) -> EncryptionKey:
        """A new key in the file. Raises KeyWrong where none can be written."""
        if self.file is None:
            raise KeyWrong("there is no key", "set NOETL_KEY_FILE or NOETL_KEY")
        key = generate_key(str(self.file))
        if not write_key_file(key, self.file):
            written = read_key_file(self.file)  # another process was faster
            if written is not None:
                return written
        return key

    @property
    def next_file(self) -> Path | None:
        return self.file.with_name(f"{self.file.name}.new") if self.file is not None else None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Waits until no other process replaces the key."""
        folder = self.file.parent if self.file is not None else Path()
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except OSError as error:
            raise KeyWrong(f"{folder} cannot be read: {error.strerror or error}") from None
        try:
            # On the folder: the file is replaced meanwhile, and a lock on the old one would hold nobody.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def activate_next_key(self) -> None:
        """The key beside the file takes its place."""
        if self.file is not None and self.next_file is not None:
            self.next_file.replace(self.file)
            flush_folder(self.file.parent)


def read_key_file(path: Path) -> EncryptionKey | None:
    """None if there is no such file. Raises KeyWrong."""
    try:
        return parse_key(path.read_text("ascii"), str(path))
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise KeyWrong(f"{path} holds no key", f"a key is {_FORM}") from None
    except OSError as error:
        raise KeyWrong(f"{path} cannot be read: {error.strerror or error}") from None


def write_key_file(key: EncryptionKey, path: Path) -> bool:
    """Durable on return, and for the owner's eyes only. False if there is such a file already.

    Raises KeyWrong if it cannot be written.
    """
    try:
        return _create_key_file(key, path)
    except OSError as error:
        message = f"the key {path} cannot be written: {error.strerror or error}"
        raise KeyWrong(message, "name a file with NOETL_KEY_FILE in a folder of yours") from None


def _create_key_file(key: EncryptionKey, path: Path) -> bool:
    beside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    text = base64.b64encode(key.data) + b"\n"
    descriptor = open_private_file(beside, os.O_WRONLY | os.O_EXCL)
    try:
        with open(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A link, not a rename: it fails where there is a key, which a rename would replace. Never half a key.
        os.link(beside, path)
    except FileExistsError:
        return False
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
    flush_folder(path.parent)
    return True
