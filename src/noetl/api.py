"""Running playbooks from Python: `noetl.run` and `noetl.arun`."""

import gc
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import structs

from noetl.dsl.document.problem import Problem
from noetl.engine.archive.unfinished_copy import refuse_unfinished_copy
from noetl.engine.catalog.known_playbooks import KnownPlaybooks
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks
from noetl.engine.catalog.preflight import unread_keys
from noetl.engine.segment_log import open_task_log
from noetl.engine.service import Watch
from noetl.engine.summary import Execution, execution_of
from noetl.engine.task_log import LogLine, WatchedLog
from noetl.home import checked_results, home_of, key_location, result_store_of, store_url
from noetl.loader import TextOrPath, read_source
from noetl.local import Local
from noetl.model.secret import hide_secrets
from noetl.model.store_url import without_password
from noetl.own_loop import in_own_loop
from noetl.ports.store import Store
from noetl.settings import Configuration, read_settings
from noetl.stores import is_memory_url, open_store
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.ownership import owners_in


def dedicate_process() -> None:
    """For programs that run executions and do little else; `run` and `arun` leave their callers alone.

    Beside a busy loop, the thread that writes would wait 5 ms for each of its turns. And an execution makes
    many objects that live long and few cycles, so looking for garbage all the time costs a sixth of it all.
    But what is in a cycle is not gone before somebody looks, also among what was there at the last look: a
    server that looked ten times as seldom took a fifth more memory, and saved one instruction in a hundred.
    """
    sys.setswitchinterval(0.0005)
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


async def arun(
    source: TextOrPath,
    workload: Mapping[str, Any] | None = None,
    *,
    ctx: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    idempotency_key: str = "",
    timeout: float | None = None,
    store: str | None = None,
    dialect: str | None = None,
    allow_kinds: Iterable[str] = (),
    catalogs: Iterable[TextOrPath] = (),
    slots: int | None = None,
) -> Execution:
    """Runs a playbook, from a file or from text of more than one line, to its end.

    `store` is the URL of a store (`sqlite:///:memory:` leaves nothing behind); without one it is that of
    the command line. A failed execution is returned, not raised; `result` and `ctx` are whole, however
    large. Raises PlaybookInvalid, CannotRun, Refused, StoreError, ResultError.
    """
    configuration = read_settings({"store": store, "slots": slots, "allow_kinds": tuple(allow_kinds)})
    name, text = read_source(source)
    file = "" if text is source else os.path.abspath(os.fspath(source))
    warnings: list[Problem] = []
    playbooks = playbooks_of(
        configuration,
        [Path(os.fspath(folder)) for folder in catalogs],
        on_read=lambda document: warnings.extend(document.playbook.warnings),
    )
    async with open_local(configuration, playbooks=playbooks) as (local, _):
        playbook_source = PlaybookSource(text, name, file, dialect)
        warnings += unread_keys(playbooks.read(playbook_source).playbook, text, workload or {})
        execution_id = await local.start(
            playbook_source,
            workload=workload,
            ctx=ctx,
            labels=labels,
            idempotency_key=idempotency_key,
            timeout=timeout,
        )
        return structs.replace(await ended_execution(local, execution_id), warnings=warnings)


async def ended_execution(local: Local, execution_id: str) -> Execution:
    """Waits for the end of an execution that runs here; all of it, however large. Raises ResultError."""
    state = await local.wait_for_end(execution_id)
    result, ctx = await local.resolve(state.result), await local.resolve(state.ctx.values)
    return structs.replace(execution_of(state), result=hide_secrets(result), ctx=hide_secrets(ctx))


def run(source: TextOrPath, workload: Mapping[str, Any] | None = None, **options: Any) -> Execution:
    """`arun` for programs that do not await; it takes the same options.

    It works where an event loop runs already, as in a notebook: the execution has a thread of its own, which
    ends if the caller is interrupted.
    """
    return in_own_loop(arun(source, workload, **options))


def playbooks_of(
    configuration: Configuration,
    folders: Iterable[Path] = (),
    *,
    on_read: Callable[[PlaybookDocument], None] | None = None,
) -> Playbooks:
    """What reads documents for the store that is set; those that its home knows it need not read."""
    in_home = not is_memory_url(store_url(configuration))
    known = KnownPlaybooks(home_of(configuration).playbooks) if in_home else None
    return Playbooks(folders, configuration.settings.allow_kinds, on_read=on_read, known=known)


@asynccontextmanager
async def open_local(
    configuration: Configuration,
    *,
    playbooks: Playbooks | None = None,
    watch: Watch | None = None,
    watch_log: Callable[[str, LogLine], None] | None = None,
) -> AsyncIterator[tuple[Local, Store]]:
    """An engine on the store that is set, which is made if there is none. Raises StoreError, ResultError.

    `playbooks` are those that were read already: no document is read twice. `watch_log` gets what tasks
    print, with its execution.
    """
    settings = configuration.settings
    url = store_url(configuration)
    options: dict[str, Any] = {}
    home = home_of(configuration) if not is_memory_url(url) else None
    if home is not None:
        home.make()
        options = {"owners": owners_in(home)}
    store = open_store(url)
    try:
        await refuse_unfinished_copy(store, without_password(url))
        results = result_store_of(configuration, home, store)
        logs = open_task_log(home, results) if home is not None else None
        if watch_log is not None:
            logs = WatchedLog(logs, watch_log)
        local = Local(
            store,
            slots=settings.slots,
            playbooks=playbooks or playbooks_of(configuration),
            watch=watch,
            credentials=EncryptedCredentials(store, key_location(configuration)),
            results=results,
            logs=logs,
            **options,
        )
        async with checked_results(results), AsyncExitStack() as opened:
            if logs is not None:
                opened.push_async_callback(logs.close)
            await opened.enter_async_context(local)
            yield local, store
    finally:
        await store.close()
