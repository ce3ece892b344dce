/** The newest executions of a playbook, and how long its steps take. */
import type { PlaybookStatistics } from "../../api/types";
import { plural } from "../../format/number";
import { duration } from "../../format/time";
import { GridTable } from "../../list/grid-table";
import { href, navigate } from "../../router";
import { Empty, LinkButton } from "../../view/parts";
import { Status } from "../../view/status";
import { CompactExecution, EXECUTION_COLUMNS, executionHref } from "../executions/execution-columns";

export function Runs({ statistics }: { statistics: PlaybookStatistics }) {
  const { executions, path } = statistics;
  if (!executions.length) return <Empty title="It was not run yet" action={<LinkButton kind="primary" icon="play" href={href(`/run/${path}`)}>Run it</LinkButton>} />;
  return (
    <div class="stack">
      <div class="row wrap">
        {Object.entries(statistics.ended).map(([status, count]) => <span class="row" key={status}><Status status={status} word={`${count} ${status}`} /></span>)}
        <span class="muted">median {duration(statistics.median_ms)}, 95 % within {duration(statistics.p95_ms)}</span>
        <a class="push" href={href("/executions", { path })}>All executions</a>
      </div>
      <GridTable short label="Executions" rows={executions} columns={EXECUTION_COLUMNS} keyOf={(item) => item.execution_id} compact={(item) => <CompactExecution item={item} />} open={(item) => navigate(executionHref(item.execution_id))} />
    </div>
  );
}

export function Durations({ statistics }: { statistics: PlaybookStatistics }) {
  const steps = statistics.steps;
  const most = Math.max(1, ...steps.map((step) => step.p95_ms));
  if (!steps.length) return <Empty title="No step has run yet">Durations come from the newest executions.</Empty>;
  return (
    <section class="panel">
      <header><h2>Duration by step</h2><span class="push small muted">of {plural(statistics.executions.length, "execution")}, the newest</span></header>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Duration by step">
        <table class="plain-table">
          <thead><tr><th>Step</th><th class="right">Runs</th><th class="right">Failed</th><th class="right">Median</th><th class="right">95 %</th><th class="right not-on-phone">Longest</th><th class="bar-column not-on-phone"><span class="hidden-text">Median and 95 % as bars</span></th></tr></thead>
          <tbody>
            {steps.map((step) => (
              <tr key={step.step}>
                <td class="fixed">{step.step}</td>
                <td class="right">{step.runs}</td>
                <td class="right">{step.failed ? <span class="failed-text">{step.failed}</span> : 0}</td>
                <td class="right fixed">{duration(step.median_ms)}</td>
                <td class="right fixed">{duration(step.p95_ms)}</td>
                <td class="right fixed not-on-phone">{duration(step.most_ms)}</td>
                <td class="bar-column not-on-phone"><div class="span-bar" style={{ width: `${Math.max(1, (step.p95_ms / most) * 100)}%` }}><div style={{ width: `${step.p95_ms ? Math.min(100, (step.median_ms / step.p95_ms) * 100) : 0}%` }} /></div></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
