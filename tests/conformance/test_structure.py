"""The basic structure of the guide is a valid playbook (001 §2)."""

import pytest

from noetl.dsl.document.playbook import Continue, Fail, RetryTask
from tests.playbooks import playbook_of, problems_of

BASIC = """\
apiVersion: noetl.io/v2
kind: Playbook

metadata:
  name: example_playbook
  path: workflows/example_playbook
  version: "2.0"
  description: Example playbook using canonical v10 structure

keychain:
  - name: pg_k8s
    kind: postgres_credential

executor:
  kind: distributed
  spec:
    pool: default

workload:
  api_url: "https://api.example.com"
  page_size: 50

workflow:
  - step: start
    desc: Entry transition (pure routing)
    next:
      spec: { mode: exclusive }
      arcs:
        - step: fetch_transform_store

  - step: fetch_transform_store
    desc: Fetch → transform → store
    tool:
      - name: fetch_page
        kind: http
        method: GET
        url: "{{ workload.api_url }}/data"
        params:
          page: 1
          pageSize: "{{ workload.page_size }}"
        spec:
          timeout: { connect: 5, read: 15 }
          policy:
            rules:
              - when: "{{ outcome.status == 'error' and outcome.http.status in [429,500,502,503,504] }}"
                then: { do: retry, attempts: 5, backoff: exponential, delay: 2 }
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
              - else:
                  then: { do: continue }
      - name: transform
        kind: python
        args: { data: "{{ _prev }}" }
        code: |
          result = {"items": data}
      - name: store
        kind: postgres
        auth: pg_k8s
        command: "INSERT INTO ..."
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' and outcome.pg.code in ['40001','40P01'] }}"
                then: { do: retry, attempts: 5, backoff: exponential, delay: 2 }
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
              - else:
                  then: { do: continue }
    next:
      spec: { mode: exclusive }
      arcs:
        - step: end
          when: "{{ event.name == 'step.done' }}"

  - step: end
    desc: Terminal transition
    tool:
      - name: done
        kind: noop
"""


@pytest.mark.spec("001 §2")
def test_the_basic_structure_has_no_problem() -> None:
    assert problems_of(BASIC) == ()


@pytest.mark.spec("001 §2")
def test_the_basic_structure_means_what_it_says() -> None:
    playbook = playbook_of(BASIC)
    assert playbook.entry == "start"
    assert playbook.executor.kind == "distributed"
    assert list(playbook.keychain) == ["pg_k8s"]
    assert list(playbook.workload) == ["api_url", "page_size"]
    start, work, end = playbook.workflow
    assert start.tasks == ()
    assert [arc.step for arc in start.arcs] == ["fetch_transform_store"]
    assert [(task.label, task.kind) for task in work.tasks] == [
        ("fetch_page", "http"),
        ("transform", "python"),
        ("store", "postgres"),
    ]
    policy = work.tasks[0].policy
    assert policy is not None
    assert [rule.then.do for rule in policy.rules] == [RetryTask(5, "exponential", 2.0), Fail()]
    assert policy.otherwise is not None
    assert policy.otherwise.do == Continue()
    assert end.router is None
