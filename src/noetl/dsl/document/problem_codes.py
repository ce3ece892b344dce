"""Every code a problem can have: one closed table. Each has a page in docs/checks."""

from typing import NamedTuple

from noetl.dsl.document.problem import Severity


class ProblemCode(NamedTuple):
    """What a problem of this code is. One that can be silenced leaves the playbook whole and lawful."""

    severity: Severity
    summary: str
    silenceable: bool


def _error(summary: str) -> ProblemCode:
    return ProblemCode("error", summary, silenceable=False)


def _warning(summary: str) -> ProblemCode:
    return ProblemCode("warning", summary, silenceable=True)


CODES: dict[str, ProblemCode] = {
    # The text
    "yaml-syntax": _error("The file is not YAML."),
    "yaml-feature": _error("A YAML feature that playbooks do not have: tags, merge keys, several documents."),
    "yaml-limit": _error("The file is too large, too deep, or its aliases expand too far."),
    "duplicate-key": _error("A key stands twice in one mapping."),
    "empty-document": _error("The file holds no document."),
    # The shape
    "api-version": _error("`apiVersion` is not one we know."),
    "not-a-playbook": _error("`kind` is not `Playbook`."),
    "unknown-key": _error("A key that means nothing here."),
    "missing-key": _error("A key that must be there is not."),
    "wrong-type": _error("A value of the wrong type."),
    "bad-value": _error("A value of the right type that is not allowed."),
    "bad-name": _error("A name with characters that names cannot have."),
    "reserved-name": _error("A name that expressions use for something else."),
    "root-vars": _error("`vars` at the root of a playbook."),
    "step-when": _error("`when` on a step."),
    "draft-eval": _error("`eval` of the draft dialect in a canonical document."),
    "draft-expr": _error("`expr` of the draft dialect in a canonical document."),
    "draft-next-mode": _error("`next_mode` of the draft dialect in a canonical document."),
    "draft-next-list": _error("A list or a name under `next`, as the draft dialect has it."),
    "draft-vars": _error("`vars` or `set_vars` of the draft dialect in a canonical document."),
    "draft-shared": _error("`set_shared` of the draft dialect in a canonical document."),
    "draft-pipe": _error("`pipe`, which no dialect has any more."),
    "draft-case": _error("`case`, which no dialect has any more."),
    "conflicting-keys": _error("Two keys that say different things about one matter."),
    # The first dialect
    "missing-start": _error("A v1 workflow without a step `start`."),
    "v1-end-next": _error("`next` on the step `end` of a v1 workflow."),
    "v1-nested-reference": _error("A v1 task that is referred to where it cannot be."),
    "v1-python-main": _error("Python code of a v1 task without `main(input)`."),
    "v1-inexpressible": _error("A v1 value with statements that another expression builds on."),
    "v1-ignored-run": _warning("`run` on a v1 task whose type does not run nested tasks."),
    "v1-error-condition": _warning("A condition on a v1 transition to `error_handler`."),
    "v1-unused-task": _warning("A v1 task that no step runs."),
    "upgrade-limit": _error("An older document that would grow too large in its canonical form."),
    # The dialect in use
    "mixed-dialects": _warning("Spellings of two dialects in one document."),
    "no-effect": _warning("A key that is accepted and has no effect."),
    "in-use-inexpressible": _error("Something of the dialect in use that has no canonical form."),
    # Steps and tasks
    "duplicate-step": _error("Two steps have one name."),
    "duplicate-task": _error("Two tasks of one pipeline have one label."),
    "empty-step": _error("A step with neither `tool` nor `next`."),
    "unknown-step": _error("A reference to a step that does not exist."),
    "unknown-kind": _error("A tool kind that is not registered."),
    "unknown-task": _error("A workbook task that does not exist."),
    "bad-input": _error("Inputs of a tool that do not go together."),
    "loop-incomplete": _error("A loop without `in` or `iterator`."),
    "loop-without-tool": _warning("A loop around nothing."),
    "policy-shape": _error("A task policy that is not an object containing `rules`."),
    "rule-shape": _error("A rule that is neither `when` and `then` nor `else`."),
    "two-else": _error("Two `else` in one list of rules."),
    "directive-option": _error("An option that does not belong to the rule's directive."),
    "jump-target": _error("A jump to a task that is not in the pipeline."),
    "bad-write": _error("A `set` that names no place to write to."),
    "final-step-arcs": _error("The final step has arcs."),
    "join-any-cycle": _error("A join of mode `any` on a cycle."),
    "parallel-set-ctx": _error("A parallel loop writes `ctx` or `run` without a reducer."),
    "unused-reducer": _warning("A reducer for something that the loop does not write."),
    "executor-kind": _warning("An `executor` that does not say of which kind it is."),
    "executor-profile": _warning("`executor.profile` has no effect."),
    # Expressions
    "expression-syntax": _error("An expression that cannot be parsed."),
    "guard-form": _error("A condition that is not one expression."),
    "namespace-scope": _error("A name that does not exist where it is used."),
    "keychain-scope": _error("`keychain` outside tool inputs and `auth`."),
    "keychain-order": _error("A keychain entry that reads one which does not come before it."),
    "unknown-keychain": ProblemCode("error", "A keychain name that is not declared.", silenceable=True),
    "undeclared-auth": _warning("A credential that the keychain does not declare."),
    "code-expression": _warning("An expression inside code, where it is not rendered."),
    # The net
    "unreachable-step": _warning("A step that no token can reach."),
    "no-way-out": _warning("A step from which no end can be reached."),
    "dead-arc": _warning("An arc that can never be taken."),
    "loop-step-done": _warning("A guard that waits for an event the step never ends with."),
    "join-single": _warning("A join that at most one token can come to."),
    "join-exclusive": _warning("A join of arcs of which only one is ever taken."),
    "endless-jump": _warning("Jumps that make an endless loop."),
    "error-falls-through": _warning("An error that no rule of the policy matches goes on unseen."),
    "failure-loop": _warning("An arc that leads back to a step as long as it fails."),
    "swallowed-failure": _warning("An arc that carries on after a failure without saying so."),
    # Names and data
    "unknown-name": ProblemCode("error", "`steps.NAME` of a step that does not exist.", silenceable=True),
    "unknown-field": _warning("A key that what is read never has."),
    "impossible-value": _warning("A comparison with a value that never comes."),
    "unset-name": _warning("A name that nothing has set on some path."),
    "concurrent-write": _warning("Two steps that may run at once write one path."),
    "sql-paste": _warning("An expression pasted into SQL text."),
    "secret-in-result": _warning("A secret that would be kept: in a result, the context or an artifact."),
}
