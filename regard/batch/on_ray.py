"""`regard.on_ray`: the shards of a file, translated by actors of Ray Data on a cluster whose machines share the folder.

Ray hands out the numbers of shards, starts actors and replaces those that die. Everything else is as for the workers of
`translate_file`, which may work in the same folder at the same time.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.batch.claims import Claims
from regard.batch.cutting import Cutter
from regard.batch.folder import ShardFolder
from regard.batch.manifest import read_manifest
from regard.batch.run import ShardReport, begin, options_of, report_on, whole_number_or_none
from regard.batch.translation import load_translator
from regard.batch.work import ShardQueue, Shift
from regard.runtime.precision import Precision
from regard.tasks.translation.search_options import Search
from regard.text.glossary import Glossary

MAX_BLOCKS = 10_000  # of shards, which Ray tracks one by one
WAIT_SECONDS = 1.0  # between two rounds over shards that other processes work on


def on_ray(
    model: str | Path,
    file: str | Path,
    shards: str | Path,
    *,
    workers: int = 2,
    threads: int = 1,
    ensemble: Sequence[str | Path] = (),
    search: Search | None = None,
    prefix: str = "",
    glossary: Glossary | None = None,
    keep: str | Sequence[str] = (),
    as_json: bool = False,
    shard_lines: int | None = None,
    device: str | None = None,
    precision: Precision = "auto",
) -> ShardReport:
    """Translate a file in shards with `workers` Ray actors of `threads` CPU threads each, else as `translate_file`.

    It uses the Ray that is initialized, or the cluster that RAY_ADDRESS names, or starts one on this machine. Each
    actor takes a GPU if the cluster has some and `device` is not "cpu". Models and folder must have the same paths on
    all machines.
    """
    whole_number_or_none("workers", workers)
    whole_number_or_none("threads", threads)
    models = [Path(each).resolve() for each in (model, *ensemble)]
    options = options_of(models[0], search, prefix, glossary, keep, as_json, precision)
    with _ray():
        folder, manifest = begin(Path(shards).resolve(), Path(file), models, options, shard_lines)
        Cutter(folder, Path(file), manifest.shard_lines).run()
        names = [str(each) for each in models]
        constructor = {"folder": str(folder.root), "models": names, "device": device, "threads": threads}
        notices = 0
        while missing := list(ShardQueue(folder, Claims(folder.claims)).missing()):
            notices += _translate(missing, constructor, workers)
            if any(not folder.has_ended(shard) for shard in missing):
                time.sleep(WAIT_SECONDS)
        return report_on(folder, manifest, notices)


class ShardActor:
    """Translates the shards whose numbers Ray Data hands to it."""

    def __init__(self, folder: str, models: list[str], device: str | None, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self._folder = ShardFolder(Path(folder))
        manifest = read_manifest(self._folder)
        translator = load_translator([Path(each) for each in models], device, manifest.options)
        self._shift = Shift(self._folder, manifest, translator)
        self._queue = ShardQueue(self._folder, Claims(self._folder.claims))

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Translate the shards of a batch; return the number of notices about their lines."""
        return {"notices": [self._notices(int(shard)) for shard in batch["shard"]]}

    def _notices(self, shard: int) -> int:
        """Translate a shard until it is done or failed, unless another process works on it."""
        notices = 0
        while (claim := self._queue.take(shard)) is not None:
            counts = self._shift.translate(shard, claim)
            notices += 0 if counts is None else counts[1]
        return notices


def _translate(shards: Sequence[int], constructor: dict[str, Any], workers: int) -> int:
    """Let actors translate shards; return the number of notices about lines."""
    import ray

    resources = ray.cluster_resources()
    on_gpu = constructor["device"] != "cpu" and resources.get("GPU", 0) > 0
    workers = min(workers, len(shards))
    at_first = max(1, min(workers, int(resources.get("CPU", 1)) // constructor["threads"]))  # a cluster may grow later
    rows = ray.data.from_items([{"shard": shard} for shard in shards], override_num_blocks=min(len(shards), MAX_BLOCKS))
    translated = rows.map_batches(
        ShardActor,
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers, initial_size=at_first),
        fn_constructor_kwargs=constructor,
        num_cpus=constructor["threads"],
        num_gpus=1 if on_gpu else 0,
    )
    return sum(int(row["notices"]) for row in translated.iter_rows())


@contextmanager
def _ray() -> Iterator[None]:
    """Use the Ray that is initialized, or initialize it and shut it down at the end; it reports nothing to anybody."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ValueError(f"on_ray needs Ray Data ({error}); `pip install 'ray[data]'` installs it") from None
    if ray.is_initialized():
        yield
        return
    started_here = {} if os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
    ray.init(log_to_driver=False, logging_level="ERROR", **started_here)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()
