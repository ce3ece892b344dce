"""Drafts run: loops and what happens in their iterations."""

import pytest

from tests.dialects.dialect_execution import EndedExecution, run_draft
from tests.web_server import WebAnswer, WebRequest, web_server

LOOP = """\
workflow:
- step: start
  loop:
    spec: {mode: %s}
    in: [1, 2, 3]
    iterator: item
  tool:
  - one: {kind: noop, args: {n: "{{ iter.item * 10 }}"}, eval: [{else: {do: continue, set_vars: {v: "{{ outcome.result.n }}"}, set_shared: %s}}]}
  - two: {kind: noop, args: {v: "{{ vars.v }}", i: "{{ iter.index }}"}}
  next:
  - {step: end, when: "{{ event.name == 'loop.done' }}", args: {all: "{{ event.result }}", t: "{{ vars.t }}"}}
- step: end
  tool: [{x: {kind: noop, args: {all: "{{ args.all }}", t: "{{ args.t }}"}}}]
"""


@pytest.mark.spec("003 §6.5")
@pytest.mark.spec("003 §7.1")
@pytest.mark.spec("003 §7.2")
@pytest.mark.spec("003 §8.1")
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.parametrize(
    ("shared", "total"),
    [
        ('{t: "{{ iter.item }}"}', 3),
        ('{t: {sum: "{{ iter.item }}"}}', 6),
        ('{t: {append: "{{ iter.item }}"}}', [1, 2, 3]),
    ],
)
def test_pipelines_in_loops_of_both_modes(mode: str, shared: str, total: object) -> None:
    old = run_draft(LOOP % (mode, shared))
    assert old.status == "completed"
    assert old.result == {"all": [{"v": 10 * n, "i": n - 1} for n in (1, 2, 3)], "t": total}


@pytest.mark.spec("003 §7.2")
@pytest.mark.spec("003 §8.1")
def test_a_failed_iteration_fails_the_step_and_can_be_routed() -> None:
    old = run_draft("""\
        workflow:
        - step: start
          loop: {in: [1, 0, 2], iterator: item}
          tool: [{x: {kind: noop, args: {n: "{{ 6 // iter.item }}"}}}]
          next: [{step: done, when: "{{ event.name == 'loop.done' }}"}, {step: cleanup, when: "{{ event.name == 'step.failed' }}"}]
        - step: done
          tool: [{x: {kind: noop}}]
        - step: cleanup
          tool: [{x: {kind: noop, args: {clean: true}}}]
        """)
    assert old == EndedExecution("completed", {"clean": True}, None, {"start": 1, "cleanup": 1})


ENDPOINTS = """\
workload:
  api_url: "%s"
  endpoints: [{path: /a, page_size: 2}, {path: /b, page_size: 3}]
workflow:
- step: start
  spec: {next_mode: exclusive}
  when: "{{ true }}"
  loop:
    spec: {mode: sequential}
    in: "{{ workload.endpoints }}"
    iterator: endpoint
  tool:
  - init: {kind: noop, eval: [{else: {do: continue, set_iter: {page: 1, has_more: true, saved: []}}}]}
  - fetch_page:
      kind: http
      spec: {timeout: {connect: 5, read: 15}}
      method: GET
      url: "{{ workload.api_url }}{{ iter.endpoint.path }}"
      params: {page: "{{ iter.page }}", pageSize: "{{ iter.endpoint.page_size }}"}
      eval:
      - expr: "{{ outcome.status == 'error' and outcome.http.status in [429,500,502,503,504] }}"
        do: retry
        attempts: 10
        backoff: exponential
        delay: "{{ outcome.http.headers['retry-after'] | default(2) }}"
      - expr: "{{ outcome.status == 'error' }}"
        do: fail
      - else:
          do: continue
          set_iter:
            has_more: "{{ outcome.result.data.paging.hasMore | default(false) }}"
            page: "{{ outcome.result.data.paging.page | default(iter.page) }}"
            items: "{{ outcome.result.data.data | default([]) }}"
  - save_page: {kind: noop, eval: [{else: {do: continue, set_iter: {saved: "{{ iter.saved + iter.items }}"}}}]}
  - paginate:
      kind: noop
      eval:
      - expr: "{{ iter.has_more == true }}"
        do: jump
        to: fetch_page
        set_iter: {page: "{{ (iter.page | int) + 1 }}"}
      - else: {do: continue}
  - saved: {kind: noop, args: {rows: "{{ iter.saved }}"}}
  next:
  - {step: validate_results, when: "{{ event.name == 'loop.done' }}", args: {rows: "{{ event.result }}"}}
  - {step: cleanup, when: "{{ event.name == 'step.failed' }}"}
- step: validate_results
  tool: [{check: {kind: noop, args: {rows: "{{ args.rows }}"}}}]
- step: cleanup
  tool: [{x: {kind: noop}}]
"""


@pytest.mark.spec("003 §11")
@pytest.mark.spec("003 §13")
@pytest.mark.spec("003 §5.2")
def test_the_example_of_the_draft_fetches_all_pages() -> None:
    """As it stands there, but for the database: pages are kept in the iteration."""
    busy = ["/b"]

    def pages(request: WebRequest) -> WebAnswer:
        page, size = int(request.query["page"]), int(request.query["pageSize"])
        if page == 2 and request.path in busy:
            busy.remove(request.path)
            return WebAnswer("busy", 429, {"Retry-After": "0"})
        data = [f"{request.path}{page}.{row}" for row in range(size)]
        return WebAnswer({"data": data, "paging": {"hasMore": page < 3, "page": page}})

    with web_server(pages) as web:
        old = run_draft(ENDPOINTS % web.url)
        assert [(request.path, request.query["page"]) for request in web.requests] == [
            *[("/a", str(page)) for page in (1, 2, 3)],
            *[("/b", page) for page in ("1", "2", "2", "3")],
        ]
    assert old.status == "completed"
    assert old.result["rows"] == [
        {"rows": [f"{path}{page}.{row}" for page in (1, 2, 3) for row in range(size)]}
        for path, size in (("/a", 2), ("/b", 3))
    ]


@pytest.mark.spec("003 §6.4")
@pytest.mark.spec("003 §6.5")
def test_retry_and_break_in_the_iterations_of_a_parallel_loop() -> None:
    old = run_draft("""\
        workflow:
        - step: start
          loop: {spec: {mode: parallel, max_in_flight: 2}, in: [1, 2, 3], iterator: item}
          tool:
          - a:
              kind: noop
              args: {n: "{{ _attempt }}"}
              eval:
              - {expr: "{{ outcome.result.n < iter.item }}", do: retry, attempts: 5, backoff: linear, delay: 0.001}
              - else: {do: continue, set_vars: {tries: "{{ _attempt }}"}}
          - b: {kind: noop, args: {t: "{{ vars.tries }}"}, eval: [{expr: "{{ iter.item == 2 }}", do: break}]}
          - c: {kind: noop, args: {t: "{{ _prev.t * 100 }}"}}
        """)
    assert old.result == [{"t": 100}, {"t": 2}, {"t": 300}]
