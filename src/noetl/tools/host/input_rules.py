"""What the inputs of several kinds have in common: types, and the rules that types cannot say."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Fault
from noetl.model.json import Json

Scalar: TypeAlias = str | int | float | bool


def input_text(value: Scalar) -> str:
    """The value as headers, forms and environments hold it: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


Size: TypeAlias = (
    Annotated[int, Meta(ge=1)]
    | Annotated[
        str, Meta(pattern=r"^[0-9]+ ?([KMGT]i?)?B?$", description="Bytes, such as `512MB` or `2 GiB`.")
    ]
)
"""Bytes, as a number or as text such as `512MB` or `2 GiB`."""

_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def byte_count(size: int | str) -> int:
    """The bytes that a `Size` says: `1KB` is 1000 of them, `1KiB` 1024."""
    if isinstance(size, int):
        return size
    digits = size.rstrip("KMGTiB ")
    unit = size[len(digits) :].strip().rstrip("B")
    factor: int = (1024 if unit.endswith("i") else 1000) ** _UNITS[unit.rstrip("i")]
    return int(digits) * factor


def private_copy(value: Any) -> Any:
    """A copy for code of others that runs in this process: what it changes there changes nothing else."""
    # Not `deepcopy`, which takes several times as long. A reference, a `dict` of another type, stays itself.
    if type(value) is dict:
        return {key: private_copy(item) for key, item in value.items()}
    return [private_copy(item) for item in value] if type(value) is list else value


Format: TypeAlias = Literal["json", "text", "bytes", "csv", "parquet"]

Inputs: TypeAlias = Mapping[str, Json]


def has_template(value: Json) -> bool:
    """Whether the value is known only when the task runs.

    By the signs alone: what an expression really is only `expr` knows, which kinds need not load.
    """
    return isinstance(value, str) and ("{{" in value or "{%" in value)


def literal_text(value: Json) -> str | None:
    """The text of an input that holds no expression; None for anything else."""
    return value if isinstance(value, str) and not has_template(value) else None


def present_names(inputs: Inputs, *names: str) -> list[str]:
    """Those of the names that have a value, in the order asked."""
    return [name for name in names if inputs.get(name) is not None]


def name_phrase(names: tuple[str, ...], word: str) -> str:
    """The names as a phrase: `a`, `b` or `c`."""
    *head, last = [f"`{name}`" for name in names]
    return f"{', '.join(head)} {word} {last}" if head else last


def at_most_one(inputs: Inputs, *names: str, hint: str = "") -> Iterator[Fault]:
    """A fault at the second of the names, if more than one is given."""
    present = present_names(inputs, *names)
    if len(present) > 1:
        yield Fault(f"`{present[1]}` cannot stand beside `{present[0]}`", key=present[1], hint=hint)


def exactly_one(inputs: Inputs, *names: str, hint: str = "") -> Iterator[Fault]:
    """A fault unless one, and only one, of the names is given."""
    if not present_names(inputs, *names):
        yield Fault(f"{name_phrase(names, 'or')} is missing", hint=hint)
    yield from at_most_one(inputs, *names, hint=hint)


class Action(Struct, frozen=True):
    """What one `action` asks for: one input of each group in `needs`, and whatever it `takes`."""

    needs: tuple[tuple[str, ...], ...] = ()
    takes: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        """Every input it can use."""
        return {*self.takes, *(name for group in self.needs for name in group)}


def check_action(actions: Mapping[str, Action], inputs: Inputs) -> Iterator[Fault]:
    """Faults for inputs that the chosen action lacks or has no use for; none while it is unknown."""
    verb = literal_text(inputs.get("action"))
    if verb is None or verb not in actions:
        return
    action = actions[verb]
    for group in action.needs:
        yield from exactly_one(inputs, *group, hint=f"`action: {verb}` needs {name_phrase(group, 'or')}")
    for name in sorted(set().union(*(known.names for known in actions.values())) - action.names):
        if inputs.get(name) is not None:
            users = tuple(user for user in actions if name in actions[user].names)
            yield Fault(
                f"`{name}` means nothing to `action: {verb}`",
                key=name,
                hint=f"it belongs to the action {name_phrase(users, 'or')}",
            )
