/** Search and commands in one box: pages, playbooks, executions, and what can be done. */
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import type { ExecutionItems, PlaybookList, PlaybookVersion } from "../api/types";
import { shortId } from "../format/number";
import { theme } from "../preferences";
import { href, navigate } from "../router";
import { may } from "../session";
import { Icon, type IconName } from "../view/icon";
import { StatusShape, toneOf } from "../view/status";
import { openHelp } from "./help";
import { DESTINATIONS } from "./pages";

interface Choice {
  id: string;
  group: string;
  text: string;
  note?: string;
  icon?: IconName;
  status?: string;
  act: () => void;
}

const shown = signal(false);

export function openPalette(): void {
  shown.value = true;
}

export function Palette() {
  return shown.value ? <PaletteDialog /> : null;
}

function PaletteDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [index, setIndex] = useState(0);
  const found = useServerChoices(text);
  const choices = [...commands().filter((choice) => fits(choice, text)), ...found];
  const close = () => (shown.value = false);
  useEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  useEffect(() => {
    dialog.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [index]);
  const run = (choice: Choice | undefined) => {
    if (!choice) return;
    close();
    choice.act();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setIndex(Math.min(choices.length - 1, index + 1));
    else if (event.key === "ArrowUp") setIndex(Math.max(0, index - 1));
    else if (event.key === "Enter") run(choices[index]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Search and commands" onCancel={(event) => { event.preventDefault(); close(); }} onClick={(event) => event.target === dialog.current && close()}>
      <input
        role="combobox"
        aria-label="Search pages, playbooks and executions"
        aria-expanded="true"
        aria-controls="choices"
        aria-activedescendant={choices[index] ? `choice-${index}` : undefined}
        placeholder="Search pages, playbooks, executions…"
        value={text}
        onInput={(event) => { setText(event.currentTarget.value); setIndex(0); }}
        onKeyDown={onKey}
      />
      <ul id="choices" role="listbox" aria-label="Choices">
        {choices.map((choice, i) => (
          <>
            {choice.group !== choices[i - 1]?.group && <li class="group" role="presentation" key={choice.group}>{choice.group}</li>}
            <li key={choice.id} id={`choice-${i}`} role="option" aria-selected={i === index} class="menu-item" onClick={() => run(choice)} onPointerMove={() => setIndex(i)}>
              {choice.status ? <span class={`status ${toneOf(choice.status)}`}><StatusShape status={choice.status} /></span> : <Icon name={choice.icon ?? "chevron"} />}
              <span class="cut">{choice.text}</span>
              <span class="push muted small nowrap">{choice.note}</span>
            </li>
          </>
        ))}
      </ul>
      {!choices.length && <p class="menu-note">Nothing is called so.</p>}
      <div class="palette-foot" aria-hidden="true"><span><kbd>↑</kbd> <kbd>↓</kbd> choose</span><span><kbd>Enter</kbd> open</span><span><kbd>Esc</kbd> close</span></div>
    </dialog>
  );
}

function fits(choice: Choice, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/);
  return words.every((word) => `${choice.text} ${choice.note ?? ""}`.toLowerCase().includes(word));
}

function commands(): Choice[] {
  const pages = DESTINATIONS.filter((place) => may(place.role)).map((place): Choice => ({
    id: place.path,
    group: "Pages",
    text: place.title,
    note: `g ${place.key}`,
    act: () => navigate(href(place.path)),
  }));
  const themes = (["system", "light", "dark"] as const).map((value): Choice => ({
    id: `theme-${value}`,
    group: "Commands",
    text: value === "system" ? "Theme: as the system" : `Theme: ${value}`,
    icon: value === "light" ? "sun" : value === "dark" ? "moon" : "contrast",
    act: () => (theme.value = value),
  }));
  const help: Choice = { id: "help", group: "Commands", text: "Keyboard help", note: "?", icon: "keyboard", act: openHelp };
  return [...pages, help, ...themes];
}

/** Playbooks and executions that fit, a moment after the typing. */
function useServerChoices(text: string): Choice[] {
  const [playbooks, setPlaybooks] = useState<PlaybookVersion[]>([]);
  const [found, setFound] = useState<Choice[]>([]);
  useEffect(() => {
    void get<PlaybookList>("catalog", { query: { limit: 1_000 } }).then((answer) => setPlaybooks(answer.playbooks), () => {});
  }, []);
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      const wanted = text.trim();
      try {
        const answer = await get<ExecutionItems>("executions", { query: { q: wanted, limit: 8 }, signal: controller.signal });
        setFound(answer.executions.map((item): Choice => ({
          id: item.execution_id,
          group: "Executions",
          text: item.path || "inline",
          note: `${item.status} · ${shortId(item.execution_id)}`,
          status: item.status,
          act: () => navigate(href(`/executions/${item.execution_id}`)),
        })));
      } catch {
        setFound([]);
      }
    }, 150);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text]);
  const matching = playbooks.flatMap((item): Choice[] => [
    { id: `show-${item.path}`, group: "Playbooks", text: item.path, note: `version ${item.version}`, act: () => navigate(href(`/playbooks/${item.path}`)) },
    ...(text && may("operator") ? [{ id: `run-${item.path}`, group: "Playbooks", text: `Run ${item.path}`, icon: "play" as const, act: () => navigate(href(`/run/${item.path}`)) }] : []),
  ]);
  return [...matching.filter((choice) => fits(choice, text)).slice(0, 10), ...found];
}
