"""A sample of the hostile requests of benchmarks/serving.py."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.serving.settings import Limits, ServerSettings
from tests.serving.live import running

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_hostile_requests(
    translator_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from serving_parts import hostile
    from serving_parts.process import RunningServer

    alive: Any = SimpleNamespace(poll=lambda: None)
    with running(ServerSettings([translator_folder], limits=Limits(body_seconds=5.0))) as address:
        host, port = address.removeprefix("http://").split(":")
        asyncio.run(hostile._attack(RunningServer(host, int(port), alive), 60))
    report = capsys.readouterr().out
    assert "60 hostile requests, 0 answered wrongly (0); " in report, report
    assert sys.modules.pop("serving_parts")
