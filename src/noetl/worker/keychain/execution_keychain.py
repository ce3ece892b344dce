"""The secrets of one execution: for the kernel, for its tools, and out of all that is written."""

import contextlib
import secrets
import string
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from msgspec import structs

from noetl.credentials.computed_entry import EntryInputs, reads_execution, workload_keys
from noetl.credentials.credential import (
    Credential,
    credential_field,
    mark_fields,
    replace_at_field_path,
    secrets_of,
    value_at_field_path,
)
from noetl.credentials.masker import Masker
from noetl.credentials.providers import CredentialRequest
from noetl.credentials.resolver import (
    CredentialResolver,
    entries_in_use,
    unavailable_message,
)
from noetl.dsl.document.selection import Selection
from noetl.kernel.pipeline.moves import RunTask
from noetl.kernel.pipeline.task_inputs import Secrets
from noetl.kernel.references.resolve import secret_keys_in, substitute_fetched
from noetl.model.outcome import ErrorInfo, Outcome, ToolError, failed
from noetl.model.reference import encode_value
from noetl.model.secret import (
    MASK,
    SecretLost,
    SecretOrigin,
    form_pairs,
    lost_part,
    origin_of_key,
    secret_marker,
    secret_text,
    secret_text_marker,
    secrets_in,
)
from noetl.ports.credentials import CredentialError, FoundCredential
from noetl.ports.ledger import Ledger
from noetl.ports.store import StoreError
from noetl.system import SYSTEM
from noetl.worker.keychain.keychain_views import (
    DecoyValues,
    FetchFailures,
    MaskedValues,
    RevealedValues,
    SecretMemory,
    SecretValues,
)

LARGEST = 65_536
"""Bytes of a value with secrets in it, as JSON, that is held in memory where it cannot be made again."""
MOST_DECOYS = 1_000
"""Texts that take the place of secrets, at a time; what is made of a secret without one is masked whole."""
HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "set-cookie"})
"""Headers that are never recorded."""

_TOKEN_KINDS = ("google_id_token", "oauth2")
"""Kinds whose values are asked for anew when a server does not take them any more."""


