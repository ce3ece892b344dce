import { ApiError, asProblem, get, segments } from "../../api/client";
import type { ExecutionExport } from "../../api/types";
import { isMarker, type Marker } from "../../format/json";
import { toast } from "../../shell/toasts";
import type { ExecutionModel } from "./model";
import { firstRows } from "./stored-value";

/** What an exported file has: the answers by their question, envelopes, and what tasks wrote. */
export interface ExportedData {
  readonly id: string;
  /** The query of the page that it was made from: what was chosen, and the event that was looked at. */
  readonly view: string;
  /** Why and values are in the file for these events, ascending. */
  readonly moments: readonly number[];
  /** By the question, which of `texts`: at most events most answers are what they were before. */
  readonly answers: Readonly<Record<string, number>>;
  /** Answers as JSON. */
  readonly texts: readonly string[];
  readonly events: readonly Record<string, unknown>[];
  readonly lines: readonly Record<string, unknown>[];
}

const MOST_STEPS = 300;
/** The server folds up to an event for each answer. Of large executions some events are asked: nobody waits minutes. */
const MOST_FOLDED = 200_000;
const MOST_CHARACTERS = 20_000_000;
const MOST_STORED = 200;
const AT_ONCE = 6;
type Question = [route: string, query: Record<string, string | number | readonly string[]>];

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
  const chosen = Math.min(model.at.peek(), last);
  const answers = new Answers();
  answers.add([model.route("index"), { after: 0 }], all.index);
  answers.add([model.route(), {}], all.execution);
  answers.add([model.route("runs"), {}], { ...all.runs, next_cursor: null });
  answers.add([model.route("explanation"), { at: last }], all.explanation);
  const children = all.runs.runs.flatMap((bar) => bar.children ?? []).slice(0, MOST_STORED);
  await answers.ask([[model.route("net"), {}], ...children.map((child): Question => [segments("executions", child.execution_id, "runs"), {}])]);
  const asked = (at: number) => questionsAt(model, all, at);
  const before = answers.size;
  await answers.ask(asked(last));
  const room = Math.min(MOST_FOLDED / (asked(last).length * last), MOST_CHARACTERS / Math.max(1, answers.size - before));
  const moments = spread(last, room, chosen);
  await answers.ask(moments.filter((at) => at < last).flatMap(asked));
  await answers.ask([...answers.stored.values()].slice(0, MOST_STORED).flatMap(firstRows));
  return { id: model.id, view: location.search, moments, answers: answers.numbers, texts: answers.texts, events: all.events, lines: all.lines };
}

/** What the panels ask at an event, whatever is chosen. */
function questionsAt(model: ExecutionModel, all: ExecutionExport, at: number): Question[] {
  const bars = all.runs.runs.slice(-MOST_STEPS).filter((bar) => bar.seq <= at);
  return [
    [model.route("state"), { at }],
    ...all.index.steps.slice(0, MOST_STEPS).map((step): Question => [model.route("explanation"), { step, at }]),
    ...bars.map((bar): Question => [model.route("runs", bar.run), { at }]),
  ];
}

/** `room` of the events 1 … `last`, evenly, the last and the chosen one among them, ascending. */
export function spread(last: number, room: number, chosen: number): number[] {
  const stride = Math.max(1, Math.ceil(last / Math.max(1, Math.floor(room))));
  const moments = new Set([chosen, last]);
  for (let at = last; at > 0; at -= stride) moments.add(at);
  return [...moments].sort((a, b) => a - b);
}

/** Answers of the server, equal ones once, and the stored values that they refer to. */
class Answers {
  readonly numbers: Record<string, number> = {};
  readonly texts: string[] = [];
  readonly stored = new Map<string, Marker>();
  size = 0;
  private readonly known = new Map<string, number>();

  add(question: Question, answer: unknown): void {
    const text = JSON.stringify(answer, (_, value) => {
      if (isMarker(value)) this.stored.set(JSON.stringify([value.key, value.path, value.chunks]), value);
      return value;
    });
    let number = this.known.get(text);
    if (number === undefined) {
      number = this.texts.push(text) - 1;
      this.known.set(text, number);
      this.size += text.length;
    }
    this.numbers[questionKey(...question)] = number;
  }

  /** A few at a time; what the server no longer has is left out, as a stored value that was pruned. */
  async ask(questions: readonly Question[]): Promise<void> {
    const left = [...questions];
    const work = async () => {
      for (let question = left.pop(); question; question = left.pop()) {
        try {
          this.add(question, await get(question[0], { query: question[1] }));
        } catch (error) {
          if (!(error instanceof ApiError) || error.code !== "not_found") throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }
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
