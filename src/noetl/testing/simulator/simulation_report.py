"""A verdict in words."""

from noetl.testing.simulator.scenario import SimulatedScenario
from noetl.testing.simulator.simulation import SimulationVerdict

COMMAND = "python -m noetl.testing.simulator --seed"


def describe_scenario(scenario: SimulatedScenario) -> str:
    """The playbook, and what goes wrong around it."""
    faults = scenario.faults
    faults_set = [
        f"{name}={value if isinstance(value, int) else round(value, 3)}"
        for name in faults.__struct_fields__
        if (value := getattr(faults, name))
    ]
    operations = [f"{operation} at {moment:.3f} s" for moment, operation in scenario.operations]
    lines = [f"faults: {', '.join(faults_set)}", f"errors of tools: {scenario.errors}"]
    if operations:
        lines.append(f"operations: {', '.join(operations)}")
    if scenario.retry:
        lines.append("a failed execution is retried once")
    text = "\n".join(lines) + "\n\n" + scenario.document.text
    if "kind: playbook" in scenario.document.text:
        text += "".join(f"---\n{child.text}" for child in scenario.children)
    return text


def failure_report(failed: SimulationVerdict, shrunk: SimulationVerdict) -> str:
    """What is wrong with a seed, in its smallest form, and how to see it again."""
    seed = failed.scenario.seed
    return "\n".join(
        [
            f"seed {seed}: {failed.problem}",
            "",
            f"the smallest scenario found that fails: {shrunk.problem}",
            "",
            describe_scenario(shrunk.scenario),
            "the last steps:",
            *(f"{seconds:9.3f} {source}: {event}" for seconds, source, event in shrunk.trace),
            "",
            f"again: {COMMAND} {seed}",
        ]
    )
