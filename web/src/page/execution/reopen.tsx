import { useEffect, useState } from "preact/hooks";
import { asProblem, get, playbookRoute, post, segments } from "../../api/client";
import type { OperationAnswer, PlaybookText, PlaybookVersion, ProblemDocument, RegisteredPlaybook, ReopenPreview, VersionList } from "../../api/types";
import { command } from "../../format/command";
import { plural } from "../../format/number";
import { may } from "../../session";
import { Dialog } from "../../shell/dialog";
import { toast } from "../../shell/toasts";
import { Button, CommandLine, Problem } from "../../view/parts";
import type { ExecutionModel } from "./model";

interface DialogProperties {
  model: ExecutionModel;
  close: () => void;
}

const SAME = "same";
const EDITED = "edited";

/** Opens what failed again. */
export function RetryDialog(properties: DialogProperties) {
  return <ReopenDialog {...properties} verb="retry" title="Retry" steps={[]} />;
}

/** Runs the failed iterations of loops that have ended again. */
export function RedriveDialog(properties: DialogProperties) {
  const bars = properties.model.timeline.value?.bars ?? [];
  const steps = [...new Set(bars.filter((bar) => bar.loop?.failed && bar.end !== null).map((bar) => bar.step))];
  return <ReopenDialog {...properties} verb="redrive" title="Redrive" steps={steps} />;
}

/** Which document it goes on with, and first what that would run again. */
function ReopenDialog({ model, close, verb, title, steps }: DialogProperties & { verb: "retry" | "redrive"; title: string; steps: readonly string[] }) {
  const detail = model.detail.value!;
  const versions = useVersions(detail.playbook);
  const [choice, setChoice] = useState(SAME);
  const [text, setText] = useState<string>();
  const [step, setStep] = useState("");
  const [preview, setPreview] = useState<ReopenPreview>();
  const [problem, setProblem] = useState<ProblemDocument>();
  const [busy, setBusy] = useState(false);
  const isEdited = choice === EDITED;
  const body = {
    ...(step ? { step } : {}),
    ...(isEdited ? { playbook: text ?? "" } : choice !== SAME ? { version: Number(choice) } : {}),
  };
  useEffect(() => {
    if (!isEdited || text !== undefined) return;
    const newest = versions[0];
    if (newest) get<PlaybookText>(playbookRoute(`${newest.path}@${newest.version}`)).then(({ source }) => setText(source), (error: unknown) => setProblem(asProblem(error)));
  }, [isEdited]);
  const asked = isEdited && text === undefined ? null : JSON.stringify(body);
  useEffect(() => {
    setPreview(undefined);
    setProblem(undefined);
    if (asked === null) return;
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      try {
        setPreview(await post<ReopenPreview>(model.route(verb), { query: { dry_run: true }, body, signal: controller.signal }));
      } catch (error) {
        if (!controller.signal.aborted) setProblem(asProblem(error));
      }
    }, isEdited ? 300 : 0);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [asked]);
  /** The preview has refused the document of another playbook: what is registered is a version of this one. */
  const act = async () => {
    setBusy(true);
    try {
      const version = isEdited ? { version: (await post<RegisteredPlaybook>("catalog", { yaml: text! })).version } : {};
      const { playbook: _, ...rest } = body as { playbook?: string };
      const answer = await post<OperationAnswer>(model.route(verb), { body: { ...rest, ...version } });
      toast(answer.steps?.length ? `Runs again: ${answer.steps.join(", ")}` : "Opened again");
      close();
      await model.refresh();
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  const words = ["executions", verb, model.id, ...(step ? ["--step", step] : []), ...(isEdited ? ["--version", "N"] : choice !== SAME ? ["--version", choice] : [])];
  const foot = (
    <>
      <Button onClick={close}>Keep as it is</Button>
      <Button kind="primary" icon="retry" disabled={busy || !preview || problem !== undefined} onClick={() => void act()}>{isEdited ? `Save version and ${verb}` : title}</Button>
    </>
  );
  return (
    <Dialog title={title} close={close} foot={foot} class="fork-dialog">
      <div class="fork-fields">
        <div class="field">
          <label for="reopen-document">Playbook</label>
          <select id="reopen-document" class="input" value={choice} onChange={(event) => setChoice(event.currentTarget.value)}>
            <option value={SAME}>the one that it runs</option>
            {versions.filter((version) => version.hash !== detail.hash).map((version) => <option key={version.version} value={version.version}>version {version.version}{version === versions[0] ? ", the newest" : ""}</option>)}
            {may("author") && versions.length > 0 && <option value={EDITED}>an edited one, saved as a version</option>}
          </select>
        </div>
        {steps.length > 1 && (
          <div class="field">
            <label for="reopen-step">Loop</label>
            <select id="reopen-step" class="input" value={step} onChange={(event) => setStep(event.currentTarget.value)}>
              <option value="">all with failed iterations</option>
              {steps.map((name) => <option key={name}>{name}</option>)}
            </select>
          </div>
        )}
      </div>
      {isEdited && text === undefined && !problem && <p class="loading" role="status">Loading…</p>}
      {isEdited && text !== undefined && <textarea class="input code" rows={12} aria-label="Edited playbook" spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />}
      {problem && <Problem problem={problem} />}
      {preview && <Reopened preview={preview} />}
      <div class="stack tight">
        <span class="small muted">The same in a terminal</span>
        {isEdited && <CommandLine text={command("catalog", "register", "FILE")} />}
        <CommandLine text={command(...words)} />
      </div>
    </Dialog>
  );
}

/** The newest first; none if it runs a document that is in no catalog. */
function useVersions(path: string): readonly PlaybookVersion[] {
  const [versions, setVersions] = useState<readonly PlaybookVersion[]>([]);
  useEffect(() => {
    const controller = new AbortController();
    get<VersionList>(`${segments("catalog", path)}/versions`, { signal: controller.signal }).then(
      (answer) => setVersions([...answer.versions].sort((a, b) => b.version - a.version)),
      () => {}, // it can go on with the document that it runs
    );
    return () => controller.abort();
  }, [path]);
  return versions;
}

/** What would be done: which runs reopen, what counts no longer, which effects happen again. */
function Reopened({ preview }: { preview: ReopenPreview }) {
  const effects = preview.repeats.filter((task) => task.effect !== "none");
  const reopened = new Set(preview.runs.map((run) => run.step));
  const behind = preview.steps.filter((step) => !reopened.has(step));
  return (
    <section class="fork-preview stack tight" aria-label="What runs again">
      <p>{plural(preview.runs.length, "run")} reopened: <b>{[...reopened].join(", ")}</b>. What completed is kept.</p>
      {preview.iterations > 0 && <p>{plural(preview.iterations, "iteration")} {preview.iterations === 1 ? "runs" : "run"} again.</p>}
      {behind.length > 0 && <p>Runs again behind it: {behind.join(", ")}.</p>}
      {preview.superseded.length > 0 && <p>Counts no longer: {preview.superseded.join(", ")}.</p>}
      {effects.length > 0 && <p>Runs again and may change something outside: {effects.map((task) => `${task.step} · ${task.task}`).join(", ")}.</p>}
    </section>
  );
}
