/** Cancel, retry or signal many: those that are chosen, or all that match the filter, after a look at how many that are. */
import { useEffect, useState } from "preact/hooks";
import { asProblem, post } from "../../api/client";
import type { BulkAnswer, OperationAnswer, ProblemDocument } from "../../api/types";
import { command } from "../../format/command";
import { jsonOf } from "../../format/json";
import { plural } from "../../format/number";
import { Dialog } from "../../shell/dialog";
import { toast } from "../../shell/toasts";
import { SignalFields } from "../../view/signal-fields";
import { Button, CommandLine, Problem } from "../../view/parts";
import { targetOf, whereText, type ListFilter } from "./filter";

export type Act = "cancel" | "retry" | "signal";
export const ACTS: readonly Act[] = ["cancel", "retry", "signal"];
export const VERBS: Record<Act, { title: string; done: string; text: string }> = {
  cancel: { title: "Cancel", done: "cancelled", text: "What they run ends, and all that they started." },
  retry: { title: "Retry", done: "retried", text: "Each goes on at what failed." },
  signal: { title: "Signal", done: "signalled", text: "Each gets it once; where nothing waits for it, it is kept." },
};

/** The executions that were chosen one by one, or all that a filter leaves. */
export type Target = { ids: readonly string[] } | { filter: ListFilter };

/** Each by itself: one that cannot be done does not keep the others. */
async function actOnChosen(act: Act, ids: readonly string[], body: Record<string, unknown>): Promise<void> {
  const answers = await Promise.allSettled(ids.map((id) => post<OperationAnswer>(`executions/${id}/${act}`, { body })));
  const refused = answers.filter((answer) => answer.status === "rejected");
  const done = answers.length - refused.length;
  if (done) toast(`${plural(done, "execution")} ${VERBS[act].done}`);
  if (refused.length) {
    const first = asProblem(refused[0]!.reason);
    toast(<><strong>{plural(refused.length, "execution")} not {VERBS[act].done}.</strong> {first.detail || first.title}</>, "bad");
  }
}

export function BulkDialog({ act, target, close }: { act: Act; target: Target; close: (done: boolean) => void }) {
  const [now] = useState(Date.now);
  const [found, setFound] = useState<BulkAnswer>();
  const [problem, setProblem] = useState<ProblemDocument>();
  const [busy, setBusy] = useState(false);
  const [signal, setSignal] = useState({ name: "", text: "true" });
  const payload = jsonOf(signal.text);
  const ids = "ids" in target ? target.ids : null;
  const ask = (dryRun: boolean) =>
    post<BulkAnswer>("executions/bulk", {
      // Which would be signalled does not depend on the signal, and it has no name yet.
      body: { do: act, ..."filter" in target ? targetOf(target.filter, now) : {}, dry_run: dryRun, ...(act === "signal" ? { signal: signal.name || "signal", payload: payload.value } : {}) },
    });
  useEffect(() => {
    if (!ids) ask(true).then(setFound, (error: unknown) => setProblem(asProblem(error)));
  }, []);
  const run = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      if (ids) await actOnChosen(act, ids, act === "signal" ? { name: signal.name, payload: payload.value } : {});
      else {
        const answer = await ask(false);
        const refused = answer.executions.filter((item) => item.error).length;
        toast(`${plural(answer.executions.length - refused, "execution")} ${VERBS[act].done}${refused ? `, ${refused} refused` : ""}${answer.more ? "; more match: ask again" : ""}`, refused ? "bad" : "good");
      }
      close(true);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const count = ids ? ids.length : (found?.executions.length ?? 0);
  const ready = count > 0 && !busy && (act !== "signal" || (signal.name !== "" && payload.wrong === null));
  const words = act === "signal" ? [signal.name || "SIGNAL", signal.text] : [];
  const lines = "filter" in target ? [command("executions", act, "--where", whereText(target.filter, now), ...words)] : target.ids.map((id) => command("executions", act, id, ...words));
  const foot = (
    <>
      <Button onClick={() => close(false)}>Keep as it is</Button>
      <Button kind={act === "cancel" ? "danger" : "primary"} disabled={!ready} onClick={() => void run()}>{VERBS[act].title} {ids || found ? plural(count, "execution") : "…"}</Button>
    </>
  );
  return (
    <Dialog title={ids ? `${VERBS[act].title} ${plural(ids.length, "execution")}?` : `${VERBS[act].title} all that match`} close={() => close(false)} foot={foot}>
      {problem && <Problem problem={problem} />}
      {ids && <p>{VERBS[act].text}</p>}
      {!ids && !problem && (found ? <p>{count ? `${plural(count, "execution")}${found.more ? " now, and more after that," : ""} can be ${VERBS[act].done}.` : `None that matches the filter can be ${VERBS[act].done}.`}</p> : <p role="status">Counting…</p>)}
      {act === "signal" && <div class="form"><SignalFields value={signal} change={setSignal} wrong={payload.wrong} awaited={[]} /></div>}
      <div class="stack tight">
        <span class="small muted">The same in a terminal</span>
        <CommandLine text={lines.join("\n")} />
      </div>
    </Dialog>
  );
}
