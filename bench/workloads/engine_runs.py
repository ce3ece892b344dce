"""Runs of documents in a warm process: chains, loops and python tasks."""

from bench.protocol import Recorder
from bench.workload_table import NEW, RUN, Workload
from bench.workloads.documents import document_of
from bench.workloads.engine import BenchEngine, with_engine


def measure_runs(recorder: Recorder, workload: Workload) -> None:
    """Every lap brings a document that is new, and runs it again: the two figures stand apart."""

    async def work(engine: BenchEngine) -> None:
        for shot in recorder.shots():
            for lap in range(workload.laps):
                source = document_of(workload, edition=1 + shot * workload.laps + lap)
                for figure in (NEW, RUN):
                    with recorder.lap(figure):
                        ids = await engine.run(source, workload.runs)
                    recorder.check(await engine.count_tasks(ids, workload))

    with_engine(work)
