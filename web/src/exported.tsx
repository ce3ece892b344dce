/** An exported execution: the same page, answered from the file that it stands in. */
import { render } from "preact";
import { answerFrom, ApiError } from "./api/client";
import { ExecutionView } from "./page/execution";
import { questionKey, type ExportedData } from "./page/execution/export";
import { ExecutionModel } from "./page/execution/model";

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
  const answer = data.answers[questionKey(route, query)];
  if (answer !== undefined) return answer;
  throw new ApiError({
    type: "about:blank",
    title: "this is not in the file",
    status: 404,
    code: "not_found",
    hint: `The file has why and values at event ${data.moments.join(" and ")}; the net, the time, the events and the logs at every event.`,
  });
});

const model = new ExecutionModel(data.id);
render(<ExecutionView model={model} />, document.getElementById("app")!);
void model.load();
