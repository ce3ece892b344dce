"""Results of loops in chunks: written as they come, so that a long loop stays small in memory."""

from operator import itemgetter
from typing import Any

from msgspec import structs

from noetl.events.bodies import EventBody, LoopDone, LoopIterationCompleted
from noetl.kernel.references.reference_builder import ReferenceBuilder, value_preview
from noetl.kernel.result_rules import ResultRules
from noetl.kernel.server_reads import NOTHING
from noetl.kernel.state.execution_state import Blob, LoopBytes, PendingEffects
from noetl.kernel.state.run_state import LoopState, RunState
from noetl.model.reference import encode_value, is_reference, manifest, split_chunk

LIMITS_IN_CHUNK = 4
"""Results are stored when they take so many times what one value may take: 256 KiB."""

CHUNKS_OF_ONE_SIZE = 200
"""After so many they become twice as large: the 1,400 that an event has room for hold 6 GB."""


def add_chunk(
    run: RunState, body: LoopIterationCompleted, size: int, pending: PendingEffects
) -> tuple[LoopIterationCompleted, list[Blob]]:
    """The end of an iteration; with a chunk if it is time to store what the loop holds.

    `size` is about what this result takes. Stored is what has ended without a gap from the beginning;
    not what a retry might still replace.
    """
    loop = run.loop
    if loop is None or body.index < loop.base:
        return body, []
    # Remembered beside the state: to count a loop's results anew for each iteration would be quadratic.
    held = pending.loop_bytes.get(run.id)
    if held is None:
        held = pending.loop_bytes[run.id] = _count_held(loop)
    if body.index != loop.low:
        held.behind_gap[body.index] = size  # it waits for one before it
        return body, []
    held.before_gap += size
    if held.behind_gap:  # not in a loop that goes in order, where this is asked of every iteration
        closed = range(body.index + 1, _low_after(loop, body.index))
        held.before_gap += sum([held.behind_gap.pop(index, 0) for index in closed])
    # They double: the event that ends the loop names all chunks, and has a limit, too.
    most = run.step.rules.limit * LIMITS_IN_CHUNK << len(loop.chunks) // CHUNKS_OF_ONE_SIZE
    if held.before_gap <= most:
        return body, []
    chunked, blobs = force_chunk(run, body)
    if chunked.chunk is None:
        return body, []
    if chunked.chunk["size"] * 2 <= most:
        held.before_gap = chunked.chunk["size"]  # the estimate was too high
        return body, []
    held.before_gap = 0
    return chunked, blobs


def _count_held(loop: LoopState) -> LoopBytes:
    held = LoopBytes()
    for index, result in enumerate(loop.results, loop.base):
        if index < loop.low:
            held.before_gap += len(encode_value(result))
        elif index in loop.ended:
            held.behind_gap[index] = len(encode_value(result))
    return held


def without_results(body: EventBody) -> EventBody:
    """What a worker folds: what an iteration gave is kept by the server, and never sent again."""
    if isinstance(body, LoopIterationCompleted):
        return structs.replace(body, result=None, contributions=(), chunk=None)
    return body


def force_chunk(run: RunState, body: LoopIterationCompleted) -> tuple[LoopIterationCompleted, list[Blob]]:
    """The end of an iteration with a chunk of all that can be stored by then, however little it is."""
    loop = run.loop
    if loop is None or body.index != loop.low or body.status != "success" or body.index < loop.base:
        return body, []
    end = min(_low_after(loop, body.index), *loop.failed_frames, loop.total)
    if end <= body.index:
        return body, []
    results = loop.results[: end - loop.base]
    results += [None] * (end - loop.base - len(results))
    results[body.index - loop.base] = body.result
    builder = ReferenceBuilder(run.inputs.execution_id, NOTHING)
    chunk = builder.store_chunk(results, loop.base, run.step.rules)
    if selected := _select(run, results, loop.base):
        chunk["selected"] = selected
    return structs.replace(body, chunk=chunk), list(builder.blobs.values())


def _low_after(loop: LoopState, index: int) -> int:
    """The first iteration that has not ended, once this one has."""
    low = index + 1
    while low in loop.ended:
        low += 1
    return low


def add_manifest(run: RunState, body: LoopDone, pending: PendingEffects) -> tuple[LoopDone, list[Blob]]:
    """The end of a loop with its results, which were recorded as they came; a manifest if they are many."""
    loop, rules = run.loop, run.step.rules
    pending.loop_bytes.pop(run.id, None)
    if loop is None:
        return body, []
    data = b""
    results = [*loop.results, *[None] * (loop.total - loop.base - len(loop.results))]
    if not loop.chunks:
        data = encode_value(results)
        if len(data) <= rules.limit:
            return structs.replace(body, result=results), []
    builder = ReferenceBuilder(run.inputs.execution_id, NOTHING)
    chunks = _with_redone(loop, builder, rules)
    if results:
        chunks.append(builder.store_chunk(results, loop.base, rules))
        data = data or encode_value(results[:100])
    plain = [{name: value for name, value in chunk.items() if name != "selected"} for chunk in chunks]
    result = {**manifest(plain, value_preview(data, rules.preview)), **rules.reference_fields}
    pieces = [chunk.get("selected", {}) for chunk in chunks]
    if gathered := _gather_selected(run, [*pieces, _select(run, results, loop.base)]):
        result |= {"extracted": builder.externalize_selected(gathered, rules), "selected": list(gathered)}
    return structs.replace(body, result=result), list(builder.blobs.values())


def _with_redone(loop: LoopState, builder: ReferenceBuilder, rules: ResultRules) -> list[dict[str, Any]]:
    """The chunks so far; what was redriven since stands between their parts, in chunks of its own."""
    if not loop.redone:
        return list(loop.chunks)
    chunks: list[dict[str, Any]] = []
    for chunk in loop.chunks:
        redone = [index for index in sorted(loop.redone) if chunk["from"] <= index < chunk["to"]]
        chunks += split_chunk(chunk, redone)
        chunks += [builder.store_chunk([loop.redone[index]], index, rules) for index in redone]
    return sorted(chunks, key=itemgetter("from"))


def _select(run: RunState, results: list[Any], start: int) -> dict[str, list[Any]]:
    """What `spec.result.select` finds in these results, by name."""
    if not run.step.selections or run.loop is None:
        return {}
    # Of a result that is itself stored, what was kept at hand.
    at_hand = [result.get("extracted", {}) if is_reference(result) else result for result in results]
    return {
        selection.name: values
        for selection in run.step.selections
        if (values := selection.find_in_chunk(at_hand, start, run.loop.total))
    }


def _gather_selected(run: RunState, pieces: list[dict[str, list[Any]]]) -> dict[str, Any]:
    """What was found in all parts of the list."""
    gathered: dict[str, Any] = {}
    for selection in run.step.selections:
        values = [value for piece in pieces for value in piece.get(selection.name, ())]
        if selection.singular and not values:
            continue
        gathered[selection.name] = values[0] if selection.singular else values
    return gathered
