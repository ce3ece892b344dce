"""What the figures depend on beside the programs: interpreter, processor, and the disk."""

import os
import platform
import statistics
import sysconfig
import tempfile
import time
from pathlib import Path

SYNCS = 200
BLOCK = b"\0" * 4096


def describe_machine(folder: Path | None = None) -> dict[str, str]:
    """`folder` is where the stores of the workloads lie: that of temporary files."""
    data_folder = folder or Path(tempfile.gettempdir())
    return {
        "interpreter": describe_interpreter(),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()}",
        "file system": _file_system(data_folder),
        "fdatasync of 4 KiB": f"{_sync_time(data_folder) * 1e3:.2f} ms",
    }


def describe_interpreter() -> str:
    """Its version and how it was built: profile and link-time optimisation make it faster by 8 to 17 %."""
    settings = sysconfig.get_config_vars()
    arguments, flags = (str(settings.get(name) or "") for name in ("CONFIG_ARGS", "PY_CFLAGS"))
    build = [
        "profile-guided" if "--enable-optimizations" in arguments else "not profile-guided",
        "link-time optimised" if "--with-lto" in arguments or "-flto" in flags else "not link-time optimised",
        *[flag for flag in dict.fromkeys(flags.split()) if flag.startswith("-O")][-1:],
    ]
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{version}, {platform.python_compiler()}, {', '.join(build)}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _file_system(folder: Path) -> str:
    """Of the mount that the folder is on: the longest one that its path begins with."""
    try:
        lines = Path("/proc/mounts").read_text("utf-8", "replace").splitlines()
    except OSError:
        return "unknown"
    mounts = [line.split()[1:3] for line in lines]
    path = folder.resolve()
    fitting = [(len(mount), kind) for mount, kind in mounts if path.is_relative_to(mount)]
    return max(fitting)[1] if fitting else "unknown"


def _sync_time(folder: Path) -> float:
    """Seconds, the median: a block is appended and is on the disk."""
    sync = getattr(os, "fdatasync", os.fsync)  # macOS has none
    times = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(SYNCS):
            file.write(BLOCK)
            began = time.perf_counter()
            sync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times)
