"""The processor, the memory, and the limits of a container."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.runtime import machine


def test_this_machine() -> None:
    assert machine.cpu_model().strip()
    sizes = machine.memory()
    assert sizes is None or 0 < sizes[1] <= sizes[0]


@pytest.mark.parametrize(
    ("files", "cores", "memory"),
    [
        ({}, None, None),
        ({"cpu.max": "max 100000", "memory.max": "max"}, None, None),
        ({"cpu.max": "150000 100000", "memory.max": "1073741824\n"}, 1.5, 1 << 30),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None, None),
        (
            {
                "cpu/cpu.cfs_quota_us": "200000",
                "cpu/cpu.cfs_period_us": "100000",
                "memory/memory.limit_in_bytes": "4096",
            },
            2.0,
            4096,
        ),
        ({"memory/memory.limit_in_bytes": "9223372036854771712"}, None, None),
        ({"cpu.max": "rubbish", "memory.max": "x"}, None, None),
    ],
)
def test_limits_of_a_container(
    files: dict[str, str], cores: float | None, memory: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    assert machine.core_limit() == cores
    assert machine.memory_limit() == memory
