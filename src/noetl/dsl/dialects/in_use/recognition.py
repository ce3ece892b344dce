"""Whether a `noetl.io/v2` document is written as the language is in use: what speaks for it, what against."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from noetl.dsl.dialects.nodes import text_value
from noetl.dsl.document.source import Located, Mapping, MappingEntry, Node, Scalar, Sequence

SCOPES = ("ctx.", "iter.", "run.")
"""How the keys of a canonical `set` begin."""

KEYCHAIN_SCOPES = frozenset({"global", "catalog", "local", "shared"})
KEYCHAIN_KINDS_IN_USE = frozenset({"secrets", "credential", "google_oauth", "google_id_token"})

_LITERAL = frozenset({"code", "document", "script", "desc"})
"""Keys of tasks that are taken as they stand."""

_WORDS = re.compile(
    r"""(?<![\w.'"])(?:
        (?P<output>output)\s*(?:\.\s*|\[\s*['"])(?:status|data|error|http|ref)\b
      | (?P<outcome>outcome|_prev)\b
    ) | ['"](?:(?P<call>call\.(?:done|error))|(?P<event>step\.(?:done|failed)))['"]""",
    re.VERBOSE,
)
_BRACES = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


class DialectMark(NamedTuple):
    """Something that only documents of one dialect have, and where it stands."""

    text: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"`{self.text}` in line {self.line}"


class Recognition(NamedTuple):
    """The marks of documents in use, and the counter-marks, of canonical ones; in document order."""

    marks: tuple[DialectMark, ...]
    counter_marks: tuple[DialectMark, ...]

    @property
    def is_in_use(self) -> bool:
        return bool(self.marks) and not self.counter_marks


def recognise(root: Mapping) -> Recognition:
    """What tells the dialects apart. Never raises, whatever the document holds."""
    walk = _Walk()
    walk.root(root)
    return Recognition(tuple(sorted(walk.marks, key=_position)), tuple(sorted(walk.counters, key=_position)))


def _position(mark: DialectMark) -> tuple[int, int]:
    return mark.line, mark.column


class _Walk:
    """Collects what is found on the way through a document."""

    def __init__(self) -> None:
        self.marks: list[DialectMark] = []
        self.counters: list[DialectMark] = []

    def mark(self, text: str, at: Located) -> None:
        self.marks.append(DialectMark(text, at.line, at.column))

    def counter(self, text: str, at: Located) -> None:
        self.counters.append(DialectMark(text, at.line, at.column))

    def root(self, root: Mapping) -> None:
        for entry in entries_of(root.get("executor")):
            if entry.key in ("profile", "version", "requires"):
                self.mark(f"executor.{entry.key}", entry)
            elif entry.key == "kind":
                self.counter("executor.kind", entry)
            else:
                self.expressions(entry.value)
        for item in items_of(root.get("keychain")):
            if isinstance(item, Mapping):
                self.keychain(item)
        for item in workbook_items(root.get("workbook")):
            if isinstance(item, Mapping):
                if isinstance(item.get("tool"), Mapping):
                    self.mark("workbook tool", item.entries["tool"])
                self.task(item)
        for item in items_of(root.get("workflow")):
            if isinstance(item, Mapping):
                self.step(item)

    def keychain(self, item: Mapping) -> None:
        kind = text_value(item.get("kind")) or text_value(item.get("type"))
        for entry in item:
            if (
                (entry.key == "scope" and text_value(entry.value) in KEYCHAIN_SCOPES)
                or entry.key == "map"
                or (entry.key == "type" and "kind" not in item)
            ):
                self.mark(f"keychain {entry.key}", entry)
            elif entry.key == "kind" and kind in KEYCHAIN_KINDS_IN_USE:
                self.mark(f"keychain kind {kind}", entry)
            elif entry.key == "endpoint" and kind == "oauth2":
                self.mark("keychain endpoint", entry)

    def step(self, step: Mapping) -> None:
        for entry in step:
            match entry.key:
                case "set":
                    self.assignments(entry)
                case "input" | "output":
                    self.mark(f"step {entry.key}", entry)
                    self.expressions(entry.value)
                case "args":
                    self.arguments(entry)
                case "tool":
                    for task in tasks_of(entry.value):
                        self.task(task)
                case "next":
                    self.router(entry.value)
                case "loop":
                    self.loop(entry.value)
                case "spec":
                    self.step_spec(entry.value)
                case _:
                    pass

    def loop(self, loop: Node) -> None:
        for entry in entries_of(loop):
            if entry.key == "cursor":
                self.mark("loop.cursor", entry)
            self.spec(entry.value) if entry.key == "spec" else self.expressions(entry.value)

    def step_spec(self, spec: Node) -> None:
        policy = spec.get("policy") if isinstance(spec, Mapping) else None
        if isinstance(policy, Mapping) and "join" in policy:
            self.counter("spec.policy.join", policy.entries["join"])
        self.spec(spec)

    def spec(self, spec: Node) -> None:
        """A spec with its rules; whatever else it holds may have expressions."""
        for entry in entries_of(spec):
            rules = entry.value.get("rules") if isinstance(entry.value, Mapping) else None
            if entry.key != "policy" or not isinstance(rules, Sequence):
                self.expressions(entry.value)
                continue
            for rule in rules.items:
                for part in entries_of(rule):
                    self.then(part.value) if part.key in ("then", "else") else self.expressions(part.value)

    def then(self, node: Node) -> None:
        for entry in entries_of(node):
            if entry.key == "then":
                self.then(entry.value)
                continue
            if entry.key == "set":
                self.assignments(entry)
            elif entry.key in ("set_ctx", "set_iter", "set_run", "set_prev"):
                self.counter(entry.key, entry)
            self.expressions(entry.value)

    def task(self, task: Mapping) -> None:
        for entry in task:
            if entry.key in _LITERAL:
                continue
            match entry.key:
                case "set":
                    self.assignments(entry)
                case "input":
                    self.mark("task input", entry)
                    self.expressions(entry.value)
                case "args":
                    self.arguments(entry)
                case "spec":
                    self.spec(entry.value)
                case _:
                    self.expressions(entry.value)

    def router(self, node: Node) -> None:
        for arc in items_of(node.get("arcs")) if isinstance(node, Mapping) else ():
            for entry in entries_of(arc):
                if entry.key == "args":
                    self.arguments(entry)
                else:
                    self.expressions(entry.value)

    def assignments(self, entry: MappingEntry) -> None:
        for write in entries_of(entry.value):
            if not write.key.startswith(SCOPES):
                self.mark(f"set {write.key}", write)
        self.expressions(entry.value)

    def arguments(self, entry: MappingEntry) -> None:
        if isinstance(entry.value, Mapping):
            self.counter("args", entry)
        self.expressions(entry.value)

    def expressions(self, node: Node) -> None:
        if isinstance(node, Scalar):
            text = node.value
            # Nearly no text is an expression with one of these words: the search decides that fast.
            if isinstance(text, str) and ("{{" in text or "{%" in text) and _WORDS.search(text):
                self.words(text, node)
        elif isinstance(node, Sequence):
            for item in node.items:
                self.expressions(item)
        else:
            for entry in node:
                self.expressions(entry.value)

    def words(self, text: str, at: Scalar) -> None:
        for braces in _BRACES.finditer(text):
            for word in _WORDS.finditer(braces[0]):
                name = word[word.lastgroup or 0]
                if word.lastgroup in ("output", "call"):
                    self.mark(" ".join(word[0].split()).strip("'\""), at)
                else:
                    self.counter(name, at)


def entries_of(node: Node | None) -> Iterator[MappingEntry]:
    """The entries of a mapping; none of anything else."""
    return iter(node) if isinstance(node, Mapping) else iter(())


def items_of(node: Node | None) -> list[Node]:
    """The items of a list; none of anything else."""
    return node.items if isinstance(node, Sequence) else []


def tasks_of(node: Node | None) -> Iterator[Mapping]:
    """The mappings with the keys of each task of a `tool`, whichever form they have."""
    for item in [node] if isinstance(node, Mapping) else items_of(node):
        if isinstance(item, Mapping):
            label = labelled_entry(item)
            yield label.value if label is not None and isinstance(label.value, Mapping) else item


def labelled_entry(task: Mapping) -> MappingEntry | None:
    """The entry of `- label: {…}`; None for a task of another form."""
    if "kind" in task or "name" in task or len(task.entries) != 1:
        return None
    entry = next(iter(task))
    return entry if isinstance(entry.value, Mapping) else None


def workbook_items(workbook: Node | None) -> list[Node]:
    """The definitions of a workbook: of a list, or of the list or mapping `tasks`."""
    tasks = workbook.get("tasks") if isinstance(workbook, Mapping) else workbook
    return [entry.value for entry in tasks] if isinstance(tasks, Mapping) else items_of(tasks)
