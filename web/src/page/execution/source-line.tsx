import { href } from "../../router";
import type { ExecutionModel } from "./model";

/** `line 21`, with the way to it if the playbook is registered. */
export function SourceLine({ model, line }: { model: ExecutionModel; line: number }) {
  const registered = model.registered.value;
  if (!line) return null;
  const text = `line ${line}`;
  if (!registered) return <span class="muted small nowrap">{text}</span>;
  const address = href(`/playbooks/${registered}`, { tab: "source", line });
  return <a class="small nowrap" href={address}>{text}</a>;
}
