import { useState } from "preact/hooks";
import { asProblem, get, post } from "../../api/client";
import type { Explanation, OperationAnswer, ProblemDocument } from "../../api/types";
import { command } from "../../format/command";
import { jsonOf } from "../../format/json";
import { Dialog } from "../../shell/dialog";
import { toast } from "../../shell/toasts";
import { Button, CommandLine, Problem } from "../../view/parts";
import { SignalFields, type SignalText } from "../../view/signal-fields";
import { href } from "../../router";
import { useAnswer } from "./answer";
import type { ExecutionModel } from "./model";

function awaitedSignals(explanation: Explanation | undefined): string[] {
  const signals = (explanation?.runs ?? []).flatMap((run) => (run.waits ?? []).map((wait) => wait.signal ?? ""));
  const gates = (explanation?.parked ?? []).filter((token) => token.mode === "waiting").flatMap((token) => token.signals ?? []);
  return [...new Set([...signals, ...gates].filter(Boolean))];
}

/** A signal by its name, with what it brings. Waits with a form are answered in the inbox. */
export function SignalDialog({ model, close }: { model: ExecutionModel; close: () => void }) {
  const [typed, setTyped] = useState<SignalText | null>(null);
  const at = model.last.value;
  const answer = useAnswer(`${model.id} explanation ${at}`, (signal) =>
    get<Explanation>(model.route("explanation"), { query: { at }, signal }),
  );
  const awaited = awaitedSignals(answer.data);
  const signal = typed ?? { name: awaited[0] ?? "", text: "true" };
  const { name, text } = signal;
  const [problem, setProblem] = useState<ProblemDocument>();
  const payload = jsonOf(text);
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      await post<OperationAnswer>(model.route("signal"), { body: { name, payload: payload.value } });
      toast(`Sent ${name}`);
      close();
      await model.refresh();
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  const foot = (
    <>
      <Button onClick={close}>Close</Button>
      <Button kind="primary" disabled={!name || payload.wrong !== null} onClick={(event) => void send(event)}>Send</Button>
    </>
  );
  return (
    <Dialog title="Send a signal" close={close} foot={foot}>
      <form class="form" onSubmit={(event) => void send(event)}>
        <SignalFields
          value={signal}
          change={setTyped}
          wrong={payload.wrong}
          awaited={awaited}
          help={<>{awaited.length ? `It waits for ${awaited.join(", ")}.` : "Nothing waits for a signal now; one that is sent is kept."} What asks a person is answered in the <a href={href("/inbox")}>inbox</a>.</>}
        />
      </form>
      {problem && <Problem problem={problem} />}
      <CommandLine text={command("executions", "signal", model.id, name || "SIGNAL", text)} />
    </Dialog>
  );
}
