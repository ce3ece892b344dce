"""The order of cells within their layers, with few crossings."""

from noetl.graph.layout.strands import Cell, LayeredGraph, Strand

SWEEPS = 16
PATIENCE = 4
SIDEWAYS = 0.4
"""A strand at a box's left side counts as this much further left than the box."""


def order_layers(web: LayeredGraph, root: Cell) -> None:
    """Orders every layer in place and numbers its cells; equal webs get equal orders."""
    layers = web.layers
    _start(layers, root)
    best = [list(layer) for layer in layers]
    fewest = count_crossings(layers)
    stale = 0
    for sweep in range(SWEEPS):
        if fewest == 0 or stale == PATIENCE:
            break
        _sweep(layers, downwards=sweep % 2 == 0)
        _exchange(layers)
        count = count_crossings(layers)
        stale += 1
        if count < fewest:
            best, fewest, stale = [list(layer) for layer in layers], count, 0
    for layer, order in zip(layers, best, strict=True):
        layer[:] = order
        _number(layer)


def count_crossings(layers: list[list[Cell]]) -> int:
    """What all crossings between neighbouring layers cost together."""
    total = 0
    for layer in layers[:-1]:
        strands = [strand for cell in layer for strand in cell.below]
        ends = sorted((_upper(strand), _lower(strand), strand.cost) for strand in strands)
        places = {end: place for place, end in enumerate(sorted({end for _, end, _ in ends}), start=1)}
        tree = [0] * (len(places) + 1)
        passed = 0
        for _, end, cost in ends:
            place, before = places[end], 0
            while place:
                before += tree[place]
                place &= place - 1
            total += cost * (passed - before)
            passed += cost
            place = places[end]
            while place < len(tree):
                tree[place] += cost
                place += place & -place
    return total


def _upper(strand: Strand) -> float:
    cell = strand.upper
    return cell.position - SIDEWAYS if strand.back and cell.kind == "box" else cell.position


def _lower(strand: Strand) -> float:
    cell = strand.lower
    return cell.position - SIDEWAYS if strand.back and cell.kind == "box" else cell.position


def _number(layer: list[Cell]) -> None:
    for position, cell in enumerate(layer):
        cell.position = position


def _start(layers: list[list[Cell]], root: Cell) -> None:
    """Depth first from the root, so that what belongs together starts together, in arc order."""
    found: list[list[Cell]] = [[] for _ in layers]
    seen: set[Cell] = set()
    for start in (root, *(cell for layer in layers for cell in layer)):
        stack = [start]
        while stack:
            cell = stack.pop()
            if cell in seen:
                continue
            seen.add(cell)
            found[cell.layer].append(cell)
            stack.extend(strand.lower for strand in reversed(cell.below))
    for layer, order in zip(layers, found, strict=True):
        layer[:] = order
        _number(layer)


def _sweep(layers: list[list[Cell]], *, downwards: bool) -> None:
    """Sorts each layer by where its neighbours in the layer before stand on average."""
    for layer in layers if downwards else reversed(layers):
        wish: dict[Cell, float] = {}
        for cell in layer:
            strands, place = (cell.above, _upper) if downwards else (cell.below, _lower)
            total = sum(strand.weight for strand in strands)
            wish[cell] = sum(place(s) * s.weight for s in strands) / total if total else cell.position
        layer.sort(key=wish.__getitem__)
        _number(layer)


def _exchange(layers: list[list[Cell]]) -> None:
    """Swaps neighbours wherever that alone removes crossings."""
    for layer in layers:
        for place in range(len(layer) - 1):
            one, two = layer[place], layer[place + 1]
            kept = _pair(one, two)
            if kept and _pair(two, one) < kept:
                layer[place], layer[place + 1] = two, one
                one.position, two.position = two.position, one.position


def _pair(left: Cell, right: Cell) -> int:
    """The cost of crossings between the strands of two neighbours, `left` standing before `right`."""
    above = _inversions([(_upper(s), s.cost) for s in left.above], [(_upper(s), s.cost) for s in right.above])
    below = _inversions([(_lower(s), s.cost) for s in left.below], [(_lower(s), s.cost) for s in right.below])
    return above + below


def _inversions(left: list[tuple[float, int]], right: list[tuple[float, int]]) -> int:
    if not left or not right or max(left)[0] <= min(right)[0]:
        return 0
    return sum(cost * price for end, cost in left for other, price in right if other < end)
