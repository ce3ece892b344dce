"""The stream of NATS JetStream that a server publishes events to: `nats://HOST:PORT/STREAM`.

Its last message says how far the events are published, so nothing else has to. Each message says behind which
one it belongs, and the stream refuses it anywhere else: who was overtaken by another publisher notices.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from noetl.model.errors import NoetlError
from noetl.stores.nats_connection import (
    ANSWER_SECONDS,
    CHECK_ACCESS,
    NatsUrlWrong,
    connect_nats,
    import_nats,
    read_nats_credentials,
    split_nats_url,
)

STREAM_BYTES = 1 << 30
"""Of a stream that is made here. The oldest messages go first, so that the last one stays."""
POSITION_HEADER = "Noetl-Position"
OMITTED_HEADER = "Noetl-Omitted"
_HEADERS_ROOM = 4_096
"""Bytes of a message that its headers may take."""
_NO_JETSTREAM = (10_039, 10_076)
"""What a server says that has none, or none for this account."""
_ANOTHER_LAST = 10_071


class FeedMessage(NamedTuple):
    """An event as it is published. `position` is its place in the order of commits."""

    subject: str
    event_id: str
    position: int
    body: bytes
    omitted: str = ""


class FeedEnd(NamedTuple):
    """The last message of the stream: its event, the position of that, and the number of the last one."""

    event_id: str
    position: int
    sequence: int


class FeedError(NoetlError):
    """The stream cannot be reached or written now: trying again may help."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class FeedUnusable(FeedError):
    """Events cannot be published there before somebody changes it, or the setting."""


