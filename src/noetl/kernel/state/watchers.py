"""Which parked tokens a change concerns: found by what their rules read, not by asking them all."""

from collections.abc import Iterable, Iterator

from noetl.kernel.plan import Watch
from noetl.kernel.state.variables import Path

Watchers = dict[str, dict[str, dict[str, None]]]
"""Tokens by `space.key` and the key below it; "" stands for everything from there on."""


def watch(watchers: Watchers, token: str, watches: Iterable[Watch]) -> None:
    for space, key, below in watches:
        watchers.setdefault(f"{space}.{key}", {}).setdefault(below, {})[token] = None


def unwatch(watchers: Watchers, token: str, watches: Iterable[Watch]) -> None:
    for space, key, below in watches:
        variable = f"{space}.{key}"
        levels = watchers.get(variable, {})
        tokens = levels.get(below, {})
        tokens.pop(token, None)
        if not tokens:
            levels.pop(below, None)
        if not levels:
            watchers.pop(variable, None)


# The fast path of asking all parked tokens again after every write, which is quadratic where many wait.
# test_kernel_fast_paths.py holds that it finds all whose rules read what was written.
def watching_tokens(watchers: Watchers, space: str, path: Path) -> Iterator[str]:
    """The tokens that watch this path, something above it, or something below it."""
    for variable in (f"{space}.", f"{space}.{path[0]}"):
        levels = watchers.get(variable)
        if not levels:
            continue
        if len(path) == 1:
            for tokens in levels.values():
                yield from tokens
        else:
            yield from levels.get("", ())
            yield from levels.get(path[1], ())
