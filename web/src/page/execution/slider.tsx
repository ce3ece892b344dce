import { useEffect, useRef } from "preact/hooks";
import { effect } from "@preact/signals";
import { grouped } from "../../format/number";
import { absolute, duration } from "../../format/time";
import { zone } from "../../preferences";
import { useShortcuts } from "../../shell/shortcuts";
import { Button } from "../../view/parts";
import type { ExecutionModel } from "./model";

/** Where in its history an execution is looked at. All panels follow. */
export function Slider({ model }: { model: ExecutionModel }) {
  const at = model.at.value;
  const last = model.last.value;
  const { history } = model;
  const name = history.nameAt(at);
  const step = history.stepAt(at);
  const time = history.timeAt(at);
  useShortcuts({
    "[": () => model.moveBy(-1),
    "]": () => model.moveBy(1),
    "{": () => model.moveTo(errorBeside(model, -1)),
    "}": () => model.moveTo(errorBeside(model, 1)),
    l: () => model.moveTo(null),
  });
  if (!last) return <div class="slider" />;
  const since = duration((time - history.timeAt(1)) / 1_000);
  const live = model.isLive.value;
  return (
    <div class="slider" role="group" aria-label="Moment of the execution">
      <div class="slider-buttons">
        <Button small kind="bare" icon="first" aria-label="First event" title="First event" onClick={() => model.moveTo(1)} />
        <Button small kind="bare" icon="previous" aria-label="Previous event" title="Previous event ([)" onClick={() => model.moveBy(-1)} />
        <Button small kind="bare" icon="next" aria-label="Next event" title="Next event (])" onClick={() => model.moveBy(1)} />
        <Button small kind="bare" icon="last" aria-label="Last event" title="Last event" onClick={() => model.moveTo(last)} />
      </div>
      <div class="slider-track">
        <ErrorMarks model={model} />
        <input
          type="range"
          min={1}
          max={last}
          value={at}
          aria-label="Event"
          aria-valuetext={`event ${at} of ${last}, ${name}${step ? `, ${step}` : ""}`}
          onInput={(event) => model.moveTo(Number(event.currentTarget.value))}
        />
      </div>
      <output class="slider-text" title={`${absolute(time / 1_000, zone.value)} ${zone.value}`}>
        <span class="slider-number numbers">{`${grouped(at)}/${grouped(last)}`}</span>
        <span class="slider-since muted numbers">+{since}</span>
        <span class="slider-event">{step ? `${name} · ${step}` : name}</span>
      </output>
      <button type="button" class="button small live" aria-pressed={live} title="Follow the last event (l)" onClick={() => (live && !model.isOver.value ? model.hold() : model.moveTo(null))}>
        <span class="live-dot" aria-hidden="true" />
        {model.isOver.value ? "latest" : "live"}
      </button>
    </div>
  );
}

function errorBeside(model: ExecutionModel, direction: 1 | -1): number {
  const at = model.at.peek();
  const errors = [...model.history.errors].sort((a, b) => a - b);
  const found = direction > 0 ? errors.find((seq) => seq > at) : errors.findLast((seq) => seq < at);
  return found ?? at;
}

/** Where errors are, along the track. */
function ErrorMarks({ model }: { model: ExecutionModel }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current!;
    const paint = () => {
      const width = element.clientWidth;
      element.width = Math.max(1, width * devicePixelRatio);
      element.height = 4 * devicePixelRatio;
      const context = element.getContext("2d")!;
      context.fillStyle = getComputedStyle(element).color;
      const last = Math.max(model.history.last - 1, 1);
      // The thumb is 16 pixels wide: its middle does not come to the ends of the track.
      for (const seq of model.history.errors)
        context.fillRect((8 + ((seq - 1) / last) * (width - 16) - 1) * devicePixelRatio, 0, 2 * devicePixelRatio, element.height);
    };
    const observer = new ResizeObserver(paint);
    observer.observe(element);
    const stop = effect(() => {
      model.version.value;
      paint();
    });
    return () => {
      observer.disconnect();
      stop();
    };
  }, [model]);
  return <canvas class="slider-errors" ref={canvas} aria-hidden="true" />;
}
