"""Credentials at hand: each is asked for once, and again when it is old."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from noetl.credentials.computed_entry import (
    EntryInputs,
    computed_request,
    mask_derived,
    reads_execution,
    with_read_entries,
)
from noetl.credentials.credential import Credential
from noetl.credentials.providers import CredentialRequest, Providers
from noetl.dsl.document.playbook import KeychainEntry, Playbook, Step, Task, entry_reads
from noetl.expr.expression import Expression
from noetl.expr.template import Constant, ListTemplate, MappingTemplate, Template
from noetl.expr.use import Path
from noetl.kernel.expression_reads import expressions_in
from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo
from noetl.ports.credentials import CredentialError

FRESH_SECONDS = 60.0
"""Seconds after which a value is asked for again, unless it says itself how long it lasts."""
MIN_SECONDS = 1.0
"""Seconds that every value is good for: it was asked for to be used at once."""
RETRY_SECONDS = 5.0
"""Seconds after which who could not answer is asked again."""
MAX_CACHED = 1_000
"""Credentials that are known at a time; the oldest go first."""


class _CachedCredential(NamedTuple):
    credential: Credential
    until: float


class CredentialResolver:
    """For all executions of a worker. Many who want the same at the same time share one question."""

    def __init__(self, providers: Providers, clock: Callable[[], float] = time.monotonic) -> None:
        self._providers = providers
        self._clock = clock
        self._cache: dict[bytes, _CachedCredential] = {}
        self._pending: dict[bytes, asyncio.Task[Credential]] = {}

    def cached(self, request: CredentialRequest) -> Credential | None:
        """Without asking anybody; None if it is not known or old."""
        cached = self._cache.get(_cache_key(request))
        return cached.credential if cached is not None and self._clock() < cached.until else None

    async def resolve(self, request: CredentialRequest) -> Credential:
        """Where it cannot be had now, an older value that still counts does. Raises CredentialError."""
        if (credential := self.cached(request)) is not None:
            return credential
        key = _cache_key(request)
        if (task := self._pending.get(key)) is None:
            task = self._pending[key] = asyncio.get_running_loop().create_task(self._fetch(request, key))
            task.add_done_callback(lambda done: self._forget_pending(key, done))
        try:
            # Shielded: others wait for the same task, and must not lose it with the first who gives up.
            return await asyncio.shield(task)
        except CredentialError as error:
            stale = self._cache.get(key)
            # Only what has no lifetime of its own: a token that has run out would be refused.
            if error.retryable and stale is not None and stale.credential.lifetime is None:
                self._cache[key] = _CachedCredential(stale.credential, self._clock() + RETRY_SECONDS)
                return stale.credential
            raise

    async def request(
        self,
        playbook: Playbook,
        folder: str,
        name: str,
        provider: str = "",
        inputs: EntryInputs | None = None,
    ) -> CredentialRequest:
        """What a name asks for, with the entries that it reads at hand. Raises CredentialError.

        Without `inputs` nothing can be read but other entries.
        """
        if (entry := _computed_entry(playbook, name, provider)) is None:
            return credential_request(playbook, folder, name, provider)
        others = {}
        for read in entry_reads(entry):
            try:
                others[read] = await self.resolve(
                    await self.request(playbook, folder, read, "keychain", inputs)
                )
            except CredentialError as error:
                raise CredentialError(unavailable_message(read, error), retryable=error.retryable) from None
        return computed_request(entry, folder, others, inputs)

    def request_at_hand(
        self, playbook: Playbook, folder: str, name: str, inputs: EntryInputs | None
    ) -> CredentialRequest | None:
        """What an entry asks for now, without asking anybody; None if one that it reads is not at hand."""
        if (entry := _computed_entry(playbook, name, "keychain")) is None:
            return credential_request(playbook, folder, name, "keychain")
        others = {}
        for read in entry_reads(entry):
            request = self.request_at_hand(playbook, folder, read, inputs)
            if request is None or (credential := self.cached(request)) is None:
                return None
            others[read] = credential
        try:
            return computed_request(entry, folder, others, inputs)
        except CredentialError:
            return None  # who asks for it in earnest hears why

    def invalidate(self, request: CredentialRequest) -> None:
        """The value was refused: the next one who wants it gets a new one."""
        self._cache.pop(_cache_key(request), None)

    async def close(self) -> None:
        """Ends what is under way."""
        tasks = list(self._pending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget_pending(self, key: bytes, task: asyncio.Task[Credential]) -> None:
        self._pending.pop(key, None)
        if not task.cancelled():
            task.exception()  # read here: who asked may be gone, and asyncio would complain

    async def _fetch(self, request: CredentialRequest, key: bytes) -> Credential:
        try:
            credential = await self._providers.resolve(request)
        except CredentialError as error:
            if request.derived:
                raise mask_derived(error, request.derived) from None
            raise
        except Exception as error:  # noqa: BLE001 - clients of others raise anything, and tell what they sent
            raise CredentialError(f"it could not be looked up: {type(error).__name__}") from None
        lifetime = FRESH_SECONDS if credential.lifetime is None else max(credential.lifetime, MIN_SECONDS)
        self._cache[key] = _CachedCredential(credential, self._clock() + lifetime)
        while len(self._cache) > MAX_CACHED:
            self._cache.pop(next(iter(self._cache)))
        return credential

    async def preflight(self, playbook: Playbook, steps: Iterable[Step], folder: str) -> ErrorInfo | None:
        """Why these steps of a playbook cannot run: a credential that they use cannot be had."""
        names = checked_credentials(playbook, steps)
        results = await asyncio.gather(
            *(self._unavailable_reason(playbook, folder, name, provider) for name, provider in names)
        )
        reasons = {name: reason for (name, _), reason in zip(names, results, strict=True) if reason}
        if not reasons:
            return None
        return ErrorInfo(
            kind="credential", message="; ".join(reasons.values()), details={"credentials": list(reasons)}
        )

    async def _unavailable_reason(self, playbook: Playbook, folder: str, name: str, provider: str) -> str:
        """Why a credential cannot be had; nothing if it can."""
        try:
            await self.resolve(await self.request(playbook, folder, name, provider))
        except CredentialError as error:
            return unavailable_message(name, error)
        return ""


def unavailable_message(name: str, error: CredentialError) -> str:
    """Why a credential cannot be had, in one sentence."""
    return f"the credential `{name}` cannot be had: {error}" + (f" ({error.hint})" if error.hint else "")


def _cache_key(request: CredentialRequest) -> bytes:
    return msgspec.json.encode(request)


PROVIDERS = ("keychain", "store", "env", "file", "vault")
"""Where a name that a task gives is looked up; without one, in the first two."""


def _computed_entry(playbook: Playbook, name: str, provider: str) -> KeychainEntry | None:
    entry = playbook.keychain.get(name) if provider in ("", "keychain") else None
    return entry if entry is not None and entry.templates else None


def credential_request(playbook: Playbook, folder: str, name: str, provider: str = "") -> CredentialRequest:
    """What a name asks for whose entry, if it has one, holds no expression. Raises CredentialError."""
    match provider:
        case "" | "keychain" if name in playbook.keychain:
            entry = playbook.keychain[name]
            return CredentialRequest(name, entry.kind, dict(entry.fields), folder)
        case "" | "store":
            return CredentialRequest(name, folder=folder)
        case "env":
            return CredentialRequest(name, "env", {"env": name}, folder)
        case "file" | "vault":
            return CredentialRequest(name, provider, {"path": name}, folder)
        case "keychain":
            raise CredentialError(f"the keychain has no entry `{name}`", "declare it under `keychain`")
        case _:
            raise CredentialError(f"there is no provider `{provider}`", f"one of {', '.join(PROVIDERS)}")


def checked_credentials(playbook: Playbook, steps: Iterable[Step]) -> list[tuple[str, str]]:
    """What these steps name by constants, so that it can be asked for before they run; with providers.

    Entries that read the workload are not among them: it is known only when the execution has begun.
    """
    steps = list(steps)
    entries = ((name, "") for name in _named_entries(playbook, steps))
    return [
        (name, provider)
        for name, provider in dict.fromkeys([*entries, *_named_credentials(steps)])
        if provider not in ("", "keychain") or not reads_execution(playbook, name)
    ]


def _named_entries(playbook: Playbook, steps: Iterable[Step]) -> list[str]:
    """The entries of the keychain that expressions read by a constant name, as declared."""
    names = {path[1] for path in _keychain_reads(steps) if len(path) > 1}
    return [name for name in playbook.keychain if name in names]


def entries_in_use(playbook: Playbook, steps: Sequence[Step] | None = None) -> list[str]:
    """The entries that tasks of these steps name, or any, and what those read.

    All where a name is known only when a task runs.
    """
    steps = playbook.workflow if steps is None else steps
    tasks = [task for step in steps for task in step.tasks]
    if any(len(path) == 1 for path in _keychain_reads(steps)) or any(map(_names_at_run_time, tasks)):
        return list(playbook.keychain)
    names = {name for name, provider in _named_credentials(steps) if provider in ("", "keychain")}
    names.update(_named_entries(playbook, steps))
    return with_read_entries(playbook, [name for name in playbook.keychain if name in names])


def credential_uses(playbook: Playbook) -> Iterator[tuple[str, str, str]]:
    """The names that tasks may look up in the credential store, each with its step and its task."""
    for step in playbook.workflow:
        for task in step.tasks:
            alone = msgspec.structs.replace(
                playbook, workflow=(msgspec.structs.replace(step, tasks=(task,)),)
            )
            for name in sorted(stored_names(alone)):
                yield name, step.name, task.label


_NEVER_STORED = frozenset({"env", "vault", "secret_manager"})
"""Kinds of entries whose values never come from the credential store."""


def stored_names(playbook: Playbook, steps: Sequence[Step] | None = None) -> frozenset[str]:
    """The names that tasks of these steps, or any, may look up in the credential store, but computed ones."""
    steps = playbook.workflow if steps is None else steps
    entries = [playbook.keychain[name] for name in entries_in_use(playbook, steps)]
    declared = {_stored_name(entry) for entry in entries if entry.kind not in _NEVER_STORED}
    undeclared = {
        name
        for name, provider in _named_credentials(steps)
        if provider == "store" or (not provider and name not in playbook.keychain)
    }
    return frozenset(declared | undeclared)


def _stored_name(entry: KeychainEntry) -> str:
    name = entry.fields.get("credential") if entry.kind == "credential" else None
    return name if isinstance(name, str) else entry.name


def computes_names(playbook: Playbook, step: Step, steps: Sequence[Step]) -> bool:
    """Whether a task of the step, or an entry that the steps use, computes the name of a credential."""
    entries = (playbook.keychain[name] for name in entries_in_use(playbook, steps))
    return any(map(_names_at_run_time, step.tasks)) or any(
        entry.kind == "credential" and "credential" in entry.templates for entry in entries
    )


def _keychain_reads(steps: Iterable[Step]) -> Iterator[Path]:
    for step in steps:
        for expression in expressions_in(step.tasks):
            for use in expression.uses:
                if use.path[0] == "keychain":
                    yield use.path


def _names_at_run_time(task: Task) -> bool:
    """Whether a task computes the name of a credential."""
    if isinstance(task.inputs.get("auth"), Expression) or isinstance(_script_input(task, "auth"), Expression):
        return True
    inputs = [task.inputs.get(name) for name in ("name", "names", "provider")]
    return task.kind == "secrets" and any(isinstance(value, Expression | ListTemplate) for value in inputs)


def _named_credentials(steps: Iterable[Step]) -> Iterator[tuple[str, str]]:
    """The names that tasks give to `auth` and `secrets` by constants, each with its provider."""
    for step in steps:
        for task in step.tasks:
            for auth in (_constant_input(task, "auth"), _script_input(task, "auth")):
                if isinstance(auth, str):
                    yield auth, ""
            if task.kind == "secrets":
                provider = _constant_input(task, "provider")
                names = _constant_input(task, "names") or [_constant_input(task, "name")]
                if not {"name", "names"} & task.inputs.keys():
                    names = [task.label]
                for name in names if isinstance(names, list) else ():
                    if isinstance(name, str) and ("provider" not in task.inputs or isinstance(provider, str)):
                        yield name, str(provider or "")


def _constant_input(task: Task, name: str) -> Json:
    constant = task.inputs.get(name)
    return constant.value if isinstance(constant, Constant) else None


def _script_input(task: Task, name: str) -> Json | Template:
    """What a script says under this name of where it is fetched from; None if nothing."""
    value: Json | Template = task.inputs.get("script")
    for key in ("source", name):
        inner = value.value if isinstance(value, Constant) else value
        entries = inner.entries if isinstance(inner, MappingTemplate) else inner
        value = entries.get(key) if isinstance(entries, dict) else None
    return value.value if isinstance(value, Constant) else value


def uses_secrets(playbook: Playbook) -> bool:
    """Whether an execution of this playbook can come to know a secret by itself."""
    tasks = [task for step in playbook.workflow for task in step.tasks]
    return bool(playbook.keychain) or any(
        "auth" in task.inputs
        or "headers" in task.inputs
        or task.kind == "secrets"
        or "secret" in task.spec
        or any(_script_input(task, name) is not None for name in ("auth", "headers"))
        for task in tasks
    )
