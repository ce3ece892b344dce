"""The workloads on NoETL and on its peers, in turns, the best of three rounds.

A round measures every side after the other, and every workload is a process of its own, so that all sides
see the same minutes of the machine. What does not exist or fails leaves its cell empty and says why.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.measurement import Measurement
from bench.peers.peer import Peer, Unavailable, Worker, environment
from bench.workloads import TITLES

OURS = "noetl"
ROUNDS = 3
SECONDS = 120
"""How long one workload may take in one round."""


class Comparison(NamedTuple):
    """`best[workload][side]`; `reasons` say which cells are empty because something failed."""

    best: dict[str, dict[str, Measurement]]
    versions: dict[str, dict[str, str]]
    reasons: dict[str, str]

    def add(self, workload: str, side: str, measurement: Measurement) -> None:
        """Keeps the better of two rows."""
        cells = self.best.setdefault(workload, {})
        if side not in cells or measurement.value < cells[side].value:
            cells[side] = measurement


def our_workloads() -> list[str]:
    """The modules `bench/workloads/w*.py`."""
    return sorted(path.stem for path in (Path(__file__).parent / "workloads").glob("w*.py"))


def compare(peers: Sequence[Peer], folder: Path) -> Comparison:
    """Measures us and every peer, in turns; peers are installed below `folder` first."""
    comparison = Comparison({}, {}, {})
    folder = folder.absolute()
    usable = [peer for peer in peers if _prepare(peer, folder / peer.NAME, comparison)]
    ours = Worker([sys.executable, "-m", "bench.workloads"], environment())
    for number in range(ROUNDS):
        _print_progress(f"round {number + 1} of {ROUNDS}: {OURS}")
        _measure(OURS, ours, our_workloads(), comparison)
        for peer in usable:
            _print_progress(f"round {number + 1} of {ROUNDS}: {peer.NAME}")
            _measure_peer(peer, folder / peer.NAME, comparison)
    return comparison


def _prepare(peer: Peer, folder: Path, comparison: Comparison) -> bool:
    _print_progress(f"{peer.NAME}: installing, if it is not there")
    try:
        peer.install(folder)
        comparison.versions[peer.NAME] = peer.versions(folder)
    except Unavailable as error:
        comparison.reasons[peer.NAME] = f"not installed: {error}"
        return False
    return True


def _measure_peer(peer: Peer, folder: Path, comparison: Comparison) -> None:
    """A new server for each workload: what one leaves behind in it would slow down the next."""
    for workload in TITLES:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as data:
            try:
                with peer.serve(folder, Path(data)) as worker:
                    _measure(peer.NAME, worker, [workload], comparison)
            except Unavailable as error:
                comparison.reasons[f"{peer.NAME} {workload}"] = f"not started: {error}"


def _measure(side: str, worker: Worker, workloads: Sequence[str], comparison: Comparison) -> None:
    for workload in workloads:
        try:
            done = subprocess.run(
                [*worker.command, workload],
                env=worker.environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=True,
            )
            measurement = read_measurement(json.loads(done.stdout.splitlines()[-1]))
            _print_progress(f"  {workload} {measurement.value:,.1f} {measurement.unit}")
            comparison.add(workload, side, measurement)
        except subprocess.TimeoutExpired:
            comparison.reasons[f"{side} {workload}"] = f"took longer than {SECONDS} s"
        except subprocess.CalledProcessError as error:
            comparison.reasons[f"{side} {workload}"] = " ".join(error.stderr.strip().splitlines()[-2:])


def read_measurement(fields: dict[str, object]) -> Measurement:
    """A line of a peer's worker, or a row of ours."""
    match fields:
        case {"workload": str(name), "seconds": float(seconds), "n": int(n), **other_fields}:
            measurement = Measurement(name, seconds * 1e3, "ms", n=n)
        case {
            "workload": str(name),
            "p50_ms": float(middle),
            "p95_ms": float(p95),
            "n": int(n),
            **other_fields,
        }:
            measurement = Measurement(name, middle, "ms", n=n, p95=p95)
        case {"name": str(name), "value": int(value) | float(value), "unit": str(unit), **other_fields}:
            return _our_measurement(Measurement(name, value, unit), other_fields)
        case _:
            raise ValueError(f"not a measured row: {fields}")
    return measurement._replace(durability=str(other_fields["durability"]), note=str(other_fields["note"]))


MILLISECONDS = {"s": 1e3, "ms": 1.0, "µs": 1e-3}


def _our_measurement(measurement: Measurement, other_fields: dict[str, object]) -> Measurement:
    measurement = Measurement(**{**measurement._asdict(), **other_fields})
    scale = MILLISECONDS.get(measurement.unit)
    if scale is None:
        return measurement
    p95 = None if measurement.p95 is None else measurement.p95 * scale
    return measurement._replace(value=measurement.value * scale, unit="ms", p95=p95)


def table(comparison: Comparison, sides: Sequence[str]) -> Iterator[str]:
    """Lines: a workload each, milliseconds of every side, and in brackets how many times ours it takes."""
    titles = {**dict.fromkeys(sorted(comparison.best), ""), **TITLES}
    lines = [["", "milliseconds", *sides]]
    for workload in sorted(titles):
        cells = comparison.best.get(workload, {})
        ours = cells.get(OURS)
        title = TITLES.get(workload) or (ours.name if ours else "")
        if workload not in TITLES and ours is not None and ours.unit != "ms":
            title += f" ({ours.unit})"
        latency = any(measurement.p95 is not None for measurement in cells.values())
        values = {side: measurement.value for side, measurement in cells.items()}
        lines.append([workload, title + (", p50" if latency else ""), *_cells(values, sides)])
        if latency:
            tails = {
                side: measurement.p95 for side, measurement in cells.items() if measurement.p95 is not None
            }
            lines.append(["", title + ", p95", *_cells(tails, sides)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(sides) + 2)]
    for line in lines:
        left = [cell.ljust(width) for cell, width in zip(line[:2], widths, strict=False)]
        right = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        yield "  ".join(left + right).rstrip()


def _cells(values: dict[str, float], sides: Sequence[str]) -> Iterator[str]:
    ours = values.get(OURS)
    for side in sides:
        value = values.get(side)
        if value is None:
            yield ""
        elif side == OURS or ours is None:
            yield f"{value:,.1f}"
        else:
            yield f"{value:,.1f} ({value / ours:,.1f}x)"


def notes(comparison: Comparison) -> Iterator[str]:
    """What each side promises about durability, what was scaled, and what failed."""
    for workload, cells in sorted(comparison.best.items()):
        for side, measurement in cells.items():
            remarks = "; ".join(part for part in (measurement.durability, measurement.note) if part)
            if remarks:
                yield f"{workload} {side}: {remarks}"
    yield from (f"{cell}: {reason}" for cell, reason in sorted(comparison.reasons.items()))


def _print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