class FeedStream:
    """Belongs to the running event loop."""

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        """Raises FeedUnusable."""
        try:
            self._server, self.name = split_nats_url(url, "stream")
            self._nats = import_nats()
        except NatsUrlWrong as error:
            raise FeedUnusable(f"the feed cannot go where `feed` says: {error}", error.hint) from None
        except ImportError:
            raise FeedUnusable("a feed needs nats-py", "pip install 'noetl[nats]'") from None
        self.location = f"{self._server}/{self.name}"
        self.largest = 0
        """Bytes that a message may have; known when it is open."""
        self._options = read_nats_credentials(environment)
        self._client: Any = None
        self._last_complaint = ""

    async def open(self) -> FeedEnd:
        """Connects, and makes the stream if there is none. Raises FeedError."""
        await self.close()
        with self._translate_errors():
            self._client = await connect_nats(self._server, self._options, self._hear_complaint)
            context = self._context()
            info = await self._stream_info(context)
            self._check(info.config)
            sizes = (self._client.max_payload - _HEADERS_ROOM, info.config.max_msg_size or -1)
            self.largest = min(size for size in sizes if size > 0)
            # In this order: what another publisher adds in between lets the next message be refused.
            return await self._last_message(context, info.state.last_seq)

    async def publish(self, messages: Sequence[FeedMessage], after: int) -> int:
        """Adds them behind message number `after`; the number of the last one. Raises FeedError.

        Then some of them may be there, the first ones, and `open` says which.
        """
        with self._translate_errors():
            context = self._context()
            # Not by `publish_async`: there, who waits for an answer hears nothing of a refusal.
            answers = [
                context.publish(
                    message.subject, message.body, stream=self.name, headers=_headers(message, last)
                )
                for last, message in enumerate(messages, start=after)
            ]
            outcomes = await asyncio.gather(*answers, return_exceptions=True)
        with self._translate_errors():
            for number, outcome in enumerate(outcomes, start=after + 1):
                if isinstance(outcome, BaseException):
                    raise outcome
                if outcome.seq != number:
                    # It was there before, at another place: the stream was emptied a moment ago.
                    message = "it does not take again what it was sent a moment ago"
                    raise FeedError(f"{self.location}: {message}", "it does after its duplicate window")
        return after + len(messages)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _context(self) -> Any:
        if self._client is None or not self._client.is_connected:
            raise FeedError(f"{self.location}: the connection was lost", CHECK_ACCESS)
        return self._client.jetstream(timeout=ANSWER_SECONDS)

    def _hear_complaint(self, message: str) -> None:
        self._last_complaint = message

    async def _stream_info(self, context: Any) -> Any:
        from nats.js import api  # noqa: PLC0415 - only who has a feed needs it

        try:
            return await context.stream_info(self.name)
        except self._nats.js.errors.NotFoundError:
            return await context.add_stream(
                name=self.name,
                description="Events of NoETL, in the order of commits",
                subjects=[f"{self.name}.events.>"],
                retention=api.RetentionPolicy.LIMITS,
                storage=api.StorageType.FILE,
                discard=api.DiscardPolicy.OLD,
                max_bytes=STREAM_BYTES,
            )

    def _check(self, config: Any) -> None:
        """Raises FeedUnusable."""
        subject = f"{self.name}.events.>"
        if config.subjects != [subject]:
            raise self._foreign(f"it has other subjects than `{subject}`")
        if config.mirror or config.sources or config.sealed or config.no_ack:
            raise self._foreign("it is a mirror, has sources, is sealed or does not acknowledge")
        if config.retention != "limits" or config.max_age:
            message = f"{self.location}: the stream may drop its last message, which says what was published"
            raise FeedUnusable(
                message, "let it keep by `limits`, of bytes or messages, and without a largest age"
            )

    async def _last_message(self, context: Any, sequence: int) -> FeedEnd:
        try:
            last = await context.get_last_msg(self.name, f"{self.name}.events.>")
        except self._nats.js.errors.NotFoundError:
            return FeedEnd("", 0, sequence)
        headers = last.headers or {}
        position = headers.get(POSITION_HEADER, "")
        if not (position.isascii() and position.isdigit()):
            raise self._foreign("its last message is not of a server of NoETL")
        return FeedEnd(headers.get("Nats-Msg-Id", ""), int(position), sequence)

    def _foreign(self, why: str) -> FeedUnusable:
        message = f"{self.location}: the stream is used for something else: {why}"
        return FeedUnusable(message, "name another stream: one that is not there is made")

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        errors, jetstream = self._nats.errors, self._nats.js.errors
        self._last_complaint = ""
        try:
            yield
        except jetstream.NoStreamResponseError:
            raise FeedError(f"{self.location}: the stream is gone") from None
        except jetstream.ServiceUnavailableError as error:
            if getattr(error, "err_code", None) in (None, *_NO_JETSTREAM):
                raise self._no_jetstream() from None
            raise FeedError(f"{self.location}: {error.description}", CHECK_ACCESS) from None
        except jetstream.APIError as error:
            if error.err_code in _NO_JETSTREAM:
                raise self._no_jetstream() from None
            if error.err_code == _ANOTHER_LAST:
                raise FeedError(f"{self.location}: another publisher was faster") from None
            kind = FeedUnusable if (error.code or 500) < 500 else FeedError
            raise kind(f"{self.location}: {error.description}", CHECK_ACCESS) from None
        except (errors.Error, OSError, TimeoutError) as error:
            reason = self._last_complaint or str(error).removeprefix("nats: ") or "it does not answer"
            denied = isinstance(error, errors.AuthorizationError) or "authorization" in reason.lower()
            kind = FeedUnusable if denied or "permissions violation" in reason.lower() else FeedError
            raise kind(f"{self.location}: {reason}", CHECK_ACCESS) from None

    def _no_jetstream(self) -> FeedUnusable:
        return FeedUnusable(f"{self.location}: the server has no JetStream", "`nats-server -js` has it")


def _headers(message: FeedMessage, last: int) -> dict[str, str]:
    headers = {
        "Nats-Msg-Id": message.event_id,
        "Nats-Expected-Last-Sequence": str(last),
        POSITION_HEADER: str(message.position),
    }
    return {**headers, OMITTED_HEADER: message.omitted} if message.omitted else headers
