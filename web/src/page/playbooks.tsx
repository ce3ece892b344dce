import { useMemo } from "preact/hooks";
import { get } from "../api/client";
import { useResource } from "../api/resource";
import type { PlaybookList, PlaybookVersion } from "../api/types";
import { plural } from "../format/number";
import { GridTable, type Column } from "../list/grid-table";
import { zone } from "../preferences";
import { href, navigate, place, setQuery } from "../router";
import { may } from "../session";
import { CommandLine, Empty, LinkButton, Loaded, PageHead } from "../view/parts";
import { Time } from "../view/time";

/** All pages of the catalog: a thousand at a time, and few have more. */
async function readCatalog(signal: AbortSignal): Promise<PlaybookVersion[]> {
  const all: PlaybookVersion[] = [];
  let cursor: string | null = null;
  do {
    const answer: PlaybookList = await get<PlaybookList>("catalog", { query: { limit: 1_000, cursor }, signal });
    all.push(...answer.playbooks);
    cursor = answer.next_cursor;
  } while (cursor);
  return all;
}

function Actions({ item }: { item: PlaybookVersion }) {
  return (
    <span class="row">
      {may("operator") && <LinkButton small icon="play" href={href(`/run/${item.path}`)}>Run</LinkButton>}
      {may("author") && <LinkButton small icon="edit" href={href(`/edit/${item.path}`)}>Edit</LinkButton>}
    </span>
  );
}

const COLUMNS: readonly Column<PlaybookVersion>[] = [
  { title: "Playbook", width: "minmax(160px, 1.5fr)", cell: (item) => <a class="plain" href={href(`/playbooks/${item.path}`)}>{item.path}</a> },
  { title: "Version", width: "72px", right: true, cell: (item) => item.version },
  { title: "Label", width: "minmax(70px, 0.5fr)", from: 760, cell: (item) => item.label },
  { title: "Registered", width: "252px", cell: (item) => <Time at={item.created_at} /> },
  { title: "By", width: "minmax(90px, 0.6fr)", from: 900, cell: (item) => <span class="muted">{item.created_by}</span> },
  { title: "Actions", width: "150px", cell: (item) => <Actions item={item} /> },
];

export default function Playbooks() {
  const catalog = useResource(readCatalog, []);
  const wanted = place.value.query.get("q") ?? "";
  const all = catalog.data.value;
  const rows = useMemo(() => (all ?? []).filter((item) => item.path.toLowerCase().includes(wanted.toLowerCase())), [all, wanted]);
  return (
    <main id="main" class="fill">
      <PageHead title="Playbooks">
        {may("author") && <LinkButton kind="primary" icon="plus" href={href("/edit")}>New playbook</LinkButton>}
      </PageHead>
      <Loaded from={catalog}>
        {(loaded) =>
          loaded.length ? (
            <>
              <form class="filters" role="search" aria-label="Filter playbooks" onSubmit={(event) => event.preventDefault()}>
                <div class="field broad">
                  <label for="playbook-filter">Search</label>
                  <input id="playbook-filter" class="input" type="search" placeholder="a part of the path" value={wanted} onInput={(event) => setQuery({ q: event.currentTarget.value })} />
                </div>
              </form>
              <div class="list-frame">
                <GridTable
                  label="Playbooks"
                  compactHeight={84}
                  rows={rows}
                  columns={COLUMNS}
                  keyOf={(item) => item.path}
                  open={(item) => navigate(href(`/playbooks/${item.path}`))}
                  compact={(item) => (
                    <>
                      <span class="row"><a class="plain cut" href={href(`/playbooks/${item.path}`)}>{item.path}</a><span class="push muted small nowrap">version {item.version}</span></span>
                      <span class="row"><span class="small muted"><Time at={item.created_at} only="relative" /></span><span class="push"><Actions item={item} /></span></span>
                    </>
                  )}
                  foot={<><span>{rows.length === loaded.length ? plural(rows.length, "playbook") : `${rows.length} of ${plural(loaded.length, "playbook")}`}</span><span class="push">Times in {zone.value}</span></>}
                />
              </div>
            </>
          ) : (
            <Empty title="No playbook is registered" action={may("author") ? <LinkButton kind="primary" href={href("/edit")}>Write one</LinkButton> : undefined}>
              From a terminal: <CommandLine text="noetl catalog register FILE.yaml" />
            </Empty>
          )
        }
      </Loaded>
    </main>
  );
}
