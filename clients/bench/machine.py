"""The machine that a figure belongs to, and what keeps it busy."""

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

_CPU_INFO = Path("/proc/cpuinfo")
_GIB = 1024**3
_IDLE_FIELDS = ("idle", "iowait")
_COUNTED_TWICE = ("guest", "guest_nice")
"""Linux counts these in user and nice as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a figure depends on besides the program."""

    cpu: str
    cores: int
    memory_gib: float
    system: str
    python: str

    def as_json(self) -> dict[str, Any]:
        """For files."""
        return asdict(self)


def this_machine() -> Machine:
    """Looks around."""
    return Machine(
        cpu=_cpu_name(),
        cores=usable_cores(),
        memory_gib=round(psutil.virtual_memory().total / _GIB, 1),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
    )


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1


def busy_cpu_s() -> float:
    """Seconds that all cores together have been busy since the machine started."""
    times = psutil.cpu_times()._asdict()
    return float(sum(value for name, value in times.items() if name not in (*_IDLE_FIELDS, *_COUNTED_TWICE)))


def _cpu_name() -> str:
    if _CPU_INFO.is_file():
        for line in _CPU_INFO.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
