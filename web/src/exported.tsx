/** An exported execution: the same page, answered from the file that it stands in. */
import { render } from "preact";
import { answerFrom, ApiError } from "./api/client";
import { ExecutionView } from "./page/execution";
import { questionKey, type ExportedData } from "./page/execution/export";
import { ExecutionModel } from "./page/execution/model";
import { setQuery } from "./router";

const data = JSON.parse(document.getElementById("data")!.textContent!) as ExportedData;

answerFrom((method, route, query) => {
  if (method === "GET" && route.endsWith("/events")) {
    const after = Number(query.after ?? 0);
    return { events: data.events.slice(after, after + Number(query.limit ?? 1)), next_cursor: null };
  }
  if (method === "GET" && route.endsWith("/logs")) {
    // All of them at once: who asks for what comes later gets nothing.
    const lines = query.after ? [] : data.lines.filter((line) => !query.step || line.step === query.step);
    return { lines, next_cursor: null, last: "all" };
  }
  const number = data.answers[questionKey(route, query)];
  if (number !== undefined) return JSON.parse(data.texts[number]!);
  throw new ApiError({
    type: "about:blank",
    title: "this is not in the file",
    status: 404,
    code: "not_found",
    hint: route.startsWith("results/") ? "The file has the first rows of a value that is kept apart." : momentHint(Number(query.at)),
  });
});

/** Of a large execution the file has why and values at some events: which are near. */
function momentHint(at: number): string {
  const before = data.moments.findLast((moment) => moment < at);
  const after = data.moments.find((moment) => moment > at);
  const near = [before, after].filter((moment) => moment !== undefined).join(" and ");
  return `The file has the net, the time, the events and the logs at every event, why and values at some: ${near || "no others"}.`;
}

// It opens as the page looked that it was made from, unless its address says something else.
if (!location.search) setQuery(Object.fromEntries(new URLSearchParams(data.view)));
const model = new ExecutionModel(data.id);
render(<ExecutionView model={model} />, document.getElementById("app")!);
void model.load();
