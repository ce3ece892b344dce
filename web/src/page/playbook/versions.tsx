/** The versions of a playbook, and what differs between two of them. */
import { get, playbookRoute, remove } from "../../api/client";
import { useResource } from "../../api/resource";
import type { DeletedPlaybook, PlaybookText, PlaybookVersion } from "../../api/types";
import { command } from "../../format/command";
import { difference } from "../../format/difference";
import { href, navigate, place, setQuery } from "../../router";
import { may } from "../../session";
import { confirm } from "../../shell/dialog";
import { toast } from "../../shell/toasts";
import { Button, Loaded } from "../../view/parts";
import { DifferenceText } from "../../view/source";
import { Time } from "../../view/time";

export function Versions({ path, shown, versions, reload }: { path: string; shown: number; versions: readonly PlaybookVersion[]; reload: () => Promise<void> }) {
  const asked = Number(place.value.query.get("with"));
  const other = versions.some((item) => item.version === asked) && asked !== shown ? asked : versions.find((item) => item.version < shown)?.version;
  const drop = (item: PlaybookVersion) =>
    confirm({
      title: `Delete version ${item.version}?`,
      text: "Executions that ran it keep their history. It is refused while one runs it.",
      verb: "Delete the version",
      danger: true,
      command: command("catalog", "delete", `${path}@${item.version}`),
      act: async () => {
        await remove<DeletedPlaybook>(playbookRoute(`${path}@${item.version}`));
        toast(`Version ${item.version} of ${path} deleted`);
        if (versions.length === 1) navigate(href("/playbooks"));
        else await reload();
      },
    });
  return (
    <div class="versions">
      <section class="panel">
        <table class="plain-table cards-on-phone">
          <thead><tr><th>Version</th><th>Registered</th><th>By</th><th><span class="hidden-text">Actions</span></th></tr></thead>
          <tbody>
            {versions.map((item) => (
              <tr key={item.version}>
                <td class="fixed"><a href={href(`/playbooks/${path}@${item.version}`, { tab: "versions" })} aria-current={item.version === shown ? "true" : undefined}>{item.version}</a> {item.label && <span class="badge">{item.label}</span>}{item.version === shown && <span class="badge running">shown</span>}</td>
                <td class="fixed"><Time at={item.created_at} /></td>
                <td class="muted name">{item.created_by}</td>
                <td class="right">{may("author") && <Button small kind="bare" icon="trash" aria-label={`Delete version ${item.version}`} onClick={() => drop(item)} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <section class="panel">
        <header>
          <h2>What differs</h2>
          {other !== undefined && (
            <label class="row push small">from version
              <select class="input small-select" value={other} onChange={(event) => setQuery({ with: event.currentTarget.value })}>
                {versions.filter((item) => item.version !== shown).map((item) => <option key={item.version} value={item.version}>{item.version}</option>)}
              </select>
              to {shown}
            </label>
          )}
        </header>
        {other === undefined ? <p class="panel-body muted">There is no other version yet.</p> : <Difference path={path} before={other} after={shown} />}
      </section>
    </div>
  );
}

function Difference({ path, before, after }: { path: string; before: number; after: number }) {
  const texts = useResource(
    (signal) => Promise.all([before, after].map((version) => get<PlaybookText>(playbookRoute(`${path}@${version}`), { signal }))),
    [path, before, after],
  );
  return <Loaded from={texts}>{([first, second]) => <DifferenceText lines={difference(first!.source, second!.source)} />}</Loaded>;
}
