"""A tool kind of one's own, and a playbook that uses it, from Python.

Run it with: python examples/own_tool.py
"""

import noetl

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: temperatures, path: examples/temperatures }
workload: { cities: [Bern, Oslo] }
workflow:
  - step: start
    loop: { in: "{{ workload.cities }}", iterator: city }
    tool:
      - name: measure
        kind: thermometer
        city: "{{ iter.city }}"
"""


@noetl.tool("thermometer", effect="pure")
async def thermometer(city: str, unit: str = "C") -> dict[str, object]:
    """Says how warm it is somewhere."""
    if unit != "C":
        raise noetl.ToolError("input", f"no thermometer shows {unit}")
    return {"city": city, "degrees": 3 * len(city)}


if __name__ == "__main__":
    execution = noetl.run(PLAYBOOK, {"cities": ["Bern", "Lugano"]}, store="sqlite:///:memory:")
    print(execution.raise_for_status().result)
