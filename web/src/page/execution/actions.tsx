import { useState } from "preact/hooks";
import { post } from "../../api/client";
import type { ExecutionDetail, OperationAnswer } from "../../api/types";
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

/** What can be done with it as it stands. Each asks first and shows its command; roles hide what they forbid. */
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
  const retry = () => {
    const again = reopened(detail);
    confirm({
      title: "Retry",
      text: again.length ? <>Runs that failed go on where they stopped: <b>{again.join(", ")}</b>. What completed is kept.</> : "Runs that failed go on where they stopped. What completed is kept.",
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
      {operator && failed && <Button kind="primary" icon="retry" onClick={retry}>Retry{failedRuns(detail)}</Button>}
      {operator && detail.status === "paused" && <Button kind="primary" icon="play" onClick={resume}>Resume</Button>}
      {operator && detail.status === "running" && <Button icon="pause" onClick={pause}>Pause</Button>}
      {operator && !over && <Button icon="bell" onClick={() => setDialog("signal")}>Signal</Button>}
      {operator && <Button icon="fork" onClick={() => setDialog("fork")}>Fork here</Button>}
      {operator && !over && <Button kind="danger" icon="stop" onClick={cancel}>Cancel</Button>}
      {!model.isExported && <Button icon="save" title="One file with everything that is shown, to be read without a server" onClick={() => void exportPage(model)}>Export</Button>}
      {detail.forked_from && <Button onClick={() => navigate(href(`/compare/${detail.forked_from}/${id}`))}>Compare</Button>}
      {dialog === "fork" && <ForkDialog model={model} close={() => setDialog(null)} />}
      {dialog === "signal" && <SignalDialog model={model} close={() => setDialog(null)} />}
    </div>
  );
}

/** The steps that a retry opens again. */
export function reopened(detail: ExecutionDetail): string[] {
  return Object.entries(detail.steps)
    .filter(([, step]) => step.status === "failed" || step.status === "cancelled")
    .map(([name]) => name);
}

function failedRuns(detail: ExecutionDetail): string {
  const steps = reopened(detail);
  return steps.length === 1 ? ` ${steps[0]}` : steps.length ? ` ${plural(steps.length, "step")}` : "";
}
