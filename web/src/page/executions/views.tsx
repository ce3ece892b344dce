/** Saved views: filters with a name, kept in this browser. */
import { useState } from "preact/hooks";
import { kept } from "../../preferences";
import { href, place } from "../../router";
import { Dialog } from "../../shell/dialog";
import { Icon } from "../../view/icon";
import { Button } from "../../view/parts";
import { filterText } from "./filter";

interface View {
  name: string;
  query: string;
}

const BUILT_IN: readonly View[] = [
  { name: "All", query: "" },
  { name: "Running", query: "status=running" },
  { name: "Failed, 24 h", query: "status=failed&since=24h" },
];

function isViews(value: unknown): value is View[] {
  return Array.isArray(value) && value.every((view) => typeof view?.name === "string" && typeof view?.query === "string");
}

const saved = kept<View[]>("views", [], isViews);

export function Views() {
  const [naming, setNaming] = useState(false);
  const current = filterText(place.value.query);
  const all = [...BUILT_IN, ...saved.value];
  const chosen = all.find((view) => filterText(new URLSearchParams(view.query)) === current);
  const own = chosen && saved.value.includes(chosen);
  return (
    <div class="views">
      <nav class="row wrap" aria-label="Views">
        {all.map((view) => (
          <a key={view.name} class="chip" href={href("/executions") + (view.query ? `?${view.query}` : "")} aria-current={view === chosen ? "page" : undefined}>{view.name}</a>
        ))}
      </nav>
      {!chosen && <Button small kind="bare" icon="star" onClick={() => setNaming(true)}>Save view</Button>}
      {own && <Button small kind="bare" icon="trash" onClick={() => (saved.value = saved.value.filter((view) => view !== chosen))}>Forget view</Button>}
      {naming && <NameDialog query={current} close={() => setNaming(false)} />}
    </div>
  );
}

function NameDialog({ query, close }: { query: string; close: () => void }) {
  const [name, setName] = useState("");
  const taken = BUILT_IN.some((view) => view.name === name.trim());
  const save = () => {
    if (!name.trim() || taken) return;
    saved.value = [...saved.value.filter((view) => view.name !== name.trim()), { name: name.trim(), query }];
    close();
  };
  return (
    <Dialog title="Save this view" close={close} foot={<Button kind="primary" disabled={!name.trim() || taken} onClick={save}><Icon name="star" />Save</Button>}>
      <form class="field" onSubmit={(event) => { event.preventDefault(); save(); }}>
        <label for="view-name">Name</label>
        <input id="view-name" class="input" maxLength={40} value={name} onInput={(event) => setName(event.currentTarget.value)} autofocus />
        <span class="help">{taken ? "This name is taken." : "It is kept in this browser, with the filter as it is now."}</span>
      </form>
    </Dialog>
  );
}
