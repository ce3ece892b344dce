"""Measures one workload in this process and prints a report."""

import sys

from bench.protocol import Recorder, print_report, read_arguments
from bench.workloads.engine import durability_of
from bench.workloads.engine_runs import measure_runs
from bench.workloads.hello import measure_hello
from bench.workloads.long_loop import measure_long_loop


def main(arguments: list[str]) -> None:
    workload, plan = read_arguments(arguments)
    recorder = Recorder(workload, plan, durability_of(workload), waits=workload.waits)
    peak = None
    match workload.shape:
        case "hello":
            peak = measure_hello(recorder)
        case "long loop":
            measure_long_loop(recorder, workload)
        case _:
            measure_runs(recorder, workload)
    print_report(recorder.report(peak))


if __name__ == "__main__":
    main(sys.argv[1:])
