"""`unset-name` inside one pipeline: iteration state, run state, labels."""

import pytest

from tests.checks.flow_playbooks import findings, messages, part_position


def pipeline(tasks: str, *, head: str = "") -> str:
    indented = "".join(f"      {line}\n" for line in tasks.strip("\n").split("\n"))
    return f"workload: {{ full: true, items: [1] }}\nworkflow:\n  - step: start\n{head}    tool:\n{indented}"


PAGES = """
- name: init
  kind: noop
  spec: { policy: { rules: [{ else: { do: continue, set_iter: { page: 1, has_more: true } } }] } }
- name: fetch_page
  kind: http
  method: GET
  url: "http://127.0.0.1/{{ iter.endpoint.path }}"
  params: { page: "{{ iter.page }}", size: "{{ endpoint.size }}" }
  spec:
    policy:
      rules:
        - when: "{{ outcome.status == 'error' and outcome.http.status in [429, 500] }}"
          then:
            do: retry
            attempts: 10
            backoff: exponential
            delay: "{{ outcome.http.headers['retry-after'] | default(2) }}"
        - when: "{{ outcome.status == 'error' }}"
          then: { do: fail }
        - else:
            do: continue
            set_iter:
              has_more: "{{ outcome.result.data.paging.hasMore | default(false) }}"
              page: "{{ outcome.result.data.paging.page | default(iter.page) }}"
              items: "{{ outcome.result.data.data | default([]) }}"
- name: save_page
  kind: noop
  args: { rows: "{{ iter.items }}" }
- name: paginate
  kind: noop
  spec:
    policy:
      rules:
        - when: "{{ iter.has_more == true }}"
          then: { do: jump, to: fetch_page, set_iter: { page: "{{ (iter.page | int) + 1 }}" } }
        - else: { then: { do: break } }
"""
LOOP = '    loop: { in: "{{ workload.items }}", iterator: endpoint }\n'


@pytest.mark.spec("001 §9.2")
def test_pagination_with_jump_and_iteration_state_is_clean() -> None:
    assert messages(pipeline(PAGES, head=LOOP)) == []


def test_pagination_without_its_first_page_is_not() -> None:
    text = pipeline(PAGES[PAGES.index("- name: fetch_page") :], head=LOOP)
    (problem,) = findings(text)
    assert (problem.line, problem.column) == part_position(text, 'iter.page }}", size')
    assert problem.message == "`iter.page` may be unset when the pipeline begins with `fetch_page`"
    assert problem.hint == "set it in every task before, or write `iter.page | default(…)`"


def test_a_jump_past_the_write_leaves_the_name_unset() -> None:
    text = pipeline("""
- name: choose
  kind: noop
  spec: { policy: { rules: [{ when: "{{ workload.full }}", then: { do: jump, to: show } }] } }
- { name: write, kind: noop, set: { iter.page: 1 } }
- { name: show, kind: noop, args: { page: "{{ iter.page }}" } }
""")
    (problem,) = findings(text)
    assert (problem.line, problem.column) == part_position(text, "iter.page }}")
    assert problem.message == "`iter.page` may be unset when coming from `choose` → `show`"


def test_labels_are_set_once_their_task_has_run() -> None:
    text = pipeline("""
- { name: early, kind: noop, args: { a: "{{ late }}" } }
- name: fetch
  kind: http
  url: "http://127.0.0.1"
  spec: { policy: { rules: [{ else: { do: continue, set_ctx: { n: "{{ fetch.n }}" } } }] } }
- { name: late, kind: noop, args: { a: "{{ fetch.rows }}", b: "{{ early }}" } }
""")
    assert messages(text) == ["`late` may be unset when the pipeline begins with `early`"]


def test_what_an_unguarded_rule_writes_is_set_and_what_a_guarded_one_writes_may_not_be() -> None:
    text = pipeline("""
- name: first
  kind: noop
  spec:
    policy:
      rules:
        - when: "{{ workload.full }}"
          then: { do: continue, set_run: { some: 1, all: 1 } }
        - else: { do: continue, set_run: { all: 1 } }
- { name: second, kind: noop, args: { a: "{{ run.all }}", b: "{{ run.some }}" } }
""")
    assert messages(text) == ["`run.some` may be unset when coming from `first` → `second`"]


def test_rules_for_ok_and_error_leave_nothing_unmatched() -> None:
    text = pipeline("""
- name: fetch
  kind: http
  url: "http://127.0.0.1"
  set: { ctx.always: 1 }
  spec:
    policy:
      rules:
        - { when: "{{ outcome.status == 'error' }}", then: { do: fail } }
        - { when: "{{ outcome.status == 'ok' }}", then: { do: continue, set_ctx: { total: 1 } } }
- { name: show, kind: noop, args: { a: "{{ ctx.total }}", b: "{{ ctx.always }}" } }
""")
    assert messages(text) == []


def test_going_on_after_an_error_is_a_way_without_what_success_writes() -> None:
    text = pipeline("""
- name: fetch
  kind: http
  url: "http://127.0.0.1"
  set: { ctx.total: 1 }
  spec:
    policy:
      rules:
        - { when: "{{ outcome.status == 'error' }}", then: { do: continue } }
        - else: { do: continue }
- { name: show, kind: noop, args: { a: "{{ ctx.total }}" } }
""")
    assert messages(text) == ["`ctx.total` may be unset when the execution begins with `start`"]


