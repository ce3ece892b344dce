"""Credentials at hand: each is asked for once, and again when it is old."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from noetl.credentials.credential import Credential
from noetl.credentials.providers import CredentialRequest, Providers
from noetl.dsl.document.playbook import Playbook, Task
from noetl.expr import Constant, MappingTemplate, Template
from noetl.model import Json
from noetl.model.outcome import ErrorInfo
from noetl.ports.credentials import CredentialError

FRESH_SECONDS = 60.0
"""Seconds after which a value is asked for again, unless it says itself how long it lasts."""
SOON = 1.0
"""Seconds that every value is good for: it was asked for to be used at once."""
AGAIN = 5.0
"""Seconds after which who could not answer is asked again."""
ROOM = 1_000


class _Kept(NamedTuple):
    credential: Credential
    until: float


class CredentialResolver:
    """For all executions of a worker. Many who want the same at the same time share one question."""

    def __init__(self, providers: Providers, clock: Callable[[], float] = time.monotonic) -> None:
        self._providers = providers
        self._clock = clock
        self._kept: dict[bytes, _Kept] = {}
        self._asked: dict[bytes, asyncio.Task[Credential]] = {}

    def cached(self, entry: CredentialRequest) -> Credential | None:
        """Without asking anybody; None if it is not known or old."""
        kept = self._kept.get(_key(entry))
        return kept.credential if kept is not None and self._clock() < kept.until else None

    async def resolve(self, entry: CredentialRequest) -> Credential:
        """Where it cannot be had now, an older value that still counts does. Raises CredentialError."""
        if (known := self.cached(entry)) is not None:
            return known
        key = _key(entry)
        if (task := self._asked.get(key)) is None:
            task = self._asked[key] = asyncio.get_running_loop().create_task(self._ask(entry, key))
            task.add_done_callback(lambda done: self._answered(key, done))
        try:
            return await asyncio.shield(task)
        except CredentialError as error:
            old = self._kept.get(key)
            if error.retryable and old is not None and old.credential.lifetime is None:
                self._kept[key] = _Kept(old.credential, self._clock() + AGAIN)
                return old.credential
            raise

    def invalidate(self, entry: CredentialRequest) -> None:
        """The value was refused: the next one who wants it gets a new one."""
        self._kept.pop(_key(entry), None)

    async def close(self) -> None:
        """Ends what is under way."""
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _answered(self, key: bytes, task: asyncio.Task[Credential]) -> None:
        self._asked.pop(key, None)
        if not task.cancelled():
            task.exception()  # who asked may be gone: nobody else shall miss it

    async def _ask(self, entry: CredentialRequest, key: bytes) -> Credential:
        try:
            found = await self._providers.resolve(entry)
        except CredentialError:
            raise
        except Exception as error:  # noqa: BLE001 -- clients of others raise anything, and tell what they sent
            raise CredentialError(f"it could not be looked up: {type(error).__name__}") from None
        lasts = FRESH_SECONDS if found.lifetime is None else max(found.lifetime, SOON)
        self._kept[key] = _Kept(found, self._clock() + lasts)
        while len(self._kept) > ROOM:
            self._kept.pop(next(iter(self._kept)))
        return found

    async def preflight(self, playbook: Playbook, folder: str) -> ErrorInfo | None:
        """Why an execution of this playbook cannot begin: a credential that it uses cannot be had."""
        wanted = dict.fromkeys([*((name, "") for name in playbook.keychain), *named_credentials(playbook)])
        found = await asyncio.gather(*(self._reason(playbook, folder, *one) for one in wanted))
        reasons = {name: reason for (name, _), reason in zip(wanted, found, strict=True) if reason}
        if not reasons:
            return None
        return ErrorInfo(
            kind="credential", message="; ".join(reasons.values()), details={"credentials": list(reasons)}
        )

    async def _reason(self, playbook: Playbook, folder: str, name: str, provider: str) -> str:
        """Why a credential cannot be had; nothing if it can."""
        try:
            await self.resolve(credential_request(playbook, folder, name, provider))
        except CredentialError as error:
            return unavailable_message(name, error)
        return ""


def unavailable_message(name: str, error: CredentialError) -> str:
    """Why a credential cannot be had, in one sentence."""
    return f"the credential `{name}` cannot be had: {error}" + (f" ({error.hint})" if error.hint else "")


def _key(entry: CredentialRequest) -> bytes:
    return msgspec.json.encode(entry)


PROVIDERS = ("keychain", "store", "env", "file", "vault")
"""Where a name that a task gives is looked up; without one, in the first two."""


def credential_request(playbook: Playbook, folder: str, name: str, provider: str = "") -> CredentialRequest:
    """What a name asks for. Raises CredentialError."""
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


def named_credentials(playbook: Playbook) -> Iterator[tuple[str, str]]:
    """The names that tasks give to `auth` and `secrets` by constants, each with its provider."""
    for step in playbook.workflow:
        for task in step.tasks:
            for auth in (_constant(task, "auth"), _of_script(task, "auth")):
                if isinstance(auth, str):
                    yield auth, ""
            if task.kind == "secrets":
                provider = _constant(task, "provider")
                names = _constant(task, "names") or [_constant(task, "name")]
                if not {"name", "names"} & task.inputs.keys():
                    names = [task.label]
                for name in names if isinstance(names, list) else ():
                    if isinstance(name, str) and ("provider" not in task.inputs or isinstance(provider, str)):
                        yield name, str(provider or "")


def _constant(task: Task, name: str) -> Json:
    found = task.inputs.get(name)
    return found.value if isinstance(found, Constant) else None


def _of_script(task: Task, name: str) -> Json | Template:
    """What a script says under this name of where it is fetched from; None if nothing."""
    found: Json | Template = task.inputs.get("script")
    for key in ("source", name):
        inner = found.value if isinstance(found, Constant) else found
        entries = inner.entries if isinstance(inner, MappingTemplate) else inner
        found = entries.get(key) if isinstance(entries, dict) else None
    return found.value if isinstance(found, Constant) else found


def uses_secrets(playbook: Playbook) -> bool:
    """Whether an execution of this playbook can come to know a secret by itself."""
    tasks = [task for step in playbook.workflow for task in step.tasks]
    return bool(playbook.keychain) or any(
        "auth" in task.inputs
        or "headers" in task.inputs
        or task.kind == "secrets"
        or "secret" in task.spec
        or any(_of_script(task, name) is not None for name in ("auth", "headers"))
        for task in tasks
    )
