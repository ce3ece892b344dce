import { useState } from "preact/hooks";
import { asProblem, get, post, remove, segments } from "../api/client";
import { useResource } from "../api/resource";
import type { CreatedToken, ProblemDocument, TokenItem, TokenList } from "../api/types";
import { command } from "../format/command";
import { Dialog, confirm } from "../shell/dialog";
import { toast } from "../shell/toasts";
import { Button, CommandLine, Loaded, PageHead, Problem, copyText } from "../view/parts";
import { Status } from "../view/status";
import { Time } from "../view/time";

const ROLES = [
  ["viewer", "reads"],
  ["operator", "reads, starts and operates"],
  ["author", "that, and changes playbooks"],
  ["admin", "that, and credentials, tokens, audit"],
  ["worker", "only runs what it has claimed"],
] as const;
const LIFETIMES = [[0, "until it is revoked"], [1, "1 day"], [30, "30 days"], [365, "1 year"]] as const;
const DAY = 86_400;

export default function Tokens() {
  const tokens = useResource((signal) => get<TokenList>("tokens", { signal }), []);
  const [making, setMaking] = useState(false);
  const revoke = (item: TokenItem) =>
    confirm({
      title: `Revoke ${item.name}?`,
      text: "Whoever uses it is turned away at once; sessions that came with it end, too.",
      verb: "Revoke it",
      danger: true,
      command: command("token", "revoke", item.name),
      act: async () => {
        await remove<TokenItem>(`tokens/${segments(item.name)}`);
        toast(`${item.name} revoked`);
        await tokens.reload();
      },
    });
  return (
    <main id="main" class="stack">
      <PageHead title="Tokens"><Button kind="primary" icon="plus" onClick={() => setMaking(true)}>New token</Button></PageHead>
      <Loaded from={tokens}>
        {(data) => (
          <section class="panel">
            <table class="plain-table cards-on-phone">
              <thead><tr><th>Name</th><th>State</th><th>Role</th><th>Made</th><th>By</th><th>Ends</th><th><span class="hidden-text">Actions</span></th></tr></thead>
              <tbody>
                {data.tokens.map((item) => (
                  <tr key={item.name + item.created_at}>
                    <td><strong>{item.name}</strong></td>
                    <td class="fixed"><Status status={item.valid ? "completed" : "cancelled"} word={item.valid ? "valid" : item.revoked_at ? "revoked" : "expired"} /></td>
                    <td class="fixed">{item.role}</td>
                    <td class="fixed"><Time at={item.created_at} /></td>
                    <td class="muted name">{item.created_by}</td>
                    <td class="fixed">{item.revoked_at ? <Time at={item.revoked_at} /> : item.expires_at ? <Time at={item.expires_at} /> : <span class="muted">when revoked</span>}</td>
                    <td class="right">{item.valid && <Button small onClick={() => revoke(item)}>Revoke…</Button>}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
        )}
      </Loaded>
      {making && <NewToken close={() => setMaking(false)} made={() => void tokens.reload()} />}
    </main>
  );
}

function NewToken({ close, made }: { close: () => void; made: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("viewer");
  const [days, setDays] = useState(0);
  const [created, setCreated] = useState<CreatedToken>();
  const [problem, setProblem] = useState<ProblemDocument>();
  const make = async () => {
    setProblem(undefined);
    try {
      setCreated(await post<CreatedToken>("tokens", { body: { name: name.trim(), role, expires_in: days ? days * DAY : null } }));
      made();
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  if (created)
    return (
      <Dialog title={`Token ${created.name}`} close={close} foot={<><Button icon="copy" onClick={() => void copyText(created.token)}>Copy</Button><Button kind="primary" onClick={close}>I have it</Button></>}>
        <p>This is the only time that it is shown:</p>
        <div class="command"><code>{created.token}</code></div>
      </Dialog>
    );
  return (
    <Dialog title="New token" close={close} foot={<Button kind="primary" disabled={!name.trim()} onClick={() => void make()}>Make it</Button>}>
      <form class="form" onSubmit={(event) => { event.preventDefault(); if (name.trim()) void make(); }}>
        <div class="field"><label for="token-name">Name</label><input id="token-name" class="input" value={name} maxLength={200} autofocus onInput={(event) => setName(event.currentTarget.value)} /><span class="help">Who or what uses it: it stands in the audit, and in who started an execution.</span></div>
        <div class="field"><label for="token-role">Role</label><select id="token-role" class="input" value={role} onChange={(event) => setRole(event.currentTarget.value)}>{ROLES.map(([value, text]) => <option key={value} value={value}>{value}: {text}</option>)}</select></div>
        <div class="field"><label for="token-life">Valid for</label><select id="token-life" class="input" value={days} onChange={(event) => setDays(Number(event.currentTarget.value))}>{LIFETIMES.map(([value, text]) => <option key={value} value={value}>{text}</option>)}</select></div>
        {problem && <Problem problem={problem} />}
        <CommandLine text={command("token", "create", name.trim() || "NAME", "--role", role, ...(days ? ["--expires", `${days}d`] : []))} />
      </form>
    </Dialog>
  );
}