def test_an_error_that_no_rule_matches_goes_on_unless_it_fails() -> None:
    text = pipeline("""
- name: fetch
  kind: http
  url: "http://127.0.0.1"
  spec:
    policy:
      POLICY
      rules:
        - { when: "{{ outcome.status == 'ok' }}", then: { do: continue, set_iter: { total: 1 } } }
- { name: show, kind: noop, args: { a: "{{ iter.total }}" } }
""")
    assert messages(text.replace("            POLICY\n", "")) == [
        "`iter.total` may be unset when coming from `fetch` → `show`"
    ]
    assert messages(text.replace("POLICY", "on_unmatched: fail")) == []


def test_a_value_cannot_be_made_from_itself_but_from_a_write_before_it() -> None:
    text = pipeline("""
- name: count
  kind: noop
  spec:
    policy:
      rules:
        - else:
            do: continue
            set_ctx: { first: 1, second: "{{ ctx.first + 1 }}", total: "{{ ctx.total + 1 }}" }
""")
    assert messages(text) == ["`ctx.total` may be unset when the execution begins with `start`"]


def test_a_rule_proves_what_its_guard_and_those_before_it_ask() -> None:
    text = pipeline("""
- name: count
  kind: noop
  spec:
    policy:
      rules:
        - { when: "{{ iter.page is undefined }}", then: { do: retry, set_iter: { page: 1 } } }
        - { when: "{{ iter.page < 5 }}", then: { do: retry, set_iter: { page: "{{ iter.page + 1 }}" } } }
        - else: { do: continue, set_ctx: { pages: "{{ iter.page }}" } }
""")
    assert messages(text) == []


def test_the_same_expression_in_two_rules_is_judged_in_each() -> None:
    text = pipeline("""
- name: count
  kind: noop
  spec:
    policy:
      rules:
        - { when: "{{ iter.page is defined }}", then: { do: continue, set_ctx: { n: "{{ iter.page }}" } } }
        - { when: "{{ workload.full }}", then: { do: break, set_iter: { page: 1 } } }
        - else: { do: continue, set_ctx: { n: "{{ iter.page }}" } }
""")
    (problem,) = findings(text)
    assert problem.line == part_position(text, "- else:")[0]


def test_iteration_state_does_not_last_from_one_iteration_to_the_next() -> None:
    text = pipeline(
        """
- { name: show, kind: noop, args: { a: "{{ iter.seen }}", b: "{{ item }}", c: "{{ iter.item.n }}" } }
- { name: write, kind: noop, set: { iter.seen: 1 } }
""",
        head='    loop: { in: "{{ workload.items }}", iterator: item }\n',
    )
    assert messages(text) == ["`iter.seen` may be unset when the pipeline begins with `show`"]


def test_a_loop_counts_as_run_at_least_once() -> None:
    text = pipeline(
        '- { name: write, kind: noop, set: { ctx.last: "{{ iter.item }}" } }',
        head='    loop: { in: "{{ workload.items }}", iterator: item }\n',
    )
    text += """\
    next: { arcs: [{ step: end }] }
  - step: end
    tool: [{ kind: noop, args: { last: "{{ ctx.last }}" } }]
"""
    assert messages(text) == []


def test_run_state_is_seen_by_the_arcs_and_the_step_s_own_writes() -> None:
    text = pipeline("""
- name: count
  kind: noop
  spec: { policy: { rules: [{ else: { do: continue, set_run: { total: 1 } } }] } }
""")
    text += """\
    set: { ctx.total: "{{ run.total }}", ctx.more: "{{ ctx.total + run.mroe }}" }
    next: { arcs: [{ step: end, args: { total: "{{ run.total }}", more: "{{ ctx.more }}" } }] }
  - step: end
    tool: [{ kind: noop, args: { total: "{{ args.total }}" } }]
"""
    (problem,) = findings(text)
    assert (problem.line, problem.column) == part_position(text, "run.mroe")
    assert (problem.message, problem.hint) == (
        "nothing sets `run.mroe`",
        "`set_run` in an earlier task sets it",
    )


def test_a_retry_s_delay_and_a_failure_s_message_see_the_task_s_result() -> None:
    text = pipeline("""
- name: fetch
  kind: http
  url: "http://127.0.0.1"
  spec:
    policy:
      rules:
        - when: "{{ outcome.status == 'error' }}"
          then: { do: retry, attempts: 2, delay: "{{ fetch.after + iter.delay }}" }
        - else: { do: fail, message: "{{ fetch.text }} {{ output.data }}" }
- { name: never, kind: noop, set: { iter.delay: 1 } }
""")
    assert messages(text) == ["`iter.delay` may be unset when the pipeline begins with `fetch`"]


@pytest.mark.no_cover
def test_many_rules_and_writes_are_judged_in_good_time() -> None:
    count = 1500
    rules = "".join(
        f"""\
            - {{ when: "{{{{ iter.n == {number} }}}}", then: {{ do: retry, set_iter: {{ n: "{{{{ iter.n }}}}" }} }} }}
"""
        for number in range(count)
    )
    writes = "".join(
        f"""\
        ctx.n{number}: "{{{{ ctx.n{number - 1} }}}}"
"""
        for number in range(1, count)
    )
    text = pipeline(f"""
    - name: count
      kind: noop
      set:
        iter.n: 1
        ctx.n0: 0
{writes}      spec:
        policy:
          rules:
{rules}            - else: {{ do: continue }}
    """)
    assert messages(text) == []
