import { useEffect, useRef, useState } from "preact/hooks";
import { asProblem, get, playbookRoute, post } from "../api/client";
import { useResource } from "../api/resource";
import type { DocumentProblem, DraftNet, NetAnswer, PlanAnswer, PlaybookText, ProblemDocument, RegisteredPlaybook, ValidationAnswer } from "../api/types";
import type { Editor } from "../editor/editor";
import { command } from "../format/command";
import type { Mapping } from "../format/json";
import { plural } from "../format/number";
import { Net } from "../net/net";
import { guardLeaving, href, navigate } from "../router";
import { Dialog } from "../shell/dialog";
import { useShortcuts } from "../shell/shortcuts";
import { toast } from "../shell/toasts";
import { Button, CommandLine, Loaded, PageHead, Problem } from "../view/parts";
import { Status } from "../view/status";
import { plan, RunForm } from "./run/form";

const TEMPLATE = `apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: hello
  path: hello
workload:
  name: world
workflow:
  - step: start
    tool:
      - name: greet
        kind: python
        input: { name: "{{ workload.name }}" }
        code: |
          result = f"Hello, {name}!"
`;

/** Without a path it is a new playbook. */
export default function Edit({ path }: { path?: string }) {
  const stored = useResource((signal) => (path ? get<PlaybookText>(playbookRoute(path), { signal }) : Promise.resolve(null)), [path]);
  return (
    <Loaded from={stored}>{(playbook) => <EditPage key={path} path={path ?? null} saved={playbook?.source ?? TEMPLATE} version={playbook?.version ?? null} />}</Loaded>
  );
}

interface Judgement {
  problems: readonly DocumentProblem[];
  problem?: ProblemDocument;
}

/** The problems and the net of a text, a moment after it has changed. The net of a text with errors is that of before. */
function useJudgement(text: string): Judgement & { net: NetAnswer | null } {
  const [judged, setJudged] = useState<Judgement>({ problems: [] });
  const [net, setNet] = useState<NetAnswer | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const fail = (error: unknown) => !signal.aborted && setJudged({ problems: [], problem: asProblem(error) });
    const first = setTimeout(() => {
      post<ValidationAnswer>("validate", { yaml: text, signal }).then((answer) => setJudged({ problems: answer.problems }), fail);
    }, 200);
    const second = setTimeout(() => {
      post<DraftNet>("net", { yaml: text, signal }).then((answer) => answer.net && setNet(answer.net), () => {});
    }, 500);
    return () => {
      clearTimeout(first);
      clearTimeout(second);
      controller.abort();
    };
  }, [text]);
  return { ...judged, net };
}

function EditPage({ path, saved, version }: { path: string | null; saved: string; version: number | null }) {
  const [text, setText] = useState(saved);
  const [base, setBase] = useState({ text: saved, version });
  const [running, setRunning] = useState(false);
  const [refusal, setRefusal] = useState<ProblemDocument>();
  const judged = useJudgement(text);
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const save = useRef(async () => {});
  const dirty = text !== base.text;
  const errors = judged.problems.filter((item) => item.severity === "error").length;

  useEffect(() => {
    let gone = false;
    void import("../editor/editor").then((module) => {
      if (gone) return;
      editor.current = module.openEditor(host.current!, saved, { onChange: setText, onSave: () => void save.current() });
      editor.current.focus();
    }, (error: unknown) => setRefusal(asProblem(error)));
    return () => {
      gone = true;
      editor.current?.dispose();
    };
  }, []);
  useEffect(() => editor.current?.showProblems(judged.problems), [judged.problems]);
  const isDirty = useRef(dirty);
  isDirty.current = dirty;
  useEffect(() => guardLeaving(() => !isDirty.current || window.confirm("Leave without saving? What you changed is lost.")), []);
  useShortcuts({ "Ctrl-s": () => void save.current() });

  save.current = async () => {
    setRefusal(undefined);
    try {
      const registered = await post<RegisteredPlaybook>("catalog", { yaml: text });
      setBase({ text, version: registered.version });
      isDirty.current = false;
      toast(registered.created ? `Saved as ${registered.path}@${registered.version}` : `Nothing has changed: ${registered.path}@${registered.version}`);
      if (registered.path !== path?.replace(/@\d+$/, "")) navigate(href(`/edit/${registered.path}`), "replace");
    } catch (error) {
      setRefusal(asProblem(error));
    }
  };
  const name = path ?? "New playbook";
  return (
    <main id="main" class="fill">
      <PageHead title={name} before={<a href={path ? href(`/playbooks/${path}`) : href("/playbooks")}>{path ? "Playbook" : "Playbooks"}</a>}>
        <span class="draft-state" role="status">{dirty ? <span class="badge waiting">draft, not saved</span> : base.version !== null && <span class="badge">version {base.version}</span>}</span>
        <Button icon="play" disabled={errors > 0} onClick={() => setRunning(true)}>Run draft…</Button>
        <Button kind="primary" disabled={errors > 0 || (!dirty && path !== null)} title="Ctrl-S" onClick={() => void save.current()}>Save version</Button>
      </PageHead>
      {refusal && <div class="below"><Problem problem={refusal} /></div>}
      <div class="edit">
        <div class="panel edit-text" ref={host} aria-label="Editor" role="group" />
        <div class="edit-side">
          <div class="panel edit-net">{judged.net ? <Net net={judged.net} label="Net of the draft" onSelect={(step) => { const box = judged.net?.boxes.find((item) => item.step === step); if (box) editor.current?.goTo(box.line, 1); }} /> : <p class="loading">The net appears as soon as the document has no errors.</p>}</div>
          <section class="panel edit-problems" aria-label="Problems">
            <header><h2>Problems</h2><span class="push" role="status">{judged.problem ? null : judged.problems.length ? <Status status={errors ? "failed" : "warning"} word={plural(judged.problems.length, "problem")} /> : <Status status="completed" word="none" />}</span></header>
            {judged.problem && <Problem problem={judged.problem} />}
            <ul class="problem-list">
              {judged.problems.map((item) => (
                <li key={`${item.line}:${item.column}:${item.code}:${item.message}`}>
                  <button type="button" class="problem-row" onClick={() => editor.current?.goTo(item.line, item.column)}>
                    <Status status={item.severity === "error" ? "failed" : "warning"} word={`${item.line}:${item.column}`} />
                    <span><code>{item.code}</code> {item.message}{item.hint && <span class="muted"> {item.hint}</span>}</span>
                  </button>
                </li>
              ))}
            </ul>
          </section>
        </div>
      </div>
      {running && <RunDraft text={text} close={() => setRunning(false)} />}
    </main>
  );
}

function RunDraft({ text, close }: { text: string; close: () => void }) {
  const what = { playbook: text };
  const defaults = useResource((signal) => plan(what, {}, signal), []);
  const [workload, setWorkload] = useState<Mapping>();
  return (
    <Dialog title="Run the draft" close={close} class="wide-dialog">
      <p class="muted small">It runs as it is here; no version is saved.</p>
      <Loaded from={defaults}>
        {(answer: PlanAnswer) => (answer.hash ? <RunForm what={what} defaults={answer} workload={workload ?? answer.workload} setWorkload={setWorkload} /> : answer.error && <Problem problem={answer.error} />)}
      </Loaded>
      <CommandLine text={command("run", "FILE.yaml")} />
    </Dialog>
  );
}
