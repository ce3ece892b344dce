/** A modal dialog: the browser keeps the focus in it and gives it back. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { asProblem } from "../api/client";
import type { ProblemDocument } from "../api/types";
import { Button, CommandLine, Problem } from "../view/parts";

export function Dialog({ title, close, children, foot, class: extra }: { title: string; close: () => void; children: ComponentChildren; foot?: ComponentChildren; class?: string }) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={extra}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => event.target === element.current && close()}
    >
      <div class="dialog-head">
        <h2 id={heading} class="grow">{title}</h2>
        <Button kind="bare" icon="close" aria-label="Close" onClick={close} />
      </div>
      <div class="dialog-body" tabIndex={0}>{children}</div>
      {foot && <div class="dialog-foot">{foot}</div>}
    </dialog>
  );
}

interface Question {
  title: string;
  text?: ComponentChildren;
  /** What the button says: the act, not "OK". */
  verb: string;
  danger?: boolean;
  /** The `noetl` command that does the same. */
  command?: string;
  act: () => Promise<void>;
}

const asked = signal<Question | null>(null);

/** Asks before something is done. The dialog stays if `act` fails, and says why. */
export function confirm(question: Question): void {
  asked.value = question;
}

export function Confirmation() {
  const question = asked.value;
  return question && <ConfirmDialog key={question.title} question={question} />;
}

function ConfirmDialog({ question }: { question: Question }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ProblemDocument>();
  const close = () => (asked.value = null);
  const act = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      await question.act();
      close();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  const foot = (
    <>
      <Button onClick={close}>Keep as it is</Button>
      <Button kind={question.danger ? "danger" : "primary"} disabled={busy} onClick={() => void act()}>{question.verb}</Button>
    </>
  );
  return (
    <Dialog title={question.title} close={close} foot={foot}>
      {question.text && <div>{question.text}</div>}
      {problem && <Problem problem={problem} />}
      {question.command && (
        <div class="stack tight">
          <span class="small muted">The same in a terminal</span>
          <CommandLine text={question.command} />
        </div>
      )}
    </Dialog>
  );
}
