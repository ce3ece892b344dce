import type { ComponentType } from "preact";
import { useState } from "preact/hooks";
import { post } from "../../api/client";
import type { ExecutionDetail, OperationAnswer } from "../../api/types";
import { command } from "../../format/command";
import { href, navigate } from "../../router";
import { may } from "../../session";
import { confirm } from "../../shell/dialog";
import { toast } from "../../shell/toasts";
import { Button } from "../../view/parts";
import type { ExecutionModel } from "./model";

/**
 * What can be done with it as it stands. Each asks first and shows its command; roles hide what they forbid.
 *
 * What goes away when it ends stands at the left: what stays does not move.
 */
export function Actions({ model, detail }: { model: ExecutionModel; detail: ExecutionDetail }) {
  const [Dialog, setDialog] = useState<ComponentType<{ model: ExecutionModel; close: () => void }> | null>(null);
  const id = detail.execution_id;
  const operator = may("operator");
  const over = model.isOver.value;
  const failed = detail.status === "failed" || detail.status === "cancelled";
  const act = async (name: string, body: Record<string, unknown>, said: string) => {
    const answer = await post<OperationAnswer>(model.route(name), { body });
    toast(answer.steps?.length ? `${said}: ${answer.steps.join(", ")}` : said);
    await model.refresh();
  };
  const open = (load: () => Promise<ComponentType<{ model: ExecutionModel; close: () => void }>>) => void late(async () => { const loaded = await load(); setDialog(() => loaded); });
  const hasFailedIterations = (model.timeline.value?.bars ?? []).some((bar) => bar.status === "completed" && bar.loop?.failed);
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
      {operator && failed && <Button kind="primary" icon="retry" onClick={() => open(async () => (await import("./late-panels")).RetryDialog)}>Retry{failedSteps(detail)}</Button>}
      {operator && hasFailedIterations && <Button icon="retry" title="Runs the failed iterations of loops again" onClick={() => open(async () => (await import("./late-panels")).RedriveDialog)}>Redrive</Button>}
      {operator && detail.status === "paused" && <Button kind="primary" icon="play" onClick={resume}>Resume</Button>}
      {operator && detail.status === "running" && <Button icon="pause" onClick={pause}>Pause</Button>}
      {operator && !over && <Button icon="bell" onClick={() => open(async () => (await import("./late-panels")).SignalDialog)}>Signal</Button>}
      {operator && !over && <Button kind="danger" icon="stop" onClick={cancel}>Cancel</Button>}
      {detail.forked_from && !model.isExported && <Button onClick={() => navigate(href(`/compare/${detail.forked_from}/${id}`))}>Compare</Button>}
      {operator && <Button icon="fork" onClick={() => open(async () => (await import("./late-panels")).ForkDialog)}>Fork here</Button>}
      {!model.isExported && <Button icon="save" title="One file with everything that is shown, to be read without a server" onClick={() => void late(async () => (await import("./late-panels")).exportPage(model))}>Export</Button>}
      {Dialog && <Dialog model={model} close={() => setDialog(null)} />}
    </div>
  );
}

/** Does what needs a part of the page that is loaded only then: nobody waits for it at first sight. */
async function late(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch {
    toast("This part of the page cannot be loaded. The server may have a new release: load the page again.", "bad");
  }
}

function failedSteps(detail: ExecutionDetail): string {
  const steps = Object.entries(detail.steps).filter(([, step]) => step.status === "failed");
  return steps.length === 1 ? ` ${steps[0]![0]}` : "";
}
