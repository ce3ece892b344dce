/** Cancel or retry many: those that are chosen, or all that match the filter, after a look at how many that are. */
import { useEffect, useState } from "preact/hooks";
import { asProblem, post } from "../../api/client";
import type { BulkAnswer, OperationAnswer, ProblemDocument } from "../../api/types";
import { command } from "../../format/command";
import { plural } from "../../format/number";
import { Dialog } from "../../shell/dialog";
import { toast } from "../../shell/toasts";
import { Button, CommandLine, Problem } from "../../view/parts";
import { whereOf, whereText, type ListFilter } from "./filter";

export type Act = "cancel" | "retry";
const VERBS: Record<Act, { title: string; done: string }> = {
  cancel: { title: "Cancel", done: "cancelled" },
  retry: { title: "Retry", done: "retried" },
};

/** Each by itself: one that cannot be done does not keep the others. */
export async function actOnChosen(act: Act, ids: readonly string[]): Promise<void> {
  const answers = await Promise.allSettled(ids.map((id) => post<OperationAnswer>(`executions/${id}/${act}`)));
  const refused = answers.filter((answer) => answer.status === "rejected");
  const done = answers.length - refused.length;
  if (done) toast(`${plural(done, "execution")} ${VERBS[act].done}`);
  if (refused.length) {
    const first = asProblem(refused[0]!.reason);
    toast(<><strong>{plural(refused.length, "execution")} not {VERBS[act].done}.</strong> {first.detail || first.title}</>, "bad");
  }
}

export function BulkDialog({ act, filter, close }: { act: Act; filter: ListFilter; close: () => void }) {
  const [now] = useState(Date.now);
  const [found, setFound] = useState<BulkAnswer>();
  const [problem, setProblem] = useState<ProblemDocument>();
  const [busy, setBusy] = useState(false);
  const ask = (dryRun: boolean) => post<BulkAnswer>("executions/bulk", { body: { do: act, where: whereOf(filter, now), dry_run: dryRun } });
  useEffect(() => {
    ask(true).then(setFound, (error: unknown) => setProblem(asProblem(error)));
  }, []);
  const run = async () => {
    setBusy(true);
    try {
      const answer = await ask(false);
      const refused = answer.executions.filter((item) => item.error).length;
      toast(`${plural(answer.executions.length - refused, "execution")} ${VERBS[act].done}${refused ? `, ${refused} refused` : ""}${answer.more ? "; more match: ask again" : ""}`, refused ? "bad" : "good");
      close();
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const count = found?.executions.length ?? 0;
  const foot = (
    <>
      <Button onClick={close}>Keep as it is</Button>
      <Button kind={act === "cancel" ? "danger" : "primary"} disabled={!count || busy} onClick={() => void run()}>{VERBS[act].title} {found ? plural(count, "execution") : "…"}</Button>
    </>
  );
  return (
    <Dialog title={`${VERBS[act].title} all that match`} close={close} foot={foot}>
      {problem && <Problem problem={problem} />}
      {!problem && (found ? <p>{count ? `${plural(count, "execution")}${found.more ? " now, and more after that," : ""} can be ${VERBS[act].done}.` : `None that matches the filter can be ${VERBS[act].done}.`}</p> : <p role="status">Counting…</p>)}
      <div class="stack tight">
        <span class="small muted">The same in a terminal</span>
        <CommandLine text={command("executions", act, "--where", whereText(filter, now) || "status=" + (act === "cancel" ? "running" : "failed"))} />
      </div>
    </Dialog>
  );
}
