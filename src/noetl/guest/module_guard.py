"""The modules that a child's own code rests on: what they name is put back after each task.

Code can replace whatever a module names, the functions of this package included. So what looks after a task
looks nothing up that the task could have replaced: a closure holds all it needs from the beginning.
"""

import gc
import sys
from collections.abc import Callable
from itertools import islice
from operator import attrgetter, is_
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

_OWN = "noetl"
_MODULES = frozenset(
    [
        "_signal",
        "_thread",
        "builtins",
        "contextlib",
        "fcntl",
        "functools",
        "gc",
        "linecache",
        "msgspec",
        "msgspec.msgpack",
        "msgspec.structs",
        "os",
        "pathlib",
        "posix",
        "posixpath",
        "resource",
        "select",
        "signal",
        "threading",
        "time",
        "traceback",
        "warnings",
    ]
)
"""Which our code calls after a task or at the beginning of the next. `sys` is looked at with the process."""
_EXAMINED = frozenset({"contextlib", "os"})
"""Those of them whose functions and classes are in Python, and run for every task."""
_HEAP_TYPE = 1 << 9
"""The flag of classes whose attributes can be set: those that Python code makes."""
_FUNCTION_PARTS = ("__code__", "__defaults__", "__kwdefaults__")


_HeldNames = tuple[bool, dict[str, Any], list[str], list[Any], str]
"""Of a module: whether it is ours, what it names, its names and values as they were, and its own name."""
_HeldClass = tuple[type, dict[str, Any], list[Any]]
"""A class with its attributes as they were, and the values of these."""


class ModuleGuard(NamedTuple):
    """Two functions that put back what modules name, and tell whether the process is fit for another task.

    It is not if our own names, or the insides of functions and classes, were changed: who does that may have
    done more. They are put back all the same, so that this task's answer gets out.

    `put_back` is for before the answer: it takes what is equal for the same, at a fifth of the time.
    `put_all_back` is for after it: an object may say that it is equal to everything.
    """

    put_back: Callable[[], bool]
    put_all_back: Callable[[], bool]


def guard_modules() -> ModuleGuard:
    """The guard of all that is as it is now."""
    guarded = {name: vars(sys.modules[name]) for name in sys.modules if name in _MODULES or _is_own(name)}
    for names in guarded.values():
        names.setdefault("__warningregistry__", {})  # or the first warning would add it
    held = [
        (_is_own(name), names, list(names), list(names.values()), name) for name, names in guarded.items()
    ]
    classes, functions = _parts([value for names in guarded.values() for value in names.values()])
    put_each_back = _make_put_each_back(held, classes, functions)
    every, over, same = all, map, is_  # a global or a built-in would be looked up when it may be another's
    # All that they hold, each in one call: to ask them one by one takes far longer.
    contents_of = gc.get_referents
    spaces = [*guarded.values(), *(contents_of(vars(cls))[0] for cls, _, _ in classes)]
    named, insides = contents_of(*spaces), contents_of(*functions)

    def put_back() -> bool:
        if contents_of(*spaces) == named and contents_of(*functions) == insides:
            return True
        intact = put_each_back()
        # A package may name a module more now, or a function have made its annotations.
        named[:], insides[:] = contents_of(*spaces), contents_of(*functions)
        return intact

    def put_all_back() -> bool:
        return every(over(same, named, contents_of(*spaces))) or put_each_back()

    return ModuleGuard(put_back, put_all_back)


def _make_put_each_back(
    held: list[_HeldNames], classes: list[_HeldClass], functions: list[FunctionType]
) -> Callable[[], bool]:
    """What looks at each of them by itself, puts back what differs, and tells whether ours was intact."""
    parts_of = attrgetter(*_FUNCTION_PARTS)
    function_parts, part_names = list(map(parts_of, functions)), _FUNCTION_PARTS
    # As above: a global or a built-in would be looked up when it may be another's.
    every, over, same, count, pairs, after, as_list, names_of = all, map, is_, len, zip, islice, list, vars
    modules, module_type, is_a, put, remove = sys.modules, ModuleType, isinstance, setattr, delattr

    def put_each_back() -> bool:
        intact = True
        for own, names, keys, values, name in held:
            if every(over(same, values, names.values())) and count(names) >= count(values):
                if count(names) == count(values):
                    continue
                # Importing a module makes it an attribute of its package.
                extra = as_list(after(names.items(), count(values), None))
                if every(
                    [
                        is_a(value, module_type) and modules.get(f"{name}.{key}") is value
                        for key, value in extra
                    ]
                ):
                    keys += [key for key, _ in extra]
                    values += [value for _, value in extra]
                    continue
            names.clear()
            names.update(pairs(keys, values))
            intact = intact and not own
        for cls, members, values in classes:
            current = names_of(cls)
            if count(current) == count(members) and every(over(same, values, current.values())):
                continue
            intact = False
            for key in [key for key in current if key not in members]:
                remove(cls, key)
            for key in [key for key in members if current.get(key) is not members[key]]:
                put(cls, key, members[key])
        if as_list(over(parts_of, functions)) != function_parts:
            intact = False
            for function, parts in pairs(functions, function_parts):
                for part, value in pairs(part_names, parts):
                    put(function, part, value)
        return intact

    return put_each_back


def _is_own(name: str) -> bool:
    return name.partition(".")[0] == _OWN


def _parts(values: list[Any]) -> tuple[list[_HeldClass], list[FunctionType]]:
    """The classes among the values with what they hold, and the functions, that run for every task."""
    kinds = [value for value in values if isinstance(value, type) and value.__flags__ & _HEAP_TYPE]
    classes = [
        (cls, dict(vars(cls)), list(vars(cls).values()))
        for cls in {id(cls): cls for cls in kinds if _is_examined(cls.__module__)}.values()
    ]
    everything = [*values, *(value for _, _, held in classes for value in held)]
    functions = {id(value): value for value in everything if isinstance(value, FunctionType)}
    return classes, [function for function in functions.values() if _is_examined(function.__module__)]


def _is_examined(name: str) -> bool:
    return name in _EXAMINED or _is_own(name)
