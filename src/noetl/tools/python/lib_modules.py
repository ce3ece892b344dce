"""Whether the modules are here that `python` tasks import by `libs`: looked for before anything runs."""

import asyncio
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from noetl.dsl.document.playbook import Step, Task
from noetl.expr.template import Constant, MappingTemplate, Template
from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo
from noetl.tools.host.worker_tools import UnrunnableTask

IMPORT_SECONDS = 30.0
"""How long an import may take that tells whether a module is here; who takes longer is here."""

_IMPORT = """\
import sys
try:
    __import__(sys.argv[1])
except ModuleNotFoundError:
    sys.exit(3)
"""
_NOT_FOUND = 3


class _NamedModule(NamedTuple):
    """A module, and what is imported from it, if not itself."""

    module: str
    thing: str = ""


def names_modules(steps: Iterable[Step]) -> bool:
    """Whether a task of these steps names a module by a constant."""
    return any(True for step in steps for task in step.tasks for _ in _named_modules(task))


def tasks_without_modules(steps: Iterable[Step], folder: str) -> tuple[UnrunnableTask, ...]:
    """The tasks with a module that is not here, once for each, in document order.

    `folder` is that of the playbook. Names that are known only when a task runs are not looked for.
    """
    return tuple(
        _without_module(step, task, named)
        for step in steps
        for task in step.tasks
        for named in _named_modules(task)
        if not _is_here(named, _script_folders(task, folder))
    )


async def find_module_error(steps: Iterable[Step], folder: str) -> ErrorInfo | None:
    """Why these steps of a playbook cannot run: a module that they name is not here."""
    steps = tuple(steps)
    if not names_modules(steps):
        return None
    unrunnable = await asyncio.to_thread(tasks_without_modules, steps, folder)
    if not unrunnable:
        return None
    reasons = [f"task `{task.task}` of step `{task.step}`: {task.reason}; {task.hint}" for task in unrunnable]
    return ErrorInfo(kind="not_found", message="; ".join(reasons))


def _named_modules(task: Task) -> Iterator[_NamedModule]:
    if task.kind != "python" or (libs := task.inputs.get("libs")) is None:
        return
    for lib in _values(libs):
        match lib:
            case str():
                yield _NamedModule(lib)
            case {"from": str() as module, **rest}:
                thing = rest.get("import")
                yield _NamedModule(module, thing if isinstance(thing, str) else "")


def _values(libs: Template) -> Iterator[Json]:
    """The values of a mapping that are no expressions."""
    if isinstance(libs, MappingTemplate):
        yield from (entry.value for entry in libs.entries.values() if isinstance(entry, Constant))
    elif isinstance(libs, Constant) and isinstance(libs.value, dict):
        yield from libs.value.values()


def _is_here(named: _NamedModule, folders: list[str] | None) -> bool:
    if folders is None:  # only the task knows where its script lies
        return True
    importlib.invalidate_caches()  # it may have been installed since this process looked last
    name, spec = named.module, None
    packages = name.split(".")
    try:
        spec = find_spec(packages[0]) or PathFinder.find_spec(packages[0], folders)
    except (ImportError, ValueError):
        return True  # loaded without saying from where, as `__main__`
    if spec is None:
        return False
    if named.thing and _is_namespace(spec):  # there is nothing in it but modules
        packages.append(named.thing)
    for depth in range(2, len(packages) + 1):
        path = spec.submodule_search_locations
        inner = PathFinder.find_spec(".".join(packages[:depth]), list(path)) if path is not None else None
        if inner is None:
            return _can_be_imported(".".join(packages))
        spec = inner
    return True


def _is_namespace(spec: ModuleSpec) -> bool:
    return spec.submodule_search_locations is not None and spec.origin is None


def _can_be_imported(name: str) -> bool:
    """By importing it in a process of its own: a package may make modules that are no files, as `os.path`."""
    import subprocess  # noqa: PLC0415 - slow to import, and hardly ever needed

    command = [sys.executable, "-P", "-c", _IMPORT, name]
    try:
        done = subprocess.run(  # noqa: S603 - ourselves
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=IMPORT_SECONDS, check=False
        )
    except (subprocess.TimeoutExpired, OSError):
        return True
    return done.returncode != _NOT_FOUND


def _script_folders(task: Task, folder: str) -> list[str] | None:
    """Where a script can import from beside the rest: its own folder. None if that is computed."""
    if (script := task.inputs.get("script")) is None:
        return []
    if not isinstance(script, Constant):
        return None
    uri = script.value.get("uri") if isinstance(script.value, dict) else script.value
    if not isinstance(uri, str) or (":" in uri and not uri.startswith("file://")):
        return []
    path = Path(uri.removeprefix("file://"))
    return [str((Path(start) / path).parent.absolute()) for start in (folder, os.getcwd())]


def _without_module(step: Step, task: Task, named: _NamedModule) -> UnrunnableTask:
    from noetl.dsl.dialects.in_use.in_use_code import likely_package  # noqa: PLC0415 - only where one is missing

    name = f"{named.module}.{named.thing}" if named.thing else named.module
    return UnrunnableTask(
        step=step.name,
        task=task.label,
        kind=task.kind,
        position=task.position,
        reason=f"`libs` names the module `{named.module}`, which is not installed"
        if not named.thing
        else f"`libs` names `{name}`, which is not installed",
        hint="install the package that brings it"
        + (
            f": `{sys.executable} -m pip install {package}`"
            if (package := likely_package(named.module))
            else ""
        ),
    )
