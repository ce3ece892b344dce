"""What random playbooks are made of."""

CHILD = "random/child"
FAILED = "{{ outcome.status == 'error' }}"
PYTHON = "kind: python, code: '1'"
NOOP = "kind: noop"

GUARDS = (
    "",
    "when: \"{{ event.name == 'step.failed' }}\"",
    "when: \"{{ event.status == 'success' }}\"",
    'when: "{{ (event.result | default(0, true)) is number and event.result > 1 }}"',
)
STEADY_GUARDS = (*GUARDS[:1] * 5, *GUARDS[1:])
WILD_GUARDS = (*GUARDS, 'when: "{{ ctx.flag | default(false) }}"')


def policy_rules(*rules: str) -> str:
    return f"spec: {{policy: {{rules: [{', '.join(rules)}]}}}}"


def retry_rule(when: str, more: str = "") -> str:
    return f'{{when: "{when}", then: {{do: retry{more}}}}}'


POLICIES = (
    "",
    policy_rules(retry_rule(FAILED, ", attempts: 2, delay: 1")),
    policy_rules(
        retry_rule(FAILED, ", attempts: 2, delay: 12"),
        '{else: {then: {do: continue, set_ctx: {KEY: "{{ outcome.result }}"}}}}',
    ),
    policy_rules(
        retry_rule("{{ outcome.result == 2 and _attempt == 1 }}"),
        f'{{when: "{FAILED}", then: {{do: break}}}}',
    ),
    'set: {ctx.flag: "{{ outcome.result is number and outcome.result > 0 }}"}',
)
KINDS = (
    PYTHON,
    NOOP,
    "kind: wait, seconds: 2",
    "kind: wait, signal: go",
    f"kind: playbook, path: {CHILD}",
)
_FOUR = 'in: "{{ [1, 2, 3, 4] }}", iterator: item'
LOOPS = (
    "",
    'in: "{{ [1, 2, 3] }}", iterator: item',
    f"{_FOUR}, spec: {{mode: parallel, max_in_flight: 2, reduce: {{KEY: append, flag: last}}}}",
    'in: "{{ [1, 2] }}", iterator: item, spec: {policy: {failure: {mode: best_effort}}}',
)
_FLAG = 'rules: [{when: "{{ ctx.flag }}", then: {allow: true}}]'
SIGNALLED = 'rules: [{when: "{{ ctx.signals.go }}", then: {allow: true}}]'
SPECS = (
    "",
    "policy: {join: all}",
    "policy: {join: any}",
    "policy: {join: {count: 2}}",
    f"policy: {{admit: {{{_FLAG}}}}}",
    f"policy: {{admit: {{{_FLAG}, on_deny: fail}}}}",
    f"policy: {{join: all, admit: {{{_FLAG}, on_deny: drop}}}}",
    f"policy: {{admit: {{{SIGNALLED}, timeout: 30}}}}",
    "timeout: 4",
)


def join_entries(*parts: str) -> str:
    """The parts that say something, as entries of one mapping."""
    return ", ".join(part for part in parts if part)
