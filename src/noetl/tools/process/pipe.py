"""Pipes to and from processes, without blocking the loop."""

import asyncio
import os
from typing import IO


async def write_all(pipe: int, data: bytes) -> None:
    """Writes everything to a pipe that does not block. BrokenPipeError if nobody reads it any more."""
    loop = asyncio.get_running_loop()
    remaining = memoryview(data)
    while remaining:
        try:
            remaining = remaining[os.write(pipe, remaining) :]
        except BlockingIOError:
            writable = asyncio.Event()
            loop.add_writer(pipe, writable.set)
            try:
                await writable.wait()
            finally:
                loop.remove_writer(pipe)


async def open_pipe_reader(pipe: IO[bytes], room: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """A reader of the pipe that holds about `room` bytes at most; closing the transport closes the pipe."""
    reader = asyncio.StreamReader(limit=room)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader, transport
