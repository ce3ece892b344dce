/** Small drawings, about 11 pixels wide around their middle: a font may lack glyphs for them. */
type Drawing = (context: CanvasRenderingContext2D) => void;

function stroke(path: string): Drawing {
  const shape = new Path2D(path);
  return (context) => {
    context.lineWidth = 1.6;
    context.lineCap = "round";
    context.lineJoin = "round";
    context.stroke(shape);
  };
}

function fill(path: string): Drawing {
  const shape = new Path2D(path);
  return (context) => context.fill(shape);
}

const TURN = "M4 -1.5A4.3 4.3 0 1 0 4.2 1.4M4.4 -4.6V-1.4H1.2";
let drawings: Readonly<Record<string, Drawing>> | null = null;

/** Made when the first is drawn: there is no `Path2D` where unit tests run. */
function made(): Readonly<Record<string, Drawing>> {
  drawings ??= {
    admit: fill("M0 -5.5L5.5 0L0 5.5L-5.5 0Z"),
    join: stroke("M-4.5 -5V-3Q-4.5 0 0 0Q4.5 0 4.5 -3V-5M0 0V5"),
    loop: stroke(TURN),
    retry: stroke(TURN),
    jump: stroke("M-2 -5L-5 -2L-2 1M-4.6 -2H1.5Q5 -2 5 1.2V4.5"),
    break: fill("M-4 -4H4V4H-4Z"),
    done: stroke("M-4 0.4L-1.3 3.2L4.2 -3.2"),
    completed: stroke("M-5 0.4L-1.6 3.8L5 -3.8"),
    failed: stroke("M-3.8 -3.8L3.8 3.8M3.8 -3.8L-3.8 3.8"),
    running: fill("M-3.5 -5L5 0L-3.5 5Z"),
    ready: stroke("M0 -4.6A4.6 4.6 0 0 1 4.5 -0.8M4 2.3A4.6 4.6 0 0 1 -1.6 4.3M-4 2.3A4.6 4.6 0 0 1 -3 -3.5"),
    waiting: fill("M-4 -5H-1V5H-4ZM1 -5H4V5H1Z"),
    not_admitted: stroke("M5 0A5 5 0 1 0 -5 0A5 5 0 1 0 5 0M-3.5 -3.5L3.5 3.5"),
    cancelled: fill("M-4.5 -4.5H4.5V4.5H-4.5Z"),
    skipped: stroke("M-5 -4L-1 0L-5 4M1 -4L5 0L1 4"),
  };
  return drawings;
}

export function drawIcon(
  context: CanvasRenderingContext2D, kind: string, x: number, y: number, colour: string, scale = 1,
): void {
  const draw = made()[kind];
  if (!draw) return;
  context.save();
  context.translate(x, y);
  context.scale(scale, scale);
  context.strokeStyle = colour;
  context.fillStyle = colour;
  draw(context);
  context.restore();
}
