"""The page about logs, metrics and traces, made from the tables of the code."""

from noetl.process_log import LogEvent
from noetl.server.measures import METRICS

LOGS = """\
# Logs, metrics and traces

What servers and workers say of themselves. What happened to an execution is in its events (`noetl executions show`), and what
its tasks printed in its own log (`noetl executions logs`); neither is repeated here.

## Logs

A server and its workers write a line to standard error for each thing that an operator may want to know, and none for each event of
an execution. `--log-format json` makes each a JSON document, `--log-level` names the least that is written; the settings are
`log_format` and `log_level`. A server that was started with `--detach` writes to `server.log` in its home. The lines of the HTTP
server underneath go the same way, with its name as `logger`.

    {"time":"2026-11-17T22:59:24.114339Z","level":"info","event":"worker connected","worker":"app-7","session":"0ab8…","slots":32}

Each has `time` (UTC), `level` and `event`, and where it applies `execution_id`, `run`, `worker`, `session`, `url`, `error`. Secrets
are masked in errors before they are recorded, and stand in no line; nor do tokens.

| event | level | meaning |
| --- | --- | --- |
"""
MONITORING = """
## Health

`/healthz` answers as long as the process is there. `/readyz` is 503 while the server cannot serve: its store does not answer, the
disk of its home has less than 32 MiB left, or it is about to end. Neither needs a token. `noetl server status` says more, and `GET
/api/status` the same for programs.

## Metrics

`GET /metrics` has what Prometheus reads. It needs a token of the role `viewer`, on loopback too: a proxy in front would else show
it to everybody.

    scrape_configs:
    - job_name: noetl
      authorization: {credentials_file: /etc/prometheus/noetl.token}
      static_configs: [{targets: ["127.0.0.1:8642"]}]

    noetl token create prometheus --role viewer --home DIR

Workers have no port to scrape: what their tasks took comes with their reports. Counters begin at 0 with each start of the server.
Beside these there are the usual `process_…` of memory, processor time and open files.

| metric | type | labels | meaning |
| --- | --- | --- | --- |
"""
ALERTS = """
Worth an alert: `noetl_stuck_executions > 0`; `noetl_queue_age_seconds` above what you can wait for, which is also what to scale workers
by; `rate(noetl_leases_expired_total{reason="expired"}[10m])`; a `noetl_commit_seconds` whose 99th percentile leaves the range of
your disk; no `up`.
"""
TRACES = """
## Traces

With `pip install 'noetl[otel]'` a server sends traces (OTLP over HTTP, protobuf) where the standard variables of OpenTelemetry say:

    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 noetl server start

An execution is one trace, whose id is its `trace_id`: a span for it, under that one for each step run, and under that one for each
attempt of a task, with its outcome, its kind of error and `noetl.…` attributes. The span id of a first attempt is `outcome.meta.span_id`. A child is
linked to the step run that started it. Spans are made when what they tell of is durable; workers send none, their reports have
the times.

`noetl run` sends none: its display and its event log show the same times, and it would wait for a collector at its end. A server
that is started on the same home later sends traces of what it runs itself.

`http` tasks send the header `traceparent`, unless the playbook gives one, where the worker that runs them has such variables, too.

`OTEL_SERVICE_NAME` (`noetl`), `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_TRACES_SAMPLER` hold as everywhere;
`OTEL_TRACES_EXPORTER=none` and `OTEL_SDK_DISABLED=true` turn it off. Without any of them nothing of OpenTelemetry is loaded.
"""


def metrics_page() -> str:
    lines = [LOGS.rstrip("\n")]
    lines += [f"| `{event.words}` | {event.level} | {event.meaning} |" for event in LogEvent]
    lines.append(MONITORING.rstrip("\n"))
    for metric in METRICS:
        name = f"{metric.name}_total" if metric.kind == "counter" else metric.name
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{name}` | {metric.kind} | {labels} | {metric.meaning} |")
    lines.append(ALERTS.rstrip("\n"))
    lines.append(TRACES.rstrip("\n"))
    return "\n".join(lines) + "\n"
