"""`regard.on_ray` on a local Ray."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import regard
from tests.batch.lines import LINES, NOTICES, OPTIONS, SHARD_LINES, expected, joined, kill_one_owner, no_claims

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")


@pytest.fixture(scope="module", autouse=True)
def local_ray() -> Iterator[None]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def translate(model: Path, file: Path, shards: Path) -> regard.ShardReport:
    options = {"search": OPTIONS.search, "precision": OPTIONS.precision, "shard_lines": SHARD_LINES}
    return regard.on_ray(model, file, shards, workers=2, device="cpu", **options)  # type: ignore[arg-type]


def test_two_actors_give_the_same_output(model: Path, file: Path, tmp_path: Path) -> None:
    report = translate(model, file, tmp_path / "shards")
    assert report.lines == len(LINES) and report.notices == NOTICES
    assert joined(tmp_path / "shards", tmp_path / "out") == expected(model) and no_claims(tmp_path / "shards")


def test_one_actor_is_killed(model: Path, file: Path, tmp_path: Path) -> None:
    killer = threading.Thread(target=kill_one_owner, args=(tmp_path / "shards",))
    killer.start()
    translate(model, file, tmp_path / "shards")
    killer.join()
    assert joined(tmp_path / "shards", tmp_path / "out") == expected(model) and no_claims(tmp_path / "shards")
