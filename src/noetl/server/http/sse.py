"""Server-sent events: messages as they come, a sign of life between them, and no patience without end."""

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from noetl.server.http.endpoint import EVENT_STREAM

KEEP_ALIVE = 15.0
"""Seconds after which a silent stream says that it is there, so that nobody in between cuts it."""
PATIENCE = 30.0
"""Seconds that a reader may leave what is sent to it unread. Then it is dropped: it may come again."""


class SseResponse(StreamingResponse):
    """Nothing is kept for a reader that is slow: what it has not read yet, it is not asked about either."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(PATIENCE):
                await send(message)

        # Not a failure of ours: the connection is closed, and its reader sees that.
        try:
            await super().__call__(scope, receive, send_in_time)
        except TimeoutError:
            return


def sse_response(messages: AsyncIterator[bytes]) -> SseResponse:
    # Closed at its end: nothing idle of it is left for a server that is about to end.
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Connection": "close"}
    return SseResponse(_with_keep_alive(messages), 200, headers, EVENT_STREAM)


async def _with_keep_alive(messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The messages, and a comment whenever none came for a while."""
    yield b": ok\n\n"  # the reader knows at once that it is connected
    following: asyncio.Task[bytes] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(_next_message(messages))
            done, _ = await asyncio.wait([following], timeout=KEEP_ALIVE)
            if not done:
                yield b": still here\n\n"
                continue
            message, following = following.result(), None
            if not message:
                return
            yield message
    finally:
        if following is not None:
            following.cancel()


async def _next_message(messages: AsyncIterator[bytes]) -> bytes:
    """Empty at the end. Messages that hold nothing are passed over."""
    async for message in messages:
        if message:
            return message
    return b""
