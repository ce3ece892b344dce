"""The picture as numbers: what the page draws is what `noetl graph` does."""

from collections.abc import Iterator

import msgspec

from noetl.dsl.document.playbook import Playbook, Step
from noetl.graph.card import Card
from noetl.graph.layout import Rect, Route
from noetl.graph.picture import PictureEdge, PictureNode, picture_of
from noetl.graph.picture_layout import EdgeLabel, drawing_of
from noetl.ports.page_api import (
    NetAnswer,
    NetBadge,
    NetBox,
    NetIcon,
    NetLabel,
    NetMark,
    NetPill,
    NetRoute,
    NetTask,
    NetText,
    PicturePoint,
)


def net_of(playbook: Playbook) -> NetAnswer:
    """Where steps and arcs of a playbook are, and what is on them. A thousand steps take about a second."""
    picture = picture_of(playbook)
    cards, labels, plan = drawing_of(picture)
    boxes = [
        _box(step, node, card, box)
        for step, node, card, box in zip(playbook.workflow, picture.nodes, cards, plan.boxes, strict=True)
    ]
    routes = [
        _route(playbook, number, edge, route, label)
        for number, edge, route, label in zip(
            _arc_numbers(playbook), picture.edges, plan.routes, labels, strict=True
        )
    ]
    return NetAnswer(
        hash=playbook.hash,
        title=picture.title,
        path=playbook.metadata.path,
        entry=playbook.entry,
        width=plan.width,
        height=plan.height,
        boxes=boxes,
        routes=routes,
    )


def _arc_numbers(playbook: Playbook) -> Iterator[int]:
    """Of the edges of the picture, each within its step: what leads to no step is not drawn."""
    names = {step.name for step in playbook.workflow}
    for step in playbook.workflow:
        yield from (number for number, arc in enumerate(step.arcs) if arc.step in names)


def _box(step: Step, node: PictureNode, card: Card, box: Rect) -> NetBox:
    return NetBox(
        step=step.name,
        desc=node.desc,
        line=step.position.line,
        roles=list(node.roles),
        badges=msgspec.convert(node.badges, list[NetBadge], from_attributes=True),
        tasks=[
            NetTask(
                label=task.label,
                kind=task.kind,
                marks=msgspec.convert(row.marks, list[NetMark], from_attributes=True),
                line=task.position.line,
            )
            for task, row in zip(step.tasks, node.rows, strict=True)
        ],
        inclusive=node.inclusive,
        x=box.x,
        y=box.y,
        width=box.width,
        height=box.height,
        stack=card.stack,
        texts=msgspec.convert(card.texts, list[NetText], from_attributes=True),
        icons=msgspec.convert(card.icons, list[NetIcon], from_attributes=True),
        pills=msgspec.convert(card.pills, list[NetPill], from_attributes=True),
        rule=card.rule,
        dots=list(card.dots),
    )


def _route(
    playbook: Playbook, number: int, edge: PictureEdge, route: Route, label: EdgeLabel | None
) -> NetRoute:
    return NetRoute(
        source=playbook.workflow[edge.source].name,
        target=playbook.workflow[edge.target].name,
        number=number,
        guard=edge.guard,
        text=edge.text,
        mark=edge.mark,
        order=edge.order,
        failure=edge.failure,
        points=[_rounded(point) for point in route.points],
        merges=_rounded(route.merges) if route.merges is not None else None,
        label=_net_label(label, route.label) if label is not None and route.label is not None else None,
    )


def _net_label(label: EdgeLabel, rect: Rect) -> NetLabel:
    return NetLabel(x=rect.x, y=rect.y, width=rect.width, height=rect.height, lines=list(label.lines))


def _rounded(point: PicturePoint) -> PicturePoint:
    """As the SVG has it: a tenth of a pixel."""
    return round(point[0], 1), round(point[1], 1)
