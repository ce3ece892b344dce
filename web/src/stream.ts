/** What changes on the server, as it changes: one stream for all tabs of a browser.
 *
 * A tab that holds the lock reads the stream and passes everything on; when it goes, the next one goes on after the
 * last message that all have seen. A browser has six connections for each server over HTTP/1.1, and a stream per tab
 * would take them all. Where there are no locks (plain HTTP beyond loopback), each visible tab has its own stream.
 */
import { signal } from "@preact/signals";
import { address } from "./api/client";
import type { ExecutionItem } from "./api/types";

export type Topic = "executions" | "waits" | "workers" | "queue" | `execution:${string}`;
export type Message =
  | { event: "executions"; executions: ExecutionItem[] }
  | { event: "execution"; execution_id: string; events: Record<string, unknown>[] }
  | { event: "waits" | "workers" | "queue" }
  /** Something may have been missed, or the topic is new in the stream: read again what it is about. */
  | { event: "open" };
type Handler = (message: Message) => void;
type Envelope =
  | { kind: "message"; id: string; message: Message }
  | { kind: "topics"; tab: string; topics: string[] }
  | { kind: "gone"; tab: string }
  | { kind: "who" }
  | { kind: "state"; live: boolean }
  | { kind: "open"; topics: string[] };

const EVENTS = ["executions", "execution", "waits", "workers", "queue"] as const;
const LONGEST_PAUSE = 30_000;
const TAB = Math.random().toString(36).slice(2);
/** Since when nothing comes, in milliseconds since 1970; null while the stream is open or not wanted. */
export const silentSince = signal<number | null>(null);

const handlers = new Map<Handler, Set<string>>();
const wantedByTab = new Map<string, string[]>();
let channel: BroadcastChannel | null = null;
let leading = false;
let source: EventSource | null = null;
let sourceTopics = "";
let cursor = "";
let pause = 1_000;
let retryTimer: ReturnType<typeof setTimeout> | undefined;
let openTimer: ReturnType<typeof setTimeout> | undefined;
let pending: [string, Message][] = [];

/** Calls `handle` with what comes of these topics, at most once a frame for all that came. Gives what ends it. */
export function subscribe(topics: readonly Topic[], handle: Handler): () => void {
  start();
  const own = (message: Message) => handle(message);
  handlers.set(own, new Set(topics));
  announce();
  return () => {
    handlers.delete(own);
    announce();
  };
}

function topicOf(message: Message): string {
  return message.event === "execution" ? `execution:${message.execution_id}` : message.event;
}

let started = false;
function start(): void {
  if (started) return;
  started = true;
  if (!navigator.locks || !("BroadcastChannel" in window)) {
    leading = true;
    document.addEventListener("visibilitychange", reopen);
    return;
  }
  channel = new BroadcastChannel(`noetl-live:${document.baseURI}`);
  channel.onmessage = (event: MessageEvent<Envelope>) => receive(event.data);
  addEventListener("pagehide", () => post({ kind: "gone", tab: TAB }));
  addEventListener("pageshow", (event) => event.persisted && announce());
  void navigator.locks.request(
    `noetl-live:${document.baseURI}`,
    () =>
      new Promise<never>(() => {
        leading = true;
        post({ kind: "who" });
        reopen();
      }),
  );
}

function post(envelope: Envelope): void {
  channel?.postMessage(envelope);
}

function receive(envelope: Envelope): void {
  switch (envelope.kind) {
    case "message":
      cursor = envelope.id || cursor;
      deliver(topicOf(envelope.message), envelope.message);
      break;
    case "open":
      for (const topic of envelope.topics) deliver(topic, { event: "open" });
      break;
    case "state":
      setLive(envelope.live);
      break;
    case "who":
      announce();
      break;
    case "topics":
      wantedByTab.set(envelope.tab, envelope.topics);
      if (leading) {
        post({ kind: "state", live: silentSince.value === null });
        reopen();
      }
      break;
    case "gone":
      wantedByTab.delete(envelope.tab);
      if (leading) reopen();
      break;
  }
}

function announce(): void {
  const topics = [...new Set([...handlers.values()].flatMap((set) => [...set]))];
  wantedByTab.set(TAB, topics);
  post({ kind: "topics", tab: TAB, topics });
  if (leading) reopen();
}

/** Opens the stream anew if other topics are wanted. A moment later: a page subscribes to several at once. */
function reopen(): void {
  clearTimeout(openTimer);
  openTimer = setTimeout(() => {
    const topics = [...new Set([...wantedByTab.values()].flat())].sort();
    const hidden = channel === null && document.hidden;
    const wanted = hidden ? "" : topics.join(",");
    if (wanted === sourceTopics && (source || !wanted)) return;
    // Without a message so far, nobody knows where to go on: all read again.
    const known = new Set(sourceTopics && cursor ? sourceTopics.split(",") : []);
    open(wanted, topics.filter((topic) => !known.has(topic)));
  }, 50);
}

function open(topics: string, news: string[]): void {
  source?.close();
  clearTimeout(retryTimer);
  source = null;
  sourceTopics = topics;
  if (!topics) return;
  const opened = new EventSource(address("stream", { topics, after: cursor }));
  source = opened;
  opened.onopen = () => {
    pause = 1_000;
    tellLive(true);
    if (news.length) {
      for (const topic of news) deliver(topic, { event: "open" });
      post({ kind: "open", topics: news });
      news = [];
    }
  };
  opened.onerror = () => {
    if (opened !== source) return;
    tellLive(false);
    if (opened.readyState === EventSource.CLOSED) {
      // The server answered and would not stream: the browser does not try that again by itself.
      retryTimer = setTimeout(() => open(topics, news), pause);
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  };
  for (const event of EVENTS)
    opened.addEventListener(event, (received: MessageEvent<string>) => {
      if (received.lastEventId) cursor = received.lastEventId;
      const message = { ...JSON.parse(received.data), event } as Message;
      deliver(topicOf(message), message);
      post({ kind: "message", id: cursor, message });
    });
}

function tellLive(live: boolean): void {
  setLive(live);
  post({ kind: "state", live });
}

function setLive(live: boolean): void {
  if (live) silentSince.value = null;
  else silentSince.value ??= Date.now();
}

function deliver(topic: string, message: Message): void {
  if (!pending.length) {
    // Frames do not come while a tab is hidden, but its data must be fresh when it is shown.
    if (document.hidden) setTimeout(flush, 200);
    else requestAnimationFrame(flush);
  }
  pending.push([topic, message]);
}

function flush(): void {
  const messages = pending;
  pending = [];
  for (const [topic, message] of messages)
    for (const [handle, topics] of handlers) if (topics.has(topic)) handle(message);
}
