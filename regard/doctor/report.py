"""The report of `regard doctor`: as data, and as text for a bug report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

from regard.doctor.facts import SECTIONS, attempt, gather
from regard.doctor.kernels import kernel_reports
from regard.doctor.self_test import self_test

WIDTH = 13  # of the names of sections
NAME_WIDTH = 24  # of the names of kernels and checks


def diagnose(test: bool = True) -> dict[str, Any]:
    """Return the facts of this installation, its kernels, and unless `test` is False the results of the self-test."""
    devices = attempt(_devices)
    report = gather(SECTIONS)
    if isinstance(devices, dict):  # its error
        report["devices"], devices = devices, [torch.device("cpu")]
    report["kernels"] = {str(device): attempt(partial(_kernels, device)) for device in devices}
    if test:
        report["self_test"] = [result._asdict() for result in self_test(devices)]
    return report


def has_passed(report: Mapping[str, Any]) -> bool:
    """Return whether no check of the self-test failed."""
    return all(check["passed"] for check in report.get("self_test", ()))


def as_text(report: Mapping[str, Any]) -> str:
    """Return the report as plain text."""
    lines: list[str] = []
    for name, section in report.items():
        if name == "kernels":
            for device, kernels in section.items():
                lines += ["", f"kernels on {device}", *_kernel_lines(kernels)]
        elif name == "self_test":
            lines += ["", "self-test", *(f"  {line}" for line in map(check_line, section))]
        elif name == "caches" and isinstance(section, list):
            entries = sum(cache["entries"] for cache in section)
            lines.append(f"{name:{WIDTH}}{len(section)}, with {entries} entries")
        else:
            lines.append(f"{name:{WIDTH}}{_inline(section)}".rstrip())
    return "\n".join(lines)


def check_line(check: Mapping[str, Any]) -> str:
    """Return the line of a check."""
    verdict = "ok" if check["passed"] else "FAILED"
    title = f"{check['name']} on {check['device']}"
    return f"{verdict:7}{title:{NAME_WIDTH}}{check['detail']} ({check['seconds']:.1f} s)"


def _devices() -> list[torch.device]:
    """Return the CPU and all GPUs."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [torch.device("cpu"), *(torch.device("cuda", index) for index in range(count))]


def _kernels(device: torch.device) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "purpose": each.purpose, "runs": each.runs, "reason": each.reason}
        for each in kernel_reports(device)
    ]


def _kernel_lines(kernels: Any) -> list[str]:
    if isinstance(kernels, dict):
        return [f"  {_inline(kernels)}"]
    texts = [each["purpose"] if each["runs"] else f"{each['reason']} ({each['purpose']})" for each in kernels]
    return [
        f"  {'yes' if each['runs'] else 'no':7}{each['name']:{NAME_WIDTH}}{text}"
        for each, text in zip(kernels, texts, strict=True)
    ]


def _title(name: str) -> str:
    """Return the name of a fact before its value; that of an environment variable as in a shell."""
    return f"{name}=" if name.isupper() else f"{name.replace('_', ' ')} "


def _inline(section: Any) -> str:
    """Return facts in a line."""
    if isinstance(section, Mapping):
        return ", ".join(f"{_title(name)}{_inline(value)}" for name, value in section.items()) or "none"
    if isinstance(section, Sequence) and not isinstance(section, str):
        return "; ".join(map(_inline, section)) or "none"
    return {True: "yes", False: "no"}.get(section, str(section)) if isinstance(section, bool) else str(section)
