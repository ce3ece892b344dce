"""Passes one large object through the tools, and prints by how many bytes this process grew at most.

`python memory_child.py FOLDER BYTES S3_AUTH`: a folder with the file `large.bin`; `S3_AUTH` is JSON, or `null`.
"""

import asyncio
import json
import resource
import sys
from pathlib import Path
from typing import Any

from noetl.model.outcome import Outcome
from noetl.ports.tool import Call, Tool
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.artifact.tool import ArtifactTool
from noetl.tools.file.tool import FileTool
from noetl.tools.s3.tool import S3Tool

ID = "01939d2e-0000-7000-8000-000000000001"


async def done(tool: Tool, folder: Path, **inputs: Any) -> Any:
    compression = inputs.pop("compression", "none")
    objects = ResultStoreObjects(FileResults(folder / "results"), ID, compression=compression)
    outcome: Outcome = await tool.run(
        Call(
            execution_id=ID,
            task="t",
            kind="k",
            inputs=inputs,
            args={},
            spec={},
            prev=None,
            attempt=1,
            idempotency_key="k",
            timeout=600,
            folder=folder,
            log=lambda _: None,
            objects=objects,
        )
    )
    assert outcome.status == "ok", outcome.error
    return outcome.result


async def work(folder: Path, size: int, auth: dict[str, Any] | None, bucket: str) -> None:
    file, artifact = FileTool(), ArtifactTool()
    got = await done(file, folder, action="get", url="large.bin")
    assert got["size"] == size
    await done(artifact, folder, action="put", key="large", content=got)
    got = await done(artifact, folder, action="get", key="large")
    packed = await done(file, folder, action="get", url="large.bin", compression="zstd")
    await done(file, folder, action="put", url="again.bin", source=packed)
    if auth is not None:
        s3 = S3Tool()
        url = f"s3://{bucket}/memory/{folder.name}.bin"
        await done(s3, folder, action="put", url=url, source=got, auth=auth)
        got = await done(s3, folder, action="get", url=url, auth=auth)
        await done(s3, folder, action="delete", url=url, auth=auth)
    await done(file, folder, action="put", url="last.bin", source=got)
    assert (folder / "last.bin").stat().st_size == size


def peak() -> int:
    """Bytes that this process has taken at most."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


if __name__ == "__main__":
    folder_path, count, sign_in, bucket_name = sys.argv[1:]
    before = peak()
    asyncio.run(work(Path(folder_path), int(count), json.loads(sign_in), bucket_name))
    print(peak() - before)  # noqa: T201 - what the parent reads
