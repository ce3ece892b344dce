"""The step that writes, for our side of the workloads; a server and its workers load it with `--tools`."""

import noetl


@noetl.tool("bench_write")
async def bench_write() -> None:
    """Does nothing, and counts as a write: everything before it is durable when it begins."""
