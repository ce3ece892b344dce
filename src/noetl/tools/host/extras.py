"""The extras of this package: the drivers that some kinds need."""

import re
from collections.abc import Iterator

_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w.,-]+)\])?.*;.*\bextra\s*==\s*['\"](?P<extra>[\w.-]+)['\"]"
)


def install_command(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'noetl[{extra}]'"


def missing_packages(extra: str) -> tuple[str, ...]:
    """The packages of an extra that are not installed. Imports none of them."""
    return tuple(dict.fromkeys(name for name in _packages(extra) if not _is_installed(name)))


def _packages(extra: str) -> Iterator[str]:
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 - slow, and few ask for extras

    try:
        lines = requires("noetl") or []
    except PackageNotFoundError:  # run from its sources: nobody says what an extra holds
        return
    for line in lines:
        if (requirement := _REQUIREMENT.match(line)) and requirement["extra"] == extra:
            if requirement["name"] == "noetl":
                for inner in (requirement["extras"] or "").split(","):
                    yield from _packages(inner)
            else:
                yield requirement["name"]


def _is_installed(name: str) -> bool:
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 - likewise

    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
