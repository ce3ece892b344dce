import { useState } from "preact/hooks";
import { asProblem, post } from "../../api/client";
import type { ExecutionDetail, OperationAnswer, ReopenPreview } from "../../api/types";
import { command } from "../../format/command";
import { plural } from "../../format/number";
import { href, navigate } from "../../router";
import { may } from "../../session";
import { confirm } from "../../shell/dialog";
import { toast } from "../../shell/toasts";
import { Button } from "../../view/parts";
import { exportPage } from "./export";
import { ForkDialog } from "./fork";
import type { ExecutionModel } from "./model";
import { SignalDialog } from "./signal";

/**
 * What can be done with it as it stands. Each asks first and shows its command; roles hide what they forbid.
 *
 * What goes away when it ends stands at the left: what stays does not move.
 */
export function Actions({ model, detail }: { model: ExecutionModel; detail: ExecutionDetail }) {
  const [dialog, setDialog] = useState<"fork" | "signal" | null>(null);
  const id = detail.execution_id;
  const operator = may("operator");
  const over = model.isOver.value;
  const failed = detail.status === "failed" || detail.status === "cancelled";
  const act = async (name: string, body: Record<string, unknown>, said: string) => {
    const answer = await post<OperationAnswer>(model.route(name), { body });
    toast(answer.steps?.length ? `${said}: ${answer.steps.join(", ")}` : said);
    await model.refresh();
  };
  const retry = async () => {
    let preview: ReopenPreview;
    try {
      preview = await post<ReopenPreview>(model.route("retry"), { query: { dry_run: true } });
    } catch (error) {
      const problem = asProblem(error);
      toast(problem.detail || problem.title, "bad");
      return;
    }
    confirm({
      title: "Retry",
      text: <Reopened preview={preview} />,
      verb: "Retry",
      command: command("executions", "retry", id),
      act: () => act("retry", {}, "Retried"),
    });
  };
  const cancel = () =>
    confirm({
      title: "Cancel this execution",
      text: "It ends now, with all that it started. Attempts in flight are stopped.",
      verb: "Cancel the execution",
      danger: true,
      command: command("executions", "cancel", id),
      act: () => act("cancel", {}, "Cancelled"),
    });
  const pause = () =>
    confirm({
      title: "Pause",
      text: "Attempts in flight end; nothing new begins until it is resumed.",
      verb: "Pause",
      command: command("executions", "pause", id),
      act: () => act("pause", {}, "Paused"),
    });
  const resume = () =>
    confirm({
      title: "Resume",
      text: "It goes on where it was paused.",
      verb: "Resume",
      command: command("executions", "resume", id),
      act: () => act("resume", {}, "Resumed"),
    });
  return (
    <div class="execution-actions">
      {operator && failed && <Button kind="primary" icon="retry" onClick={() => void retry()}>Retry{failedSteps(detail)}</Button>}
      {operator && detail.status === "paused" && <Button kind="primary" icon="play" onClick={resume}>Resume</Button>}
      {operator && detail.status === "running" && <Button icon="pause" onClick={pause}>Pause</Button>}
      {operator && !over && <Button icon="bell" onClick={() => setDialog("signal")}>Signal</Button>}
      {operator && !over && <Button kind="danger" icon="stop" onClick={cancel}>Cancel</Button>}
      {detail.forked_from && <Button onClick={() => navigate(href(`/compare/${detail.forked_from}/${id}`))}>Compare</Button>}
      {operator && <Button icon="fork" onClick={() => setDialog("fork")}>Fork here</Button>}
      {!model.isExported && <Button icon="save" title="One file with everything that is shown, to be read without a server" onClick={() => void exportPage(model)}>Export</Button>}
      {dialog === "fork" && <ForkDialog model={model} close={() => setDialog(null)} />}
      {dialog === "signal" && <SignalDialog model={model} close={() => setDialog(null)} />}
    </div>
  );
}

/** What a retry would do: which runs reopen, what counts no longer, which effects happen again. */
function Reopened({ preview }: { preview: ReopenPreview }) {
  const effects = preview.repeats.filter((task) => task.effect !== "none");
  return (
    <div class="stack tight">
      <p>{plural(preview.runs.length, "run")} reopened: <b>{[...new Set(preview.runs.map((run) => run.step))].join(", ")}</b>. What completed is kept.</p>
      {preview.iterations > 0 && <p>{plural(preview.iterations, "iteration")} run again.</p>}
      {preview.superseded.length > 0 && <p>Counts no longer: {preview.superseded.join(", ")}.</p>}
      {effects.length > 0 && <p>Runs again and may change something outside: {effects.map((task) => `${task.step} · ${task.task}`).join(", ")}.</p>}
    </div>
  );
}

function failedSteps(detail: ExecutionDetail): string {
  const steps = Object.entries(detail.steps).filter(([, step]) => step.status === "failed");
  return steps.length === 1 ? ` ${steps[0]![0]}` : "";
}
