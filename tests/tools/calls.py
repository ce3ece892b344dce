"""A call of any tool: what all of them get, unless a test says otherwise."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from noetl.ports.results import ExecutionObjects
from noetl.ports.tool import Call
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.result_store_objects import ResultStoreObjects

HERE = Path(__file__).parent


def quiet(_line: str) -> None:
    """A log that keeps nothing."""


def call_of(
    kind: str,
    inputs: Mapping[str, Any],
    *,
    args: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    execution_id: str = "x",
    run_id: str = "",
    key: str = "k",
    timeout: float = 30.0,
    folder: Path = HERE,
    log: Callable[[str], None] = quiet,
    objects: ExecutionObjects | None = None,
) -> Call:
    """The first attempt of the task `t`, with nothing before it."""
    return Call(
        execution_id=execution_id,
        task="t",
        kind=kind,
        inputs=inputs,
        args=args or {},
        spec=spec or {},
        prev=None,
        attempt=1,
        idempotency_key=key,
        run_id=run_id,
        timeout=timeout,
        folder=folder,
        log=log,
        objects=objects or ResultStoreObjects(MemoryResults(), execution_id),
    )
