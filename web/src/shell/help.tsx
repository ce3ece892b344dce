/** The keys of the page, in a dialog and, from the same table, in the documentation (a test compares them). */
import { signal } from "@preact/signals";
import { Dialog } from "./dialog";
import { DESTINATIONS } from "./pages";

const shown = signal(false);

export function openHelp(): void {
  shown.value = true;
}

/** Sections of rows: keys, what they do. */
export function helpSections(): [string, [string, string][]][] {
  return [
    ["Everywhere", [
      ["/", "search"],
      ["Ctrl-K", "commands"],
      ["?", "this help"],
      ["Esc", "close what is open"],
    ]],
    ["Go to", DESTINATIONS.map((place) => [`g ${place.key}`, place.title])],
    ["In lists", [
      ["j k", "next and previous row"],
      ["o", "open the row"],
      ["x", "choose the row"],
    ]],
    ["An execution", [
      ["[ ]", "previous and next event"],
      ["{ }", "previous and next error"],
      ["l", "follow the last event"],
      ["+ - 0", "zoom the net in and out, show all of it"],
    ]],
    ["In the editor", [
      ["Ctrl-Space", "complete"],
      ["Ctrl-S", "save a version"],
      ["Esc Tab", "leave the text with the keyboard"],
    ]],
  ];
}

export function Help() {
  if (!shown.value) return null;
  return (
    <Dialog title="Keyboard" close={() => (shown.value = false)}>
      {helpSections().map(([title, rows]) => (
        <section class="stack tight" key={title}>
          <h3>{title}</h3>
          <dl class="keys">
            {rows.map(([keys, text]) => (
              <>
                <dt key={keys}>{keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</dt>
                <dd>{text}</dd>
              </>
            ))}
          </dl>
        </section>
      ))}
      <p class="small muted">Keys do nothing while you type.</p>
    </Dialog>
  );
}
