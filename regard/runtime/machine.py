"""The machine: its processor, its memory, and the limits of a container."""

from __future__ import annotations

import platform
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def cpu_model() -> str:
    """Return the name of the processor, or its architecture where the system does not tell the name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names and names[0] else platform.processor() or platform.machine()


def core_limit() -> float | None:
    """Return how many cores' worth of time a container (cgroup) allows; None: no limit is known."""
    quota, _, period = _cgroup_text("cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit():
        return int(quota) / int(period)
    quota, period = _cgroup_text("cpu/cpu.cfs_quota_us"), _cgroup_text("cpu/cpu.cfs_period_us")  # version 1
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def memory_limit() -> int | None:
    """Return the bytes of memory that a container (cgroup) allows; None: no limit is known."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        text = _cgroup_text(name)
        if text.isdigit() and int(text) < 1 << 60:  # version 1 writes a huge number for no limit
            return int(text)
    return None


def memory() -> tuple[int, int] | None:
    """Return the bytes of memory of the machine, in all and available; None: unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        kibibytes = {line.partition(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB")}
        return kibibytes["MemTotal"] * 1024, kibibytes["MemAvailable"] * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None


def _cgroup_text(name: str) -> str:
    """Return the content of a file of the cgroup, empty if there is none."""
    try:
        return (CGROUP / name).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
