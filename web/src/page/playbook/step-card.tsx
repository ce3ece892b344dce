/** What a step of a net is made of; without one, all of them as a tree, with the same ways to go. */
import type { NetAnswer, NetBox } from "../../api/types";
import { plural } from "../../format/number";
import { setQuery } from "../../router";
import { Button } from "../../view/parts";

export function StepCard({ net, box, sourceHref }: { net: NetAnswer; box: NetBox | null; sourceHref: (line: number) => string }) {
  if (!box) return <Outline net={net} />;
  const arcs = net.routes.filter((route) => route.source === box.step);
  return (
    <div class="panel-body stack">
      <div class="row"><h2 class="grow">{box.step}</h2><Button small kind="bare" icon="close" aria-label="Choose no step" onClick={() => setQuery({ step: null })} /></div>
      {box.desc && <p class="muted">{box.desc}</p>}
      <p class="row wrap">{box.roles.map((role) => <span class="badge" key={role}>{role}</span>)}<a class="small" href={sourceHref(box.line)}>line {box.line}</a></p>
      {box.badges.map((badge) => <div key={badge.kind}><h3>{badge.kind}</h3><p class="small">{badge.text}</p>{badge.detail && <p class="small muted">{badge.detail}</p>}</div>)}
      <div>
        <h3>{plural(box.tasks.length, "task")}</h3>
        <ul>
          {box.tasks.map((task) => (
            <li key={task.label} class="row wrap"><a href={sourceHref(task.line)}>{task.label}</a><span class="badge">{task.kind}</span>{task.marks.map((mark) => <span class="small muted" key={mark.kind + mark.text}>{mark.kind} {mark.text}</span>)}</li>
          ))}
        </ul>
      </div>
      <div>
        <h3>{arcs.length ? `then ${box.inclusive ? "every one that holds" : "the first that holds"}` : "then nothing"}</h3>
        <ul class="stack tight">
          {arcs.map((arc) => (
            <li key={arc.number}><button type="button" class="link" onClick={() => setQuery({ step: arc.target })}>{arc.target}</button> {arc.guard ? <code class="guard">{arc.guard}</code> : <span class="muted small">always</span>}</li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function Outline({ net }: { net: NetAnswer }) {
  return (
    <div class="panel-body stack tight">
      <h2>{plural(net.boxes.length, "step")}</h2>
      <ul class="outline">
        {net.boxes.map((box) => (
          <li key={box.step}>
            <button type="button" class="link" onClick={() => setQuery({ step: box.step })}>{box.step}</button> <span class="muted small">{box.tasks.map((task) => task.kind).join(", ")}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
