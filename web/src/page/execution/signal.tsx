import { useState } from "preact/hooks";
import { asProblem, get, post } from "../../api/client";
import type { Explanation, OperationAnswer, ProblemDocument } from "../../api/types";
import { command } from "../../format/command";
import { Dialog } from "../../shell/dialog";
import { toast } from "../../shell/toasts";
import { Button, CommandLine, Problem } from "../../view/parts";
import { jsonOf } from "./json-field";
import { href } from "../../router";
import { useAnswer } from "./answer";
import type { ExecutionModel } from "./model";

function awaitedSignals(explanation: Explanation | undefined): string[] {
  const signals = (explanation?.runs ?? []).flatMap((run) => (run.waits ?? []).map((wait) => wait.signal ?? ""));
  return [...new Set(signals.filter(Boolean))];
}

/** A signal by its name, with what it brings. Waits with a form are answered in the inbox. */
export function SignalDialog({ model, close }: { model: ExecutionModel; close: () => void }) {
  const [typed, setName] = useState<string | null>(null);
  const at = model.last.value;
  const answer = useAnswer(`${model.id} explanation ${at}`, (signal) =>
    get<Explanation>(model.route("explanation"), { query: { at }, signal }),
  );
  const awaited = awaitedSignals(answer.data);
  const name = typed ?? awaited[0] ?? "";
  const [text, setText] = useState("true");
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
        <div class="field"><label for="signal-name">Name</label><input id="signal-name" class="input" list="signal-names" value={name} onInput={(event) => setName(event.currentTarget.value)} /><datalist id="signal-names">{awaited.map((signal) => <option key={signal} value={signal} />)}</datalist><p class="help">{awaited.length ? `It waits for ${awaited.join(", ")}.` : "No task waits for a signal now; one that is sent is kept."} What asks a person is answered in the <a href={href("/inbox")}>inbox</a>.</p></div>
        <div class="field">
          <label for="signal-payload">Payload <span class="type">JSON</span></label>
          <textarea id="signal-payload" class="input code" rows={4} spellcheck={false} aria-invalid={payload.wrong !== null} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          {payload.wrong && <p class="wrong">{payload.wrong}</p>}
        </div>
      </form>
      {problem && <Problem problem={problem} />}
      <CommandLine text={command("executions", "signal", model.id, name || "NAME", "--payload", text)} />
    </Dialog>
  );
}