class Keychain:
    """Made when an execution first needs one. Nothing of it runs before `open` is done."""

    def __init__(self, ledger: Ledger, resolver: CredentialResolver, memory: SecretMemory) -> None:
        self._ledger = ledger
        self._resolver = resolver
        self._memory = memory
        self._entries: dict[str, CredentialRequest] = {}
        self._known: dict[SecretOrigin, Credential] = {}
        self._warnings: list[str] = []
        self._decoys: dict[Any, str] = {}
        self._inputs: EntryInputs | None = None
        self._kept_origins: dict[SecretOrigin, SecretOrigin] = {}
        self.masker = Masker(self._hold_value)
        self.failures = FetchFailures(SYSTEM.monotonic)
        self.requested_keys: set[str] = set()
        """The keys of secrets in the log that were needed so far."""
        self.opened = False
        self.secrets = Secrets(
            SecretValues(self),
            MaskedValues(self),
            decoys=DecoyValues(self),
            disguise=self.disguise,
            revealed=RevealedValues(self),
            failures=self.failures,
            mask=self._mask_inputs,
            mask_message=self._mask_message,
        )

    @property
    def names(self) -> Mapping[str, Any]:
        """The entries that the playbook declares."""
        return self._ledger.playbook.keychain

    async def open(self, workload: Mapping[str, Any]) -> None:
        """Knows all that tasks may use, so that it is masked; what cannot be had is told when it is used."""
        if not self.opened:
            names = entries_in_use(self._ledger.playbook)
            self._inputs = await self._entry_inputs(names, workload)
            for name in names:
                await self.fetch((self.key_of(name),))
            self.opened = True

    async def _entry_inputs(self, names: list[str], workload: Mapping[str, Any]) -> EntryInputs:
        """What entries are computed from: the workload, with the secrets in it that they read."""
        read = workload_keys(self._ledger.playbook, names)
        secret = {
            key
            for key, value in workload.items()
            if (read is None or key in read) and next(secrets_in(value), None) is not None
        }
        if secret:
            with contextlib.suppress(
                SecretLost
            ):  # what cannot be had again stays hidden, and says so when read
                await self.fetch(tuple(secret_keys_in({key: workload[key] for key in secret})))
            workload = {
                key: substitute_fetched(value, self.secrets.revealed, set()) if key in secret else value
                for key, value in workload.items()
            }
        return EntryInputs(workload, self._ledger.execution_id, frozenset(secret))

    def key_of(self, name: str) -> str:
        """Under which a declared entry is asked for."""
        return SecretOrigin(name, playbook=self._ledger.playbook.hash).key

    async def fetch(self, keys: tuple[str, ...]) -> None:
        """Has these secrets at hand, or knows why not."""
        for key in keys:
            logged = origin_of_key(key)
            requested = self._declared_origin(logged)
            origin = structs.replace(requested, path=())
            if logged.path or logged.execution:
                self.requested_keys.add(key)
            if origin.execution:
                await self._unseal(key, origin)
                continue
            try:
                entry = self._entries[origin.key] = await self._entry(origin)
                credential = await self._resolver.resolve(entry)
                self._remember(credential, origin)
                credential_field(credential.fields, requested.path)
            except KeyError:
                self.failures.add(
                    key, f"the credential `{origin.name}` has no `{requested.path[-1]}` any more"
                )
            except CredentialError as error:
                self.failures.add(key, self.masker.mask_text(unavailable_message(origin.name, error)))
            except StoreError as error:
                self.failures.add(key, f"the credential `{origin.name}` cannot be had: {error}")

    async def _unseal(self, key: str, origin: SecretOrigin) -> None:
        """Has at hand what a task marked secret, here or in another process, or knows why not."""
        if origin.key in self._memory:
            return
        try:
            value = await self._ledger.sealed_value(origin)
        except CredentialError as error:
            self.failures.add(key, str(error))
            return
        self._memory.remember(value, origin)
        self.masker.learn(value, origin)

    def cached(self, origin: SecretOrigin) -> Credential | None:
        """The credential of an origin, if nobody has to be asked."""
        credential_origin = structs.replace(self._declared_origin(origin), path=())
        entry = self._entries.get(credential_origin.key)
        playbook = self._ledger.playbook
        if (
            entry is not None
            and origin.playbook == playbook.hash
            and playbook.keychain[origin.name].templates
        ):
            # Computed again: an entry that it reads may have another value by now, a new token for example.
            folder = str(self._ledger.folder)
            entry = self._resolver.request_at_hand(playbook, folder, origin.name, self._inputs)
        credential = self._resolver.cached(entry) if entry is not None else None
        if credential is not None:
            self._remember(credential, credential_origin)
        return credential

    def marker_origin(self, origin: SecretOrigin) -> SecretOrigin:
        """What the log says of where a credential comes from."""
        return self._kept_origins.get(origin, origin)

    def _declared_origin(self, origin: SecretOrigin) -> SecretOrigin:
        """The origin of an entry of this execution as its playbook declares it: it can be computed again."""
        ledger = self._ledger
        if (origin.playbook, origin.execution) != (ledger.playbook.hash, ledger.execution_id):
            return origin
        return SecretOrigin(origin.name, origin.path, origin.playbook)

    def last_known(self, name: str) -> Credential | None:
        """What a declared entry was when it was last had."""
        return self._known.get(SecretOrigin(name, playbook=self._ledger.playbook.hash))

    def reveal(self, key: str) -> Any:
        """The value of a secret. Raises KeyError if it is not at hand."""
        origin = self._declared_origin(origin_of_key(key))
        if origin.execution:
            return self._memory[key]
        credential = self.cached(origin)
        if credential is None:
            raise KeyError(key)
        self.failures.forget(key)
        return credential_field(credential.fields, origin.path)

    async def find(self, name: str, provider: str = "") -> FoundCredential:
        """See `noetl.ports.credentials.Lookup`."""
        try:
            credential, origin = await self._credential_named(name, provider)
        except CredentialError as error:
            raise ToolError(
                "credential", unavailable_message(name, error), retryable=error.retryable
            ) from None
        markers = mark_fields(credential, self.marker_origin(origin))
        return FoundCredential(credential.fields, markers, credential.kind)

    async def resolve_auth(
        self, inputs: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], CredentialRequest | None]:
        """The inputs with their `auth` as a mapping, and what was asked for a token, if so.

        Raises CredentialError.
        """
        part = _auth_part(inputs)
        auth, token_request = await self._auth_of(part.get("auth"))
        return (
            inputs if auth is part.get("auth") else _with_auth_part(inputs, {**part, "auth": auth})
        ), token_request

    async def _auth_of(self, auth: Any) -> tuple[Any, CredentialRequest | None]:
        if isinstance(auth, str):
            try:
                credential, origin = await self._credential_named(auth)
            except CredentialError as error:
                raise CredentialError(unavailable_message(auth, error), retryable=error.retryable) from None
            token_request = self._entries[origin.key] if credential.kind in _TOKEN_KINDS else None
            return credential.auth_fields, token_request
        if isinstance(auth, Mapping) and _wants_token(auth):
            fields = {name: value for name, value in auth.items() if name not in ("kind", "type")}
            entry = CredentialRequest("auth", "oauth2", fields, str(self._ledger.folder))
            credential = await self._resolver.resolve(entry)
            self._mask_fields(credential.fields, "auth")
            return credential.auth_fields, entry
        return auth, None

    def forget_token(self, entry: CredentialRequest) -> None:
        """A token was not accepted: the next attempt gets a new one."""
        self._resolver.invalidate(entry)

    def mask_outcome(self, move: RunTask, outcome: Outcome) -> Outcome:
        """The outcome as it may be written and as expressions see it."""
        if (paths := move.spec.get("secret")) and outcome.result is not None:
            try:
                result = self._hide_paths(outcome.result, paths, move.task.label)
            except ValueError as error:
                message = f"`spec.secret` holds what is no path: {error}"
                return failed(ErrorInfo(kind="input", message=self.masker.mask_text(message)))
            outcome = structs.replace(outcome, result=result)
        masker = self.masker
        if masker.empty:
            return outcome
        helpers = masker.mask_value if outcome.status == "ok" else masker.mask_for_display
        warnings, self._warnings = self._warnings, []
        meta = masker.mask_for_display(outcome.meta)
        return structs.replace(
            outcome,
            result=masker.mask_value(outcome.result),
            error=_mask_error(outcome.error, masker),
            meta={**meta, "warnings": [*meta.get("warnings", []), *warnings]} if warnings else meta,
            helpers=helpers(outcome.helpers),
        )

    def decoy_of(self, value: Any) -> str:
        """A text that takes the place of a secret, always the same, as long where that is long enough."""
        decoy = self._decoys.get(value)
        if decoy is None:
            if len(self._decoys) >= MOST_DECOYS:
                del self._decoys[next(iter(self._decoys))]
            decoy = self._decoys[value] = _random_text(max(len(secret_text(value)), 16))
        return decoy

    def disguise(self, value: Any) -> Any:
        """The value of a secret with decoys for all that is in it."""
        if isinstance(value, dict):
            return {name: self.disguise(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.disguise(item) for item in value]
        return value if value is None or isinstance(value, bool) else self.decoy_of(value)

    def _mask_message(self, message: str, decoy_message: str | None) -> str:
        """A message without secrets, and without what an expression made of them."""
        original = str(self._undo_decoys(decoy_message)) if decoy_message is not None else message
        if original != message:
            start = _common_prefix(message, original)
            end = _common_prefix(message[:start:-1], original[:start:-1])
            message = message[:start] + MASK + message[len(message) - end :]
        return self.masker.mask_excerpt(message)

    def _undo_decoys(self, text: str) -> Any:
        """The text, or the secret, of which this was made with decoys in place of secrets."""
        for secret, decoy in self._decoys.items():
            if text == decoy:
                return secret
            for decoy_form in form_pairs(secret_text(secret), decoy):
                text = text.replace(*decoy_form)
        return text

    def _mask_inputs(self, inputs: dict[str, Any], decoy_inputs: dict[str, Any] | None) -> dict[str, Any]:
        """What a tool gets, as it is recorded."""
        if decoy_inputs is not None:
            inputs = {
                name: self._mask_derived(value, decoy_inputs.get(name), name)
                for name, value in inputs.items()
            }
        part = _auth_part(inputs)
        auth, headers = part.get("auth"), part.get("headers")
        if isinstance(auth, Mapping):
            self._mask_fields(auth, "auth")
        if isinstance(headers, Mapping) and any(name.lower() in HEADERS for name in headers):
            hidden = dict(secret_text_marker([lost_part()]))
            recorded_headers = {
                name: hidden if name.lower() in HEADERS else value for name, value in headers.items()
            }
            inputs = _with_auth_part(inputs, {**part, "headers": recorded_headers})
        recorded: dict[str, Any] = self.masker.mask_recorded(inputs)
        return recorded

    def _mask_derived(self, value: Any, decoy: Any, name: str) -> Any:
        """An input with what was made from secrets, and is not one, masked as one.

        `decoy` is the same input rendered with decoys: where undoing them does not give the input itself, an
        expression computed something of a secret (a hash, a part), which no pattern could find in it.
        """
        if isinstance(value, dict) and isinstance(decoy, dict):
            return {key: self._mask_derived(item, decoy.get(key), name) for key, item in value.items()}
        if isinstance(value, list) and isinstance(decoy, list) and len(value) == len(decoy):
            return [self._mask_derived(*pair, name) for pair in zip(value, decoy, strict=True)]
        if isinstance(decoy, str):
            decoy = self._undo_decoys(decoy)
        if value == decoy:
            return value
        origin = self._memory.keep(value, SecretOrigin(name, execution=self._ledger.execution_id))
        self.masker.learn(value, origin)
        return secret_marker(origin)

    async def _entry(self, origin: SecretOrigin) -> CredentialRequest:
        ledger = self._ledger
        playbook, folder = ledger.playbook, ledger.folder
        if origin.playbook and origin.playbook != playbook.hash:
            playbook, folder = await ledger.playbook_of(origin.playbook)
        provider = "keychain" if origin.playbook else origin.provider
        inputs = self._inputs if playbook is ledger.playbook else None
        return await self._resolver.request(playbook, str(folder), origin.name, provider, inputs)

    async def _credential_named(self, name: str, provider: str = "") -> tuple[Credential, SecretOrigin]:
        """A credential by its name. Raises CredentialError."""
        ours = provider in ("", "keychain") and name in self.names
        playbook = self._ledger.playbook.hash if ours else ""
        origin = SecretOrigin(name, playbook=playbook, provider="" if ours else provider or "store")
        entry = self._entries[origin.key] = await self._entry(origin)
        credential = await self._resolver.resolve(entry)
        self._remember(credential, origin)
        return credential, origin

    def _remember(self, credential: Credential, origin: SecretOrigin) -> None:
        if self._known.get(origin) is credential:
            return
        self._known[origin] = credential
        playbook = self._ledger.playbook
        if origin.playbook == playbook.hash and reads_execution(playbook, origin.name):
            # Another execution, a child for example, cannot compute it: it gets the value from who knows it.
            own_origin = structs.replace(origin, execution=self._ledger.execution_id)
            self._kept_origins[origin] = self._memory.keep(dict(credential.fields), own_origin)
        marked = self.marker_origin(origin)
        for path, value in credential.secrets:
            if not self.masker.add(value, structs.replace(marked, path=path)):
                field = ".".join(map(str, path))
                reason = "is so short that it is masked only where it is a whole value"
                self._warnings.append(f"`{field}` of the credential `{origin.name}` {reason}")

    def _mask_fields(self, fields: Mapping[str, Any], name: str) -> None:
        """Masks the secrets of a credential that stands in the inputs of a task."""
        new = [(path, value) for path, value in secrets_of(fields) if not self.masker.knows(value)]
        if new:
            origin = self._memory.keep(dict(fields), SecretOrigin(name, execution=self._ledger.execution_id))
            for path, value in new:
                self.masker.add(value, structs.replace(origin, path=path))

    def _hold_value(self, value: Any) -> SecretOrigin | None:
        """Where a value with secrets in it can be had again; None if it is too large to be held."""
        if len(encode_value(value)) > LARGEST:
            return None
        return self._memory.keep(value, SecretOrigin("text", execution=self._ledger.execution_id))

    def _hide_paths(self, result: Any, paths: Any, name: str) -> Any:
        """The result with what stands at these paths masked, and known in memory only."""
        locations = {at for path in paths for at in Selection(str(path)).find_locations(result)}
        hidden: set[tuple[str | int, ...]] = set()
        # The outer ones first: what is inside of a hidden value is hidden with it.
        for location in sorted(locations, key=len):
            if any(location[:length] in hidden for length in range(len(location))):
                continue
            hidden.add(location)
            value = value_at_field_path(result, location)
            origin = self._memory.keep(value, SecretOrigin(name, execution=self._ledger.execution_id))
            self.masker.learn(value, origin)
            result = replace_at_field_path(result, location, secret_marker(origin))
        return result


def _auth_part(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where `auth` and `headers` stand: in the source of a script, else in the inputs themselves."""
    script = inputs.get("script")
    source = script.get("source") if isinstance(script, Mapping) else None
    return source if isinstance(source, Mapping) else inputs


def _with_auth_part(inputs: Mapping[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """The inputs with another such part."""
    if _auth_part(inputs) is inputs:
        return part
    return {**inputs, "script": {**inputs["script"], "source": part}}


def _common_prefix(first: str, second: str) -> int:
    """How many characters both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _random_text(length: int) -> str:
    return "".join(secrets.choice(string.ascii_lowercase) for _ in range(length))


def _mask_error(error: ErrorInfo | None, masker: Masker) -> ErrorInfo | None:
    if error is None:
        return None
    return structs.replace(
        error, message=masker.mask_excerpt(error.message), details=masker.mask_for_display(error.details)
    )


def _wants_token(auth: Mapping[str, Any]) -> bool:
    return "oauth2" in (auth.get("type"), auth.get("kind")) and not auth.get("access_token")
