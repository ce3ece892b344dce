/** The name of a signal, and what it brings as JSON. */
import type { ComponentChildren } from "preact";

export interface SignalText {
  name: string;
  text: string;
}

export function SignalFields({ value, change, wrong, awaited, help }: { value: SignalText; change: (value: SignalText) => void; wrong: string | null; awaited: readonly string[]; help?: ComponentChildren }) {
  return (
    <>
      <div class="field">
        <label for="signal-name">Name</label>
        <input id="signal-name" class="input" list="signal-names" value={value.name} onInput={(event) => change({ ...value, name: event.currentTarget.value })} />
        <datalist id="signal-names">{awaited.map((name) => <option key={name} value={name} />)}</datalist>
        {help && <p class="help">{help}</p>}
      </div>
      <div class="field">
        <label for="signal-payload">Payload <span class="type">JSON</span></label>
        <textarea id="signal-payload" class="input code" rows={4} spellcheck={false} aria-invalid={wrong !== null} value={value.text} onInput={(event) => change({ ...value, text: event.currentTarget.value })} />
        {wrong && <p class="wrong">{wrong}</p>}
      </div>
    </>
  );
}
