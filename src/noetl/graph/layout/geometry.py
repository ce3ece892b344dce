"""What the layout is given and what it answers: sizes and links in, rectangles and routes out."""

from typing import TypeAlias

from msgspec import Struct

Point: TypeAlias = tuple[float, float]


class BoxSize(Struct, frozen=True):
    width: float
    height: float


class BoxLink(Struct, frozen=True):
    """An arrow from box to box, by their numbers. Links of one kind may share their way to a target."""

    source: int
    target: int
    kind: str = ""
    label: BoxSize | None = None


class Rect(Struct, frozen=True):
    """A rectangle; x grows to the right, y downwards."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


class Route(Struct, frozen=True):
    """Horizontal and vertical lines from the border of one box to the border of another.

    `merges` is the point on it from which an earlier route of the same kind runs the rest of the way.
    """

    points: tuple[Point, ...]
    label: Rect | None = None
    merges: Point | None = None


class Layout(Struct, frozen=True):
    """Boxes and routes in the order in which sizes and links were given."""

    width: float
    height: float
    boxes: tuple[Rect, ...]
    routes: tuple[Route, ...]
