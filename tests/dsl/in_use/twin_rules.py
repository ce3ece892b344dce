"""Policies and names of tasks in two spellings: canonical, and as the language is in use."""

from random import Random
from typing import Any, NamedTuple

from tests.dsl.in_use.twin_reads import SQL, TwinStep, rule_reads
from tests.dsl.in_use.twin_tasks import Twin

_ERROR = "{{ outcome.status == 'error' }}"
_OK = "{{ outcome.status == 'ok' }}"
_SET = "task `set: {x: …}`"
_KINDS = {
    "rate_limit": "outcome.http.status == 429",
    "auth": "outcome.http.status in [401, 403]",
    "server_error": "outcome.http.status >= 500",
    "timeout": "outcome.error.kind == 'timeout'",
    "connection": "outcome.error.kind == 'connection'",
}


class Policy(NamedTuple):
    """What a task has beside its inputs, in both spellings."""

    in_use: dict[str, Any]
    canonical: dict[str, Any]
    rows: tuple[str, ...]


class PolicyWriter:
    """Draws the `set`, the `retry` and the rules of the task that was added last to a step."""

    def __init__(self, random: Random, step: TwinStep, *, is_last: bool, targets: list[str]) -> None:
        self._random = random
        self._step = step
        self._is_last = is_last
        self._targets = targets
        """Labels of tasks of the pipeline that are behind it."""
        self._label = step.labels[-1]
        self._kind = step.kinds[-1]
        self._names: Twin | None = None

    def write(self) -> Policy:
        old: dict[str, Any] = {}
        new: dict[str, Any] = {}
        rows: list[str] = []
        if self._chance():
            self._assignments(old, new, rows)
        retry = self._retry() if self._chance() else None
        rules = self._rules(rows) if self._chance() else None
        if retry is not None:
            old["retry"] = retry.in_use
            rows += retry.rows
        if rules is not None:
            old["spec"] = {"policy": {"rules": rules.in_use}}
        if retry is not None or rules is not None or self._names is not None:
            listed = rules.canonical if rules is not None else [*self._ending([])]
            first = [retry.canonical] if retry is not None else []
            new["spec"] = {"policy": {"rules": [*first, *listed]}}
        return Policy(old, new, tuple(rows))

    def _chance(self) -> bool:
        return self._random.random() < 0.4

    def _assignments(self, old: dict[str, Any], new: dict[str, Any], rows: list[str]) -> None:
        kind = self._kind
        reads = [("output", "outcome.result"), ("output.x", "outcome.result.x")]
        if kind == "http":
            reads += [
                ("output.data.x", "outcome.result.data.x"),
                ("output.data.body.x", "outcome.result.data.x"),
            ]
        elif kind in SQL:
            reads += [("output.data.rows", "outcome.result.rows")]
        else:
            reads += [("output.data.x", "(outcome.result.data | default(outcome.result)).x")]
        in_use, canonical = self._random.choice(reads)
        written: dict[str, Any] = {}
        if self._chance():
            written[f"n_{self._label}"] = f"{{{{ {in_use} }}}}"
            self._names = Twin(f"n_{self._label}", canonical)
            rows.append(_SET)
        scoped: dict[str, Any] = {}
        for before, after in (("step.", "run."), ("ctx.", "ctx."), ("iter.", "iter.")):
            if self._chance():
                written[f"{before}k_{self._label}"] = f"{{{{ {in_use} }}}}"
                scoped[f"{after}k_{self._label}"] = f"{{{{ {canonical} }}}}"
                rows += ["`set: {step.x: …}`"] if before == "step." else []
        if written:
            old["set"] = written
        if scoped:
            new["set"] = scoped

    def _named(self, *, after_error: bool) -> dict[str, Any]:
        """What a rule that goes on writes under the names of the task's `set`."""
        if self._names is None:
            return {}
        value = self._names.canonical
        if after_error and value != "outcome.result":
            value = (
                f"({value}) | default(none)"
                if not value.replace(".", "").isidentifier()
                else f"{value} | default(none)"
            )
        return {"set_iter": {self._names.in_use: f"{{{{ {value} }}}}"}}

    def _retry(self) -> Twin:
        number, row = self._random.randint(1, 4), ("`retry`",)
        then = {"do": "retry", "attempts": number}
        if self._chance():
            return Twin(number, {"when": _ERROR, "then": then}, row)
        slow = {"backoff": "linear", "delay": 2}
        old = {"max_attempts": number, "backoff": "linear", "backoff_seconds": 2}
        forms = [
            Twin({}, _ERROR),
            Twin(
                {"retry_on": "timeout"}, "{{ outcome.status == 'error' and outcome.error.kind == 'timeout' }}"
            ),
            Twin(
                {"retry_on": ["auth"]},
                "{{ outcome.status == 'error' and outcome.http.status in [401, 403] }}",
            ),
            Twin(
                {"retry_on": ["rate_limit", "connection"], "retry_on_status": [408, 500]},
                "{{ outcome.status == 'error' and (outcome.http.status == 429 or outcome.error.kind == 'connection'"
                " or outcome.http.status in [408, 500]) }}",
            ),
            Twin({"retry_on_status": 503}, "{{ outcome.status == 'error' and outcome.http.status == 503 }}"),
        ]
        form = self._random.choice(forms)
        return Twin({**old, **form.in_use}, {"when": form.canonical, "then": {**then, **slow}}, row)

    def _rules(self, rows: list[str]) -> Twin:
        old: list[Any] = []
        new: list[Any] = []
        caught = False
        for _ in range(self._random.randint(1, 3)):
            guard = self._guard()
            after_error = not caught and guard.canonical != _OK
            then = self._then(rows, after_error=after_error)
            old.append({"when": guard.in_use, "then": then.in_use})
            new.append({"when": guard.canonical, "then": then.canonical})
            rows += guard.rows
            caught = caught or guard.canonical == _ERROR
        if self._chance():
            then = self._then(rows, after_error=not caught)
            body = Twin({"then": then.in_use}, {"then": then.canonical}) if self._chance() else then
            return Twin([*old, {"else": body.in_use}], [*new, {"else": body.canonical}])
        rows.append("policy, no rule matches")
        return Twin(old, [*new, *self._ending(new)])

    def _ending(self, rules: list[Any]) -> list[Any]:
        """The rules at the end: an error fails, else the pipeline goes on."""
        caught = any(rule["when"] == _ERROR for rule in rules)
        fails = [] if caught else [{"when": _ERROR, "then": {"do": "fail"}}]
        return [*fails, {"else": {"then": {"do": "continue", **self._named(after_error=False)}}}]

    def _guard(self) -> Twin:
        row = "rules: `output.status == 'success'`"
        kind = self._random.choice(list(_KINDS))
        kinds = ("`output.error.kind`",)
        read = self._random.choice(rule_reads(self._step, is_last=self._is_last))
        read.when_drawn()
        listed = "outcome.http.status == 429 or outcome.error.kind in ['timeout', 'connection']"
        guards = [
            Twin("{{ output.status == 'success' }}", _OK, (row,)),
            Twin("{{ 'error' == output.status }}", _ERROR, (row,)),
            Twin("{{ output.status != 'success' }}", "{{ outcome.status != 'ok' }}", (row,)),
            Twin(
                "{{ output.status in ['success', 'error'] }}",
                "{{ outcome.status in ['ok', 'error'] }}",
                (row,),
            ),
            Twin(
                f"{{{{ output.status == 'success' and {read.in_use} == 3 }}}}",
                f"{{{{ outcome.status == 'ok' and {read.canonical} == 3 }}}}",
                (row, *read.rows),
            ),
            Twin(f"{{{{ {read.in_use} > w }}}}", f"{{{{ {read.canonical} > w }}}}", read.rows),
            Twin(f"{{{{ output.error.kind == '{kind}' }}}}", f"{{{{ {_KINDS[kind]} }}}}", kinds),
            Twin(
                "{{ output.error.kind in ['timeout', 'rate_limit', 'connection'] }}",
                f"{{{{ ({listed}) }}}}",
                kinds,
            ),
            Twin("{{ output.error.kind != 'python' }}", "{{ outcome.error.kind != 'python' }}", kinds),
        ]
        return self._random.choice(guards)

    def _then(self, rows: list[str], *, after_error: bool) -> Twin:
        does = ["continue", "break", "fail", *(["jump"] if self._targets else [])]
        do = self._random.choice(does)
        old: dict[str, Any] = {"do": do} | ({"to": self._targets[-1]} if do == "jump" else {})
        new = dict(old)
        if self._chance():
            read = self._random.choice(rule_reads(self._step, is_last=self._is_last))
            read.when_drawn()
            label = self._label
            old["set"] = {f"c_{label}": f"{{{{ {read.in_use} }}}}", f"step.r_{label}": 1, f"ctx.d_{label}": 2}
            new["set_ctx"] = {f"c_{label}": f"{{{{ {read.canonical} }}}}"}
            new["set_run"] = {f"r_{label}": 1}
            new["set"] = {f"ctx.d_{label}": 2}
            rows += ["`then.set: {x: …}`", "`set: {step.x: …}`", *read.rows]
        if do in ("continue", "break", "jump"):
            new |= self._named(after_error=after_error)
        return Twin(old, new)
