/** Where a picture stands in its window: a point `p` of the picture is at `p * scale + (x, y)`. */
export interface View {
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Rect extends Size {
  readonly x: number;
  readonly y: number;
}

export const SMALLEST = 0.02;
export const LARGEST = 3;
const MARGIN = 24;
/** Above, where buttons lie over the window. */
export const TOP_MARGIN = 46;

/** The whole picture, in the middle and below the buttons; never larger than life. */
export function fitted(picture: Size, window: Size): View {
  const room = { width: Math.max(window.width - 2 * MARGIN, 1), height: Math.max(window.height - TOP_MARGIN - MARGIN, 1) };
  const scale = Math.max(
    SMALLEST,
    Math.min(1, room.width / Math.max(picture.width, 1), room.height / Math.max(picture.height, 1)),
  );
  return {
    scale,
    x: (window.width - picture.width * scale) / 2,
    y: Math.max((window.height - picture.height * scale) / 2, TOP_MARGIN),
  };
}

/** Larger or smaller by a factor; what is at this point of the window stays there. */
export function zoomed(view: View, factor: number, at: { x: number; y: number }): View {
  const scale = Math.min(LARGEST, Math.max(SMALLEST, view.scale * factor));
  const ratio = scale / view.scale;
  return { scale, x: at.x - (at.x - view.x) * ratio, y: at.y - (at.y - view.y) * ratio };
}

/** Moved, but never so far that nothing of the picture is left to be seen. */
export function panned(view: View, dx: number, dy: number, picture: Size, window: Size): View {
  const keep = 48;
  const bound = (value: number, length: number, room: number) =>
    Math.min(room - keep, Math.max(keep - length, value));
  return {
    scale: view.scale,
    x: bound(view.x + dx, picture.width * view.scale, window.width),
    y: bound(view.y + dy, picture.height * view.scale, window.height),
  };
}

/** A view as the URL has it: its scale, and which point of the picture is in the middle of the window. */
export function viewText(view: View, window: Size): string {
  const middle = { x: (window.width / 2 - view.x) / view.scale, y: (window.height / 2 - view.y) / view.scale };
  return `${Number(view.scale.toFixed(3))},${Math.round(middle.x)},${Math.round(middle.y)}`;
}

/** The view that a text means in this window, with something of the picture in it; null if it means none. */
export function viewOfText(text: string | null, picture: Size, window: Size): View | null {
  const numbers = /^\d+(\.\d+)?(,-?\d+){2}$/.test(text ?? "") ? text!.split(",").map(Number) : null;
  if (!numbers) return null;
  const scale = Math.min(LARGEST, Math.max(SMALLEST, numbers[0]!));
  const view = { scale, x: window.width / 2 - numbers[1]! * scale, y: window.height / 2 - numbers[2]! * scale };
  return panned(view, 0, 0, picture, window);
}

/** The part of the picture that the window shows. */
export function shownPart(view: View, window: Size): Rect {
  return {
    x: -view.x / view.scale,
    y: -view.y / view.scale,
    width: window.width / view.scale,
    height: window.height / view.scale,
  };
}

/** The same view if a box is within the window, else one with the box in the middle at a readable size. */
export function revealed(view: View, box: Rect, window: Size): View {
  const left = box.x * view.scale + view.x;
  const top = box.y * view.scale + view.y;
  const right = left + box.width * view.scale;
  const bottom = top + box.height * view.scale;
  if (left >= 0 && top >= 0 && right <= window.width && bottom <= window.height) return view;
  const scale = Math.max(view.scale, 0.6);
  return {
    scale,
    x: window.width / 2 - (box.x + box.width / 2) * scale,
    y: window.height / 2 - (box.y + box.height / 2) * scale,
  };
}

export function overlaps(a: Rect, b: Rect): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}
