import { useState } from "preact/hooks";
import { asProblem, post } from "../../api/client";
import type { OperationAnswer, ProblemDocument } from "../../api/types";
import { command } from "../../format/command";
import { Dialog } from "../../shell/dialog";
import { toast } from "../../shell/toasts";
import { Button, CommandLine, Problem } from "../../view/parts";
import { jsonOf } from "./json-field";
import type { ExecutionModel } from "./model";

/** A signal by its name, with what it brings. Waits with a form are answered in the inbox. */
export function SignalDialog({ model, close }: { model: ExecutionModel; close: () => void }) {
  const [name, setName] = useState("");
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
        <div class="field"><label for="signal-name">Name</label><input id="signal-name" class="input" value={name} onInput={(event) => setName(event.currentTarget.value)} /></div>
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
