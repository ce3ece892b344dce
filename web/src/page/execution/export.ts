import { asProblem, get } from "../../api/client";
import type { ExecutionExport } from "../../api/types";
import { toast } from "../../shell/toasts";
import type { ExecutionModel } from "./model";

/** What an exported file has: the answers by their question, envelopes, and what tasks wrote. */
export interface ExportedData {
  readonly id: string;
  /** Why and values are in the file for these events. */
  readonly moments: readonly number[];
  readonly answers: Readonly<Record<string, unknown>>;
  readonly events: readonly Record<string, unknown>[];
  readonly lines: readonly Record<string, unknown>[];
}

const MOST_STEPS = 300;
const AT_ONCE = 6;

/** The same text for the same question, in whatever order its parameters come. */
export function questionKey(route: string, query: Record<string, unknown>): string {
  const pairs = Object.entries(query).filter(([, value]) => value != null && value !== "" && value !== false);
  return `${route}?${pairs.map(([key, value]) => `${key}=${String(value)}`).sort().join("&")}`;
}

/** Makes one file of the execution as it is shown, to be read without a server, and gives it to the browser. */
export async function exportPage(model: ExecutionModel): Promise<void> {
  try {
    toast("Collecting what is shown…");
    const [script, style, data] = await Promise.all([scriptText(), styleText(), collect(model)]);
    const page = exportedPage(model.detail.peek()?.playbook ?? "execution", script, style, data);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([page], { type: "text/html" }));
    link.download = `${model.id}.html`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    const problem = asProblem(error);
    toast(`Not exported: ${problem.detail || problem.title}`, "bad");
  }
}

async function collect(model: ExecutionModel): Promise<ExportedData> {
  const all = await get<ExecutionExport>(model.route("export"));
  const { last } = all.index;
  const moments = [...new Set([last, Math.min(model.at.peek(), last)])];
  const answers: Record<string, unknown> = {
    [questionKey(model.route("index"), { after: 0 })]: all.index,
    [questionKey(model.route(), {})]: all.execution,
    [questionKey(model.route("runs"), {})]: { ...all.runs, next_cursor: null },
    [questionKey(model.route("explanation"), { at: last })]: all.explanation,
  };
  const questions: [route: string, query: Record<string, string | number>][] = [[model.route("net"), {}]];
  const runs = all.runs.runs.slice(-MOST_STEPS);
  for (const at of moments) {
    questions.push([model.route("state"), { at }]);
    for (const step of all.index.steps.slice(0, MOST_STEPS)) questions.push([model.route("explanation"), { step, at }]);
    for (const bar of runs) if (bar.seq <= at) questions.push([model.route("runs", bar.run), { at }]);
  }
  const ask = async () => {
    for (let question = questions.pop(); question; question = questions.pop())
      answers[questionKey(...question)] = await get(question[0], { query: question[1] });
  };
  await Promise.all(Array.from({ length: AT_ONCE }, ask));
  return { id: model.id, moments, answers, events: all.events, lines: all.lines };
}

async function scriptText(): Promise<string> {
  const name = document.querySelector<HTMLMetaElement>('meta[name="exported-script"]')!.content;
  return (await fetch(new URL(name, document.baseURI))).text();
}

async function styleText(): Promise<string> {
  return (await fetch(document.querySelector<HTMLLinkElement>('link[rel="stylesheet"]')!.href)).text();
}

/** Nothing in it asks any network, and its policy would not allow it. */
function exportedPage(title: string, script: string, style: string, data: ExportedData): string {
  const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";
  const escaped = title.replace(/[<>&]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return [
    "<!doctype html>",
    '<html lang="en"><head><meta charset="utf-8"><base href="./">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">',
    `<title>${escaped}</title><style>${style}\n:root { --header: 0px; }</style></head><body><div id="app"></div>`,
    `<script type="application/json" id="data">${JSON.stringify(data).replaceAll("<", "\\u003c")}</script>`,
    `<script>${script.replaceAll("</script", "<\\/script")}</script></body></html>`,
  ].join("\n");
}
