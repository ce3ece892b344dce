"""Every code a problem can have: one closed table. Each has a page in docs/checks."""

from typing import NamedTuple

from noetl.dsl.problem import Severity


class Code(NamedTuple):
    severity: Severity
    summary: str


CODES: dict[str, Code] = {
    # The text
    "yaml-syntax": Code("error", "The file is not YAML."),
    "yaml-feature": Code(
        "error", "A YAML feature that playbooks do not have: tags, merge keys, several documents."
    ),
    "yaml-limit": Code("error", "The file is too large, too deep, or its aliases expand too far."),
    "duplicate-key": Code("error", "A key stands twice in one mapping."),
    "empty-document": Code("error", "The file holds no document."),
    # The shape
    "api-version": Code("error", "`apiVersion` is not one we know."),
    "not-a-playbook": Code("error", "`kind` is not `Playbook`."),
    "unknown-key": Code("error", "A key that means nothing here."),
    "missing-key": Code("error", "A key that must be there is not."),
    "wrong-type": Code("error", "A value of the wrong type."),
    "bad-value": Code("error", "A value of the right type that is not allowed."),
    "bad-name": Code("error", "A name with characters that names cannot have."),
    "reserved-name": Code("error", "A name that expressions use for something else."),
    "root-vars": Code("error", "`vars` at the root of a playbook."),
    "step-when": Code("error", "`when` on a step."),
    "draft-eval": Code("error", "`eval` of the draft dialect in a canonical document."),
    "draft-expr": Code("error", "`expr` of the draft dialect in a canonical document."),
    "draft-next-mode": Code("error", "`next_mode` of the draft dialect in a canonical document."),
    "draft-next-list": Code("error", "A list or a name under `next`, as the draft dialect has it."),
    "draft-vars": Code("error", "`vars` or `set_vars` of the draft dialect in a canonical document."),
    "draft-shared": Code("error", "`set_shared` of the draft dialect in a canonical document."),
    "draft-pipe": Code("error", "`pipe`, which no dialect has any more."),
    "draft-case": Code("error", "`case`, which no dialect has any more."),
    "conflicting-keys": Code("error", "Two keys that say different things about one matter."),
    # The first dialect
    "missing-start": Code("error", "A v1 workflow without a step `start`."),
    "v1-end-next": Code("error", "`next` on the step `end` of a v1 workflow."),
    "v1-nested-reference": Code("error", "A v1 task that is referred to where it cannot be."),
    "v1-python-main": Code("error", "Python code of a v1 task without `main(input)`."),
    "v1-inexpressible": Code("error", "A v1 value with statements that another expression builds on."),
    "v1-ignored-run": Code("warning", "`run` on a v1 task whose type does not run nested tasks."),
    "v1-error-condition": Code("warning", "A condition on a v1 transition to `error_handler`."),
    "v1-unused-task": Code("warning", "A v1 task that no step runs."),
    "upgrade-limit": Code("error", "An older document that would grow too large in its canonical form."),
    # Steps and tasks
    "duplicate-step": Code("error", "Two steps have one name."),
    "duplicate-task": Code("error", "Two tasks of one pipeline have one label."),
    "empty-step": Code("error", "A step with neither `tool` nor `next`."),
    "unknown-step": Code("error", "A reference to a step that does not exist."),
    "unknown-kind": Code("error", "A tool kind that is not registered."),
    "unknown-task": Code("error", "A workbook task that does not exist."),
    "bad-input": Code("error", "Inputs of a tool that do not go together."),
    "loop-incomplete": Code("error", "A loop without `in` or `iterator`."),
    "loop-without-tool": Code("warning", "A loop around nothing."),
    "policy-shape": Code("error", "A task policy that is not an object containing `rules`."),
    "rule-shape": Code("error", "A rule that is neither `when` and `then` nor `else`."),
    "two-else": Code("error", "Two `else` in one list of rules."),
    "directive-option": Code("error", "An option that does not belong to the rule's directive."),
    "jump-target": Code("error", "A jump to a task that is not in the pipeline."),
    "bad-write": Code("error", "A `set` that names no place to write to."),
    "final-step-arcs": Code("error", "The final step has arcs."),
    "join-any-cycle": Code("error", "A join of mode `any` on a cycle."),
    "parallel-set-ctx": Code("error", "A parallel loop writes `ctx` or `run` without a reducer."),
    "unused-reducer": Code("warning", "A reducer for something that the loop does not write."),
    "executor-profile": Code("warning", "`executor.profile` has no effect."),
    # Expressions
    "expression-syntax": Code("error", "An expression that cannot be parsed."),
    "guard-form": Code("error", "A condition that is not one expression."),
    "namespace-scope": Code("error", "A name that does not exist where it is used."),
    "keychain-scope": Code("error", "`keychain` outside tool inputs and `auth`."),
    "unknown-keychain": Code("error", "A keychain name that is not declared."),
    "undeclared-auth": Code("warning", "A credential that the keychain does not declare."),
    "code-expression": Code("warning", "An expression inside code, where it is not rendered."),
    # The net
    "unreachable-step": Code("warning", "A step that no token can reach."),
    "no-way-out": Code("warning", "A step from which no end can be reached."),
    "dead-arc": Code("warning", "An arc that can never be taken."),
    "loop-step-done": Code("warning", "A guard that waits for an event the step never ends with."),
    "join-single": Code("warning", "A join that at most one token can come to."),
    "join-exclusive": Code("warning", "A join of arcs of which only one is ever taken."),
    "endless-jump": Code("warning", "Jumps that make an endless loop."),
    "error-falls-through": Code("warning", "An error that no rule of the policy matches goes on unseen."),
    "swallowed-failure": Code("warning", "An arc that carries on after a failure without saying so."),
    # Names and data
    "unknown-name": Code("error", "`steps.NAME` of a step that does not exist."),
    "unset-name": Code("warning", "A name that nothing has set on some path."),
    "concurrent-write": Code("warning", "Two steps that may run at once write one path."),
    "sql-paste": Code("warning", "An expression pasted into SQL text."),
    "secret-in-result": Code(
        "warning", "A secret that would be kept: in a result, the context or an artifact."
    ),
}
