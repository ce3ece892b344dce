"""Runs one workload in this process and prints its row as JSON."""

import importlib
import json
import sys

if __name__ == "__main__":
    print(json.dumps(importlib.import_module(f"bench.workloads.{sys.argv[1]}").run()._asdict()))
