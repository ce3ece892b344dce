/** The page: who is there, then the head and the page of the address. */
import { render, type ComponentType } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { asProblem } from "./api/client";
import type { ProblemDocument } from "./api/types";
import { href, navigate, path } from "./router";
import { begin, caller } from "./session";
import { Confirmation } from "./shell/dialog";
import { Header } from "./shell/header";
import { Help, openHelp } from "./shell/help";
import { followWaits } from "./shell/inbox-count";
import { DESTINATIONS, pageAt, type Row } from "./shell/pages";
import { openPalette, Palette } from "./shell/palette";
import { useShortcuts } from "./shell/shortcuts";
import { Toasts } from "./shell/toasts";
import { silentSince } from "./stream";
import { Empty, LinkButton, PageHead, Problem } from "./view/parts";
import { Time } from "./view/time";

const loaded = new Map<string, ComponentType<Record<string, string>>>();

async function loadPage({ pattern, load }: Row): Promise<void> {
  if (!loaded.has(pattern)) loaded.set(pattern, (await load()).default as ComponentType<Record<string, string>>);
}

function Content() {
  const found = pageAt(path.value);
  const pattern = found?.row.pattern ?? "";
  const [, setLoaded] = useState("");
  const [problem, setProblem] = useState<ProblemDocument>();
  // Before the frame is drawn: what comes after it would be one frame later.
  useLayoutEffect(() => {
    if (!found) return;
    document.title = `${found.row.title} · NoETL`;
    if (loaded.has(pattern)) return;
    setProblem(undefined);
    loadPage(found.row).then(() => setLoaded(pattern), (error: unknown) => setProblem(asProblem(error)));
  }, [pattern]);
  if (!found)
    return <main id="main"><PageHead title="There is no such page" /><Empty title={path.value} action={<LinkButton href={href("/")}>Go home</LinkButton>}>Nothing is at this address.</Empty></main>;
  const Page = loaded.get(pattern);
  if (problem) return <main id="main"><Problem problem={{ ...problem, hint: "The server may have a new release: load the page again." }} retry={() => location.reload()} /></main>;
  return Page ? <Page key={path.value} {...found.parameters} /> : <main id="main" aria-busy="true" />;
}

function App() {
  useShortcuts({
    "/": openPalette,
    "Ctrl-k": openPalette,
    "?": openHelp,
    ...Object.fromEntries(DESTINATIONS.map((place) => [`g ${place.key}`, () => navigate(href(place.path))])),
  });
  if (path.value === "/login" || !caller.value) return <><Content /><Toasts /></>;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.querySelector<HTMLElement>("h1, a, button, input")?.focus(); }}>Skip to the content</a>
      <Header />
      <Live />
      <Content />
      <Palette />
      <Help />
      <Confirmation />
      <Toasts />
    </>
  );
}

/** Says since when what is shown may be stale; not for the moment that a reconnection takes. */
function Live() {
  const since = silentSince.value;
  const [late, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    if (since === null) return;
    const timer = setTimeout(() => setLate(true), 3_000);
    return () => clearTimeout(timer);
  }, [since]);
  useEffect(followWaits, []);
  return since !== null && late ? <div class="stale" role="status"><span>The server does not answer; shown is what was known <Time at={new Date(since).toISOString()} /></span></div> : null;
}

async function start(): Promise<void> {
  const root = document.getElementById("app")!;
  const first = pageAt(path.value);
  // What cannot be loaded is said where it is to be shown.
  const early = first && loadPage(first.row).catch(() => {});
  try {
    await Promise.all([begin(), early]);
    render(<App />, root);
  } catch (error) {
    render(<main><Problem problem={asProblem(error)} retry={() => location.reload()} /></main>, root);
  }
}

void start();
