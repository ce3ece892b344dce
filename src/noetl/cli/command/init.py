"""`noetl init`."""

import re
from pathlib import PurePath
from shlex import quote

import click

from noetl.cli import console, options
from noetl.cli.file_access import create_file, write_file
from noetl.settings import read_settings

FIRST = """\
apiVersion: noetl.io/v2
kind: Playbook

metadata:
  name: NAME
  path: examples/NAME
  description: A first playbook. It greets, and takes one of two ways.

# What a run starts with; a request may override it.
workload:
  name: World
  excited: true

workflow:
  - step: start
    desc: Pure routing, the first arc whose condition holds is taken.
    next:
      arcs:
        - step: cheer
          when: "{{ workload.excited }}"
        - step: greet

  - step: cheer
    tool:
      - name: say
        kind: python
        args: { name: "{{ workload.name }}" }
        code: |
          result = {"greeting": f"Hello, {name}!"}

  - step: greet
    tool:
      - name: say
        kind: python
        args: { name: "{{ workload.name }}" }
        code: |
          result = {"greeting": f"Hello {name}."}
"""


@click.command()
@click.argument("file", type=options.FileName(), default="playbook.yaml")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@options.output
def init(file: str, output: str | None, *, force: bool) -> None:
    """Write a first playbook to start from.

    FILE is `playbook.yaml` unless given. It is not overwritten without `--force`.
    """
    settings = read_settings({"output": output}).settings
    name = re.sub(r"\W+", "_", PurePath(file).stem, flags=re.ASCII).strip("_") or "first"
    if not name[0].isalpha() or name.lower() in ("true", "false", "null"):
        # YAML would read `2024` as a number.
        name = f"playbook_{name}"
    data = FIRST.replace("NAME", name).encode()
    if force:
        write_file(file, data)
    else:
        create_file(file, data)
    if settings.output == "json":
        console.write_json({"file": file})
    else:
        console.say(f"wrote {console.visible(file)}; next: noetl validate {console.visible(quote(file))}")
