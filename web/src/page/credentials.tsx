import { get, remove, segments } from "../api/client";
import { useResource } from "../api/resource";
import type { CredentialItem, CredentialList, CredentialUsage, CredentialUsageList } from "../api/types";
import { command } from "../format/command";
import { plural } from "../format/number";
import { href } from "../router";
import { confirm } from "../shell/dialog";
import { toast } from "../shell/toasts";
import { Button, CommandLine, Empty, Loaded, PageHead } from "../view/parts";
import { Time } from "../view/time";

interface Row {
  name: string;
  stored: CredentialItem | null;
  /** Null if it is not known: the names are worth showing without. */
  usage: CredentialUsage | null;
}

async function read(signal: AbortSignal): Promise<Row[]> {
  const [list, usage] = await Promise.all([get<CredentialList>("credentials", { signal }), get<CredentialUsageList>("credential-usage", { signal }).catch(() => null)]);
  const names = [...new Set([...list.credentials.map((item) => item.name), ...(usage?.usage ?? []).map((item) => item.name)])].sort();
  return names.map((name) => ({
    name,
    stored: list.credentials.find((item) => item.name === name) ?? null,
    usage: usage && (usage.usage.find((item) => item.name === name) ?? { name, stored: true, uses: [] }),
  }));
}

export default function Credentials() {
  const rows = useResource(read, []);
  const drop = (name: string, uses: number) =>
    confirm({
      title: `Delete the credential ${name}?`,
      text: uses ? `${plural(uses, "task")} of registered playbooks name it, and fail without it.` : "No registered playbook names it.",
      verb: "Delete it",
      danger: true,
      command: command("credential", "delete", name),
      act: async () => {
        await remove<CredentialItem>(`credentials/${segments(name)}`);
        toast(`Credential ${name} deleted`);
        await rows.reload();
      },
    });
  return (
    <main id="main" class="stack">
      <PageHead title="Credentials" />
      <p class="muted">Names and kinds. Values are sealed in the store, and never shown here. To set one:</p>
      <CommandLine text="noetl credential set NAME --field user=… --field password=…" />
      <Loaded from={rows}>
        {(data) =>
          data.length ? (
            <section class="panel">
              <table class="plain-table cards-on-phone">
                <thead><tr><th>Name</th><th>Kind</th><th>Changed</th><th>Used by</th><th><span class="hidden-text">Actions</span></th></tr></thead>
                <tbody>
                  {data.map((row) => (
                    <tr key={row.name}>
                      <td><strong>{row.name}</strong></td>
                      <td>{row.stored ? row.stored.kind : <span class="badge failed">not stored</span>}</td>
                      <td class="fixed">{row.stored && <Time at={row.stored.updated_at} />}</td>
                      <td class="wide"><Uses usage={row.usage} /></td>
                      <td class="right">{row.stored && <Button small kind="bare" icon="trash" aria-label={`Delete ${row.name}`} onClick={() => drop(row.name, row.usage?.uses.length ?? 0)} />}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          ) : (
            <Empty title="No credential is stored">Playbooks name credentials; their values live here, sealed.</Empty>
          )
        }
      </Loaded>
    </main>
  );
}

function Uses({ usage }: { usage: CredentialUsage | null }) {
  if (!usage) return <span class="muted">not known</span>;
  if (!usage.uses.length) return <span class="muted">no registered playbook</span>;
  return (
    <ul>
      {usage.uses.slice(0, 6).map((use) => <li key={`${use.path} ${use.step} ${use.task}`}><a href={href(`/playbooks/${use.path}@${use.version}`)}>{use.path}</a> <span class="muted small">{use.step}</span></li>)}
      {usage.uses.length > 6 && <li class="muted small">and {plural(usage.uses.length - 6, "more task")}</li>}
    </ul>
  );
}
