"""Keychain entries with expressions in them: what they read, and the request that they amount to."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from noetl.credentials.credential import Credential, FieldPath
from noetl.credentials.masker import leaves
from noetl.credentials.providers import CredentialRequest
from noetl.dsl.document.keychain_kinds import KEYCHAIN_KINDS
from noetl.dsl.document.playbook import KeychainEntry, Playbook, entry_reads
from noetl.expr.runtime.scope import Scope
from noetl.expr.template import Template, render, template_uses
from noetl.model.errors import ExpressionError
from noetl.model.json import Json
from noetl.model.reference import escape, unescape
from noetl.model.secret import MASK
from noetl.ports.credentials import CredentialError


class EntryInputs(NamedTuple):
    """What the entries of an execution are computed from; `secret` are keys of its workload with secrets."""

    workload: Mapping[str, Any]
    execution_id: str
    secret: frozenset[str] = frozenset()


def reads_execution(playbook: Playbook, name: str) -> bool:
    """Whether an entry reads more than other entries: it is another one in every execution."""
    entry = playbook.keychain.get(name)
    if entry is None or not entry.templates:
        return False
    own = any(use != "keychain" for use, *_ in _uses(entry))
    return own or any(reads_execution(playbook, read) for read in entry_reads(entry) if read != name)


def with_read_entries(playbook: Playbook, names: list[str]) -> list[str]:
    """These entries and all that they read, as declared."""
    needed = dict.fromkeys(names)
    waiting = list(names)
    for name in waiting:  # which grows meanwhile
        for read in entry_reads(playbook.keychain[name]):
            if read in playbook.keychain and read not in needed:
                needed[read] = None
                waiting.append(read)
    return [name for name in playbook.keychain if name in needed]


def workload_keys(playbook: Playbook, names: list[str]) -> set[str] | None:
    """The keys of the workload that these entries read; None if they read all of it."""
    paths = [path for name in names for path in _uses(playbook.keychain[name]) if path[0] != "keychain"]
    if any(path == ("workload",) for path in paths):
        return None
    return {path[1] if path[0] == "workload" else path[0] for path in paths}


def computed_request(
    entry: KeychainEntry, folder: str, others: Mapping[str, Credential], inputs: EntryInputs | None
) -> CredentialRequest:
    """What the entry asks for, with its expressions evaluated. Raises CredentialError.

    `others` are the entries that it reads. What is made of a secret is one: `derived` of the request.
    """
    fields: dict[str, Any] = dict(entry.fields)
    derived: list[Json] = []
    for field, template in entry.templates.items():
        secret = any(_reads_secret(use.path, others, inputs) for use in template_uses(template))
        fields[field] = _rendered_field(entry, field, template, _scope(others, inputs), secret=secret)
        if secret:
            derived += [leaf for _, leaf in leaves(fields[field])]
    # Those that they were made of, too: an error may quote a part of the whole.
    derived += [value for other in others.values() for _, value in other.secrets] if derived else []
    return CredentialRequest(entry.name, entry.kind, fields, folder, tuple(derived))


def _uses(entry: KeychainEntry) -> Iterator[tuple[str, ...]]:
    for template in entry.templates.values():
        for use in template_uses(template):
            yield use.path


def _reads_secret(
    path: tuple[str, ...], others: Mapping[str, Credential], inputs: EntryInputs | None
) -> bool:
    if path[0] != "keychain":
        secret = inputs.secret if inputs is not None else frozenset()
        return path[0] in secret or (
            path[0] == "workload" and ((not path[1:] and bool(secret)) or path[1] in secret)
        )
    field = path[2:]
    return any(_overlap(secret_path, field) for secret_path, _ in others[path[1]].secrets)


def _overlap(secret: FieldPath, read: tuple[str, ...]) -> bool:
    """Whether one of the two paths leads to something inside of the other."""
    return all(str(step) == other for step, other in zip(secret, read, strict=False))


def _scope(others: Mapping[str, Credential], inputs: EntryInputs | None) -> Scope:
    entries = {name: {**other.fields, "kind": other.kind} for name, other in others.items()}
    spaces: dict[str, Any] = {"keychain": escape(entries)}
    if inputs is not None:
        spaces |= {"workload": inputs.workload, "execution_id": inputs.execution_id}
    return Scope(spaces)


def _rendered_field(
    entry: KeychainEntry, field: str, template: Template, scope: Scope, *, secret: bool
) -> Any:
    try:
        value = unescape(render(template, scope))
    except ExpressionError as error:
        # What an expression says of a secret may be the secret, in whatever form: a filter quotes its input.
        reason = "its expression fails, and why cannot be told without a secret" if secret else error.message
        raise CredentialError(f"`{field}`: {reason}", error.hint) from None
    if (declared := KEYCHAIN_KINDS.get(entry.kind)) is not None:
        try:
            msgspec.convert({field: value}, declared)
        except msgspec.ValidationError:
            raise CredentialError(
                f"`{field}` came out as {_type_name(value)}", "most fields are texts"
            ) from None
    return value


def _type_name(value: object) -> str:
    names = {bool: "true or false", dict: "a mapping", list: "a list", int: "a number", float: "a number"}
    return names.get(type(value), "something else")


def mask_derived(error: CredentialError, derived: tuple[Json, ...]) -> CredentialError:
    """The error without the values of secrets, or what was made of them."""
    texts = sorted({str(value) for value in derived if isinstance(value, str | int | float)}, key=len)
    message, hint = str(error), error.hint
    for text in reversed(texts):
        message, hint = message.replace(text, MASK), hint.replace(text, MASK)
    return type(error)(message, hint, retryable=error.retryable)
