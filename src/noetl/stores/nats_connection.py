"""Connections to NATS, for what is kept or published there."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from noetl.model.errors import NoetlError

ANSWER_SECONDS = 10.0
"""After which a server that does not answer counts as gone."""
CREDENTIALS = {
    "user": "NATS_USER",
    "password": "NATS_PASSWORD",
    "token": "NATS_TOKEN",
    "user_credentials": "NATS_CREDS",
}
"""What the client calls them, and where they come from: the same variables as those of the `nats` command."""
CHECK_ACCESS = f"check the server, and {', '.join(CREDENTIALS.values())} in the environment"
_NAME = re.compile(r"/([a-zA-Z0-9_-]+)/?")


class NatsUrlWrong(NoetlError):
    """A URL names no server, or nothing on it. The message does not repeat a password."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def import_nats() -> Any:
    """The client. Raises ImportError."""
    import nats.aio.client  # noqa: PLC0415 - only who uses NATS needs it
    import nats.js.errors  # noqa: PLC0415 - likewise

    return nats


def read_nats_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    return {option: environment[name] for option, name in CREDENTIALS.items() if environment.get(name)}


def split_nats_url(url: str, what: str) -> tuple[str, str]:
    """The server and the name of `what` is there. Raises NatsUrlWrong."""
    parts = urlsplit(url)
    hint = f"nats://HOST:PORT/{what.upper()}; a {what} has letters, digits, `_` and `-`"
    if "@" in parts.netloc:
        variables = " or ".join(CREDENTIALS.values())
        raise NatsUrlWrong("who signs in does not stand in it", f"set {variables}")
    name = _NAME.fullmatch(parts.path)
    if parts.scheme != "nats" or not parts.netloc or name is None or parts.query or parts.fragment:
        raise NatsUrlWrong(f"that names no server and {what}", hint)
    return f"nats://{parts.netloc}", name[1]


async def connect_nats(server: str, options: Mapping[str, str], on_complaint: Callable[[str], None]) -> Any:
    """A client without attempts of its own at coming back: who wants something else waits or asks again.

    `on_complaint` hears what the server says later; who waits for an answer hears nothing of it.
    """
    client = import_nats().aio.client.Client()

    async def hear(error: Exception) -> None:
        if not client.is_connected:
            raise error  # else the client would begin again with the same server
        on_complaint(str(error).removeprefix("nats: "))

    try:
        await client.connect(
            server,
            allow_reconnect=False,
            connect_timeout=int(ANSWER_SECONDS),
            error_cb=hear,
            name="noetl",
            # So the client reads the answer to its sign-in before it sends more. Else a refusal may go with
            # the connection that the server closes: a wrong password would look like a server that is gone.
            verbose=True,
            **options,
        )
    except BaseException:  # a cancelled wait, too
        await client.close()
        raise
    return client
