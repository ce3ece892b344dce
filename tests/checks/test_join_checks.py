import pytest

from tests.checks.check_fragments import assert_clean, assert_found, problems

DIAMOND = """
    - step: start
      next: {{ spec: {{ mode: {mode} }}, arcs: [{{ step: a{guard} }}, {{ step: b }}] }}
    - step: a
      next: {{ arcs: [{{ step: end }}] }}
    - step: b
      next: {{ arcs: [{{ step: end }}] }}
    - step: end
      spec: {{ policy: {{ join: {join} }} }}
      tool: {{ kind: noop }}
    """

CHOICE = ', when: "{{ ctx.x }}"'


@pytest.mark.parametrize("join", ["all", "any", "{ count: 2 }"])
def test_a_join_of_arcs_of_which_one_is_taken(join: str) -> None:
    (problem,) = assert_found(
        "join-exclusive", DIAMOND.format(mode="exclusive", guard=CHOICE, join=f"§{join}")
    )
    assert ("`count: 2` is never reached" in problem.message) == ("count" in join)
    assert_clean(DIAMOND.format(mode="inclusive", guard=CHOICE, join=join))


def test_inclusive_arcs_that_exclude_each_other() -> None:
    fragment = """
        - step: start
          tool: { kind: python, code: result = 1 }
          next:
            spec: { mode: inclusive }
            arcs:
              - { step: end, when: "{{ event.name == 'step.done' }}" }
              - { step: end, when: "{{ event.name == 'step.failed' }}" }
        - step: end
          spec: { policy: { join: §all } }
          tool: { kind: noop }
        """
    assert_found("join-exclusive", fragment)
    assert_clean(fragment.replace("§", "").replace("step.failed", "step.done"))


def test_a_join_of_one_arc() -> None:
    fragment = """
        - step: start
          next: { arcs: [{ step: end }] }
        - step: end
          spec: { policy: { join: §all } }
          tool: { kind: noop }
        """
    assert_found("join-single", fragment)
    assert_clean(fragment.replace("spec: { policy: { join: §all } }", "desc: runs once"))


@pytest.mark.parametrize("join", ["all", "any", "{ count: 2 }"])
@pytest.mark.parametrize(
    ("fed", "code"),
    [
        ("a", "join-single"),
        ("a b", "join-exclusive"),
    ],
)
def test_a_join_that_only_one_branch_of_several_comes_to(fed: str, code: str, join: str) -> None:
    """Other branches go elsewhere; or those that come are the two ways out of one branch."""
    ways = ", ".join(f'{{ step: end, when: "{{{{ ctx.{name} }}}}" }}' for name in fed.split())
    fragment = f"""
    - step: start
      next: {{ spec: {{ mode: inclusive }}, arcs: [{{ step: feeds }}, {{ step: other }}, {{ step: third }}] }}
    - step: feeds
      next: {{ arcs: [{ways}] }}
    - step: other
      next: {{ spec: {{ mode: inclusive }}, arcs: [{{ step: after }}, {{ step: third }}] }}
    - step: third
      tool: {{ kind: noop }}
    - step: after
      tool: {{ kind: noop }}
    - step: end
      spec: {{ policy: {{ join: §{join} }} }}
      tool: {{ kind: noop }}
    """
    (problem,) = assert_found(code, fragment)
    assert ("`count: 2` is never reached" in problem.message) == ("count" in join)
    second = fragment.replace("[{ step: after }", "[{ step: end }, { step: after }").replace("§", "")
    assert_clean(second)


def test_a_join_behind_a_join() -> None:
    fragment = DIAMOND.format(mode="inclusive", guard="", join="all").replace(
        "tool: {", "next: { arcs: [{ step: last }] }\n      tool: {"
    )
    last = """
    - step: last
      spec: { policy: { join: §all } }
      tool: { kind: noop }
    """
    assert_found("join-single", fragment.rstrip() + last)


@pytest.mark.parametrize(
    "fragment",
    [
        pytest.param(
            """
            - step: start
              next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }
            - step: a
              next: { arcs: [{ step: worker }] }
            - step: b
              next: { arcs: [{ step: worker }] }
            - step: worker
              tool: { kind: noop }
              next: { arcs: [{ step: end }] }
            - step: end
              spec: { policy: { join: all } }
              tool: { kind: noop }
            """,
            id="the step before runs several times",
        ),
        pytest.param(
            """
            - step: start
              next: { arcs: [{ step: again }] }
            - step: again
              spec: { policy: { join: all } }
              tool: { kind: noop }
              next: { arcs: [{ step: again, when: "{{ ctx.more }}" }] }
            """,
            id="tokens come again on a cycle",
        ),
        pytest.param(
            """
            - step: start
              next:
                spec: { mode: inclusive }
                arcs: [{ step: end }, { step: start, when: "{{ ctx.more }}" }]
            - step: end
              spec: { policy: { join: { count: 3 } } }
              tool: { kind: noop }
            """,
            id="a cycle that sends tokens on",
        ),
        pytest.param(
            """
            - step: start
              next: { spec: { mode: inclusive }, arcs: [{ step: end }, { step: a }] }
            - step: a
              next: { arcs: [{ step: end }] }
            - step: end
              spec: { policy: { join: any } }
              tool: { kind: noop }
            """,
            id="one way is shorter",
        ),
    ],
)
def test_joins_of_several_tokens(fragment: str) -> None:
    assert_clean(fragment)


def test_any_on_a_cycle_would_absorb_its_own_token() -> None:
    fragment = """
        - step: start
          next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }
        - step: a
          next: { arcs: [{ step: gather }] }
        - step: b
          next: { arcs: [{ step: gather }] }
        - step: gather
          spec: { policy: { join: §any } }
          tool: { kind: noop }
          next: { arcs: [{ step: a, when: "{{ ctx.more }}" }] }
        """
    (problem,) = assert_found("join-any-cycle", fragment)
    assert problem.severity == "error"
    assert_clean(fragment.replace("§any", "all"))


def test_joins_that_get_no_token_are_not_counted() -> None:
    reported = problems("""
        - step: start
          tool: { kind: noop }
        - step: lost
          spec: { policy: { join: all } }
          tool: { kind: noop }
        """)
    assert [problem.code for problem in reported] == ["unreachable-step"]
