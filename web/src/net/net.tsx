import { useEffect, useMemo, useRef } from "preact/hooks";
import { effect, type ReadonlySignal } from "@preact/signals";
import type { NetAnswer } from "../api/types";
import { theme } from "../preferences";
import { RestingQuery } from "../router";
import { NetCanvas } from "./net-canvas";
import type { NetState } from "./step-state";

interface NetProps {
  readonly net: NetAnswer;
  /** What an execution made of it, if it is one's. Read by effects: a change draws, and renders nothing. */
  readonly state?: ReadonlySignal<NetState | null>;
  readonly selected?: string | null;
  readonly onSelect?: (step: string) => void;
  readonly label?: string;
}

/** The picture of `noetl graph`, to look around in: where, stands in the URL. Too small for text it shows names only. */
export function Net({ net, state, selected = null, onSelect, label = "Net" }: NetProps) {
  const element = useRef<HTMLDivElement>(null);
  const canvas = useRef<NetCanvas | null>(null);
  const select = useRef(onSelect);
  select.current = onSelect;
  const view = useMemo(() => new RestingQuery("zoom"), []);
  useEffect(() => {
    const made = new NetCanvas(element.current!, net, {
      selected,
      view: view.value.peek(),
      onSelect: (step) => select.current?.(step),
      onView: (text) => view.set(text),
    });
    canvas.current = made;
    return () => made.dispose();
  }, []);
  useEffect(() => canvas.current?.setNet(net), [net]);
  useEffect(() => canvas.current?.setSelected(selected), [selected]);
  useEffect(() => effect(() => canvas.current?.setState(state?.value ?? null)), [state]);
  // After what is selected: a place that is gone back to has both.
  useEffect(() => view.follow(), []);
  useEffect(() => view.value.subscribe((text) => canvas.current?.setView(text)), []);
  useEffect(
    () =>
      effect(() => {
        theme.value;
        canvas.current?.restyle();
      }),
    [],
  );
  return (
    <div class="net">
      <div class="net-window" ref={element} role="group" aria-label={label} tabIndex={0} aria-keyshortcuts="+ - 0" />
      <div class="net-tools" role="group" aria-label="Zoom">
        <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => canvas.current?.zoom(1.25)}>+</button>
        <button type="button" aria-label="Zoom out" title="Zoom out (-)" onClick={() => canvas.current?.zoom(0.8)}>−</button>
        <button type="button" aria-label="Show all" title="Show all (0)" onClick={() => canvas.current?.fit()}>⤢</button>
      </div>
    </div>
  );
}
