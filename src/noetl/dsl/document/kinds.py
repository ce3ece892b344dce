"""The registry of tool kinds: the one door for built-ins and plugins.

A kind declares its inputs and its `spec` knobs as msgspec Structs. The same Structs check the
document, give the JSON Schema and its descriptions, and convert the rendered values at run time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from noetl.model.errors import NoetlError
from noetl.model.json import Json

Code: TypeAlias = Annotated[str, Meta(extra={"literal": True})]
"""Text in another language: taken as it stands, never rendered."""

Document: TypeAlias = Annotated[dict[str, Any], Meta(extra={"document": True})]
"""A whole playbook inside a task: taken as it stands and checked like any other."""

Sql: TypeAlias = Annotated[str, Meta(extra={"sql": True})]
"""SQL text: rendered, and an expression pasted into it is warned about."""

Auth: TypeAlias = Annotated[
    str | dict[str, Any],
    Meta(description="Name of a `keychain` entry or stored credential, or a mapping.", extra={"auth": True}),
]

Seconds: TypeAlias = Annotated[float, Meta(ge=0)]


class SelectionShape(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part of a result to keep beside its reference."""

    path: Annotated[str, Meta(description="JSONPath into the result, for example `$.data.total`.")]
    as_: Annotated[str | None, Meta(description="Its key under `extracted`.")] = field(
        default=None, name="as"
    )


class ResultSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a result is kept."""

    inline_max_bytes: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Larger results leave the event log. Default 65536."),
    ] = None
    store: Annotated[str | None, Meta(description="`auto` or the name of a result store.")] = None
    select: Annotated[
        list[str | SelectionShape] | None,
        Meta(description="Parts to keep at hand when the body is stored elsewhere."),
    ] = None
    preview_max_bytes: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Size of the preview kept in the event.")
    ] = None
    ttl: Annotated[
        Seconds | None, Meta(description="Seconds after the execution's end until the body may be dropped.")
    ] = None
    scope: Annotated[
        Literal["step", "execution", "permanent"] | None, Meta(description="How long the body lives.")
    ] = None
    compression: Annotated[
        Literal["none", "gzip", "zstd"] | None, Meta(description="How the body is packed.")
    ] = None


class TaskSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The knobs every kind has; a kind's own `spec` extends this. `policy` is read apart."""

    timeout: Annotated[Seconds | None, Meta(description="Seconds one attempt may take.")] = None
    task_timeout: Annotated[
        Seconds | None,
        Meta(description="As `timeout`, but inherited by all tasks in its scope. Default 300."),
    ] = None
    result: Annotated[ResultSpec | None, Meta(description="How the result is kept.")] = None
    secret: Annotated[list[str] | None, Meta(description="Paths of the result that are masked.")] = None
    idempotency: Annotated[
        Literal["per_visit", "per_attempt"] | None,
        Meta(description="Whether a retry keeps the idempotency key (default) or gets a new one."),
    ] = None
    pool: Annotated[str | None, Meta(description="The worker pool that runs it.")] = None
    max_transitions: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Most task transitions in one pipeline. Default 100000."),
    ] = None


class NoInputs(Struct, frozen=True, forbid_unknown_fields=True):
    """For kinds that take nothing but `args`."""


class Fault(Struct, frozen=True):
    """Something wrong with a task's inputs that types cannot say.

    `key` is the input it stands at; `line` counts from 1 inside that input's text, 0 is all of it.
    """

    message: str
    key: str | None = None
    hint: str = ""
    line: int = 0


Spelling: TypeAlias = str | Callable[[Json], str]

READABLE = frozenset({"args", "_prev"})
"""What a task has beside its own inputs."""


class Kind(Struct, frozen=True, kw_only=True):
    """A tool kind as documents see it.

    `spellings` gives the canonical name of an input spelt otherwise; where it depends on the value, a
    function of the value. `check(inputs, spec)` gets plain values, expressions still as text. For readers:
    what the `result` is, what the `helpers` are that policies see as `outcome.NAME`, and an `example` of
    a task in YAML.
    """

    name: str
    summary: str
    result: str = ""
    helpers: Mapping[str, str] = {}
    example: str = ""
    inputs: type[Struct] = NoInputs
    spec: type[TaskSpec] = TaskSpec
    effect: Literal["pure", "write"] = "write"
    defaults: Mapping[str, Json] = {}
    spellings: Mapping[str, Spelling] = {}
    check: Callable[[Mapping[str, Json], Mapping[str, Json]], Iterable[Fault]] | None = None
    reads_labels: Callable[[Mapping[str, Json]], Iterable[str]] | None = None
    """Names in the inputs that may be labels of tasks or steps.

    What those that are have given comes to the tool as the input `labels`, by the name as it is written.
    """
    repeatable: Callable[[Mapping[str, Json]], bool] | None = None
    """Of the inputs of a task that writes in general: whether this one changes nothing outside of itself.

    It may then begin before that is recorded: if all is lost, nobody notices that it began again.
    """
    threaded: bool = False
    """Whether its tool runs in a thread of its own, so that even a pure one has to be waited for."""
    extra: str = ""
    """The extra of this package that installs its driver; empty if it needs none."""
    takes_references: frozenset[str] = frozenset()
    """Inputs in which large values stay references (`Stored`), to be read with `call.objects`.

    `args` among them stands for `call.args`, too, and `_prev` for `call.prev`. What is not named here
    comes whole, and so do parts of stored values and lists in chunks everywhere.
    """
    reads: frozenset[str] = READABLE
    """Which of `call.args` and `call.prev` (`_prev`) its tool looks at. Others are empty, never fetched."""
    implementation: str | Callable[[], Any] | None = None
    """What makes the tool that runs it (`ports.tool`), which keeps all that a tool promises.

    Text is `module:name`, imported on first use. None: it is a document's word only.
    """


class KindTaken(NoetlError):
    """Two different kinds claim one name."""


class Kinds:
    """The kinds a document may use. `allowed` names are accepted without being known (000 §13)."""

    def __init__(self, kinds: Iterable[Kind] = (), *, allowed: Iterable[str] = ()) -> None:
        self._kinds: dict[str, Kind] = {}
        self.allowed = frozenset(allowed)
        for kind in kinds:
            self.register(kind)

    def register(self, kind: Kind) -> None:
        """Adds a kind. Registering the same one again changes nothing; another of that name raises."""
        known = self._kinds.setdefault(kind.name, kind)
        if known is not kind:
            raise KindTaken(f"the tool kind `{kind.name}` is registered twice")

    def get(self, name: str) -> Kind | None:
        return self._kinds.get(name)

    def with_allowed(self, names: Iterable[str]) -> "Kinds":
        """A copy that also accepts these unknown names."""
        return Kinds(self._kinds.values(), allowed=self.allowed | frozenset(names))

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    @property
    def names(self) -> list[str]:
        return sorted(self._kinds)
