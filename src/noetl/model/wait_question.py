"""What a task that waits asks of a person, and whether an answer fits."""

from typing import Any

from msgspec import Struct

from noetl.model.reference import is_reference

LARGEST_SCHEMA = 32_768
"""Bytes of a schema, as JSON: it stands in the event of every wait."""


class WaitQuestion(Struct, frozen=True, omit_defaults=True):
    """`schema` is a JSON Schema, None for any answer. `assignee` names who may answer, if not all may."""

    title: str = ""
    description: str = ""
    schema: Any = None
    assignee: tuple[str, ...] = ()

    def refusal_of(self, by: str, *, is_admin: bool) -> str:
        """Why somebody may not answer; empty if they may."""
        if not self.assignee or is_admin or by in self.assignee:
            return ""
        return f"only {' or '.join(f'`{name}`' for name in self.assignee)} may answer, or an admin"

    def misfit_of(self, answer: Any) -> str:
        """What is wrong with an answer; empty if it fits."""
        if self.schema is None:
            return ""
        if is_reference(answer):
            return "the answer came before the question and is too large to be looked at"
        # Few waits have a schema, and the library takes a while to load.
        from jsonschema_rs import validator_for  # noqa: PLC0415 - see above

        for error in validator_for(self.schema, retriever=_retrieve_nothing).iter_errors(answer):
            location = "".join(
                f".{part}" if isinstance(part, str) else f"[{part}]" for part in error.instance_path
            )
            return f"{location.lstrip('.')}: {error.message}" if location else str(error.message)
        return ""


def problem_of_schema(schema: Any) -> str:
    """Why something is no JSON Schema; empty if it is one."""
    from jsonschema_rs import ValidationError, validator_for  # noqa: PLC0415 - as above

    try:
        validator_for(schema, retriever=_retrieve_nothing)
    except ValidationError as error:
        location = "/".join(map(str, error.instance_path))
        return f"{error.message} (at `{location}`)" if location else str(error.message)
    except ValueError as error:
        return str(error)
    return ""


def _retrieve_nothing(_address: str) -> Any:
    """Schemas of other places are not fetched: what an answer must fit stands in the playbook."""
    raise ValueError("a schema refers to nothing outside of itself")
