"""Looks for a secret in everything that a command wrote, in all the forms that it may have."""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

SECRET = 'T0p/Secr+t "Wört" \\1&?x=%'
"""With everything that JSON, URLs and base64 write in another way."""
SIMPLE = "plainMarkedSecret42"
"""What survives where the other would be no value: a URL, a word of a shell."""


def forms(secret: str) -> Iterator[bytes]:
    """The bytes that must not be found."""
    yield secret.encode()
    yield json.dumps(secret)[1:-1].encode()
    yield json.dumps(secret, ensure_ascii=False)[1:-1].encode()
    yield json.dumps(json.dumps(secret))[1:-1].encode()
    for made in (quote(secret), quote(secret, safe=""), quote_plus(secret)):
        yield made.encode()
        yield made.lower().encode()
    for before in range(3):
        packed = base64.b64encode(b"x" * before + secret.encode())
        inside = packed[(0, 2, 3)[before] : (before + len(secret.encode())) * 8 // 6]
        yield inside
        yield inside.translate(bytes.maketrans(b"+/", b"-_"))


def secret_forms_in(data: bytes, secrets: tuple[str, ...] = (SECRET, SIMPLE)) -> list[str]:
    """The forms of secrets that stand there."""
    contents = [data, gzip.decompress(data)] if data.startswith(b"\x1f\x8b") else [data]
    contents += [content.replace(b"\\n", b"").replace(b"\n", b"") for content in contents]  # base64 in lines
    return [
        form.decode()
        for secret in secrets
        for form in dict.fromkeys(forms(secret))
        if any(form in content for content in contents)
    ]


def leaks(folder: Path, *texts: str, secrets: tuple[str, ...] = (SECRET, SIMPLE)) -> dict[str, list[str]]:
    """Where forms of secrets stand: in these texts, or in files below the folder."""
    content_by_place = {f"text {number}": text.encode() for number, text in enumerate(texts)}
    content_by_place |= {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert any(name.endswith("store.db") for name in content_by_place)
    return {
        name: leaked for name, data in content_by_place.items() if (leaked := secret_forms_in(data, secrets))
    }
