"""`regard.translate_file`: translate a file in shards, with workers on this machine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from regard.batch.cutting import Cutter
from regard.batch.folder import ShardFolder, Tally
from regard.batch.manifest import Manifest, TranslationOptions, open_folder
from regard.batch.worker import WorkerTask
from regard.batch.workers import POLL_SECONDS, WorkerPool
from regard.config.folder import read_recipe
from regard.core.checks import whole_number
from regard.runtime.precision import Precision, autocast, read_device
from regard.runtime.processes import available_cores
from regard.tasks.registry import TRANSLATION, require_task
from regard.tasks.translation.search_options import Search, search_of
from regard.text.glossary import Glossary
from regard.text.keep import Keep
from regard.training.progress import Screen, Silent, clock

SHOWN_SECONDS = 1.0  # seconds between two counts of the shards that are done
FAILURES_SHOWN = 3


@dataclass(frozen=True)
class ShardReport:
    """What a command did: the size of the whole work, and the shards that were given up, with the reasons."""

    shards: int
    lines: int
    notices: int  # about lines that this command translated
    failures: dict[int, str]

    def check(self, folder: ShardFolder, shard_lines: int) -> None:
        """Raise a ValueError if some shards were given up."""
        if not self.failures:
            return
        listed = [
            f"lines {shard * shard_lines + 1:,} to {min((shard + 1) * shard_lines, self.lines):,} ({reason})"
            for shard, reason in list(self.failures.items())[:FAILURES_SHOWN]
        ]
        more = ", …" if len(self.failures) > FAILURES_SHOWN else ""
        raise ValueError(
            f"{folder.root}: {len(self.failures):,} of {self.shards:,} shards failed: {', '.join(listed)}{more}; the "
            "others are done, and the same command tries these again"
        )


def translate_file(
    model: str | Path,
    file: str | Path,
    shards: str | Path,
    *,
    workers: int | None = None,
    threads: int | None = None,
    ensemble: Sequence[str | Path] = (),
    search: Search | None = None,
    prefix: str = "",
    glossary: Glossary | None = None,
    keep: str | Sequence[str] = (),
    as_json: bool = False,
    shard_lines: int | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    screen: Screen | None = None,
) -> ShardReport:
    """Translate a text file, also .gz, in shards that are written to the folder `shards`; `join_shards` joins them.

    The same call on other machines that share the folder takes part in the work. One that is killed and started again
    does what is missing. `workers` is the number of processes here: one for each GPU by default, else one; `threads`
    the CPU threads of each. Raise a ValueError if shards failed, after the others are done.
    """
    models = [Path(model), *map(Path, ensemble)]
    options = options_of(models[0], search, prefix, glossary, keep, as_json, precision)
    autocast(precision, read_device(device))  # raises an error for a precision that there is not
    tasks = worker_tasks(Path(shards), models, device, workers, threads)
    folder, manifest = begin(Path(shards), Path(file), models, options, shard_lines)
    cutter = Cutter(folder, Path(file), manifest.shard_lines)
    notices = _run(folder, cutter, tasks, manifest.shard_lines, screen or Silent())
    return report_on(folder, manifest, notices)


def options_of(
    model: Path,
    search: Search | None,
    prefix: str,
    glossary: Glossary | None,
    keep: str | Sequence[str],
    as_json: bool,
    precision: Precision,
) -> TranslationOptions:
    """Return the options of a translation; the search is that of the model's recipe unless there is one."""
    require_task(TRANSLATION, model)
    search = search or search_of(read_recipe(model))
    if glossary is not None:
        if search.sample:
            raise ValueError("glossary: expected beam search with it, not samples")
        search = replace(search, mbr=0)
    terms = () if glossary is None else glossary.entries
    kinds = (keep,) if isinstance(keep, str) else tuple(keep)
    if kinds:
        Keep.parse(*kinds)  # raises an error for kinds that there are not
    return TranslationOptions(search, prefix, terms, kinds, as_json, precision)


def begin(
    root: Path, file: Path, models: Sequence[Path], options: TranslationOptions, shard_lines: int | None
) -> tuple[ShardFolder, Manifest]:
    """Return the folder of a translation that begins or goes on, and its manifest. Failed shards may be tried again."""
    manifest = Manifest.of(file, models, options, whole_number_or_none("shard_lines", shard_lines))
    folder, manifest = open_folder(root, manifest, keep_shard_lines=shard_lines is None)
    folder.forget_failures()
    return folder, manifest


def report_on(folder: ShardFolder, manifest: Manifest, notices: int) -> ShardReport:
    """Return the report on a folder in which every shard is done or has failed; raise a ValueError if some failed."""
    size = folder.cut_size()
    assert size is not None
    report = ShardReport(size.shards, size.lines, notices, folder.failures())
    report.check(folder, manifest.shard_lines)
    return report


def whole_number_or_none(name: str, value: int | None) -> int | None:
    """Return a whole number from 1 on, or None; raise a ValueError for anything else."""
    return None if value is None else whole_number("translate_file", name, value, 1)


def worker_tasks(
    root: Path, models: Sequence[Path], device: str | None, workers: int | None, threads: int | None
) -> list[WorkerTask]:
    """Return the task of each worker: by default one worker for each GPU, else one with all cores."""
    on_gpu = read_device(device).type == "cuda"
    several = on_gpu and device in (None, "cuda")
    gpus = torch.cuda.device_count() if several else 0
    count = whole_number_or_none("workers", workers) or max(1, gpus)
    threads = whole_number_or_none("threads", threads)
    if threads is None and not on_gpu:
        threads = max(1, available_cores() // count)
    devices = [f"cuda:{number % gpus}" if several else device for number in range(count)]
    return [WorkerTask(str(root), [str(model) for model in models], each, threads) for each in devices]


def _run(folder: ShardFolder, cutter: Cutter, tasks: Sequence[WorkerTask], shard_lines: int, screen: Screen) -> int:
    """Cut the input and let workers translate its shards; return how many lines got notices."""
    with tempfile.TemporaryDirectory(prefix="regard-") as logs:
        pool = WorkerPool(tasks, Path(logs), screen.say)
        progress = _Progress(folder, shard_lines, screen)
        shown = 0
        try:
            while pool.active:
                deadline = time.monotonic() + POLL_SECONDS
                while time.monotonic() < deadline and cutter.step():
                    pass
                time.sleep(max(0.0, deadline - time.monotonic()))
                pool.check()
                progress.show()
                for notice in pool.notices()[shown:]:
                    screen.say(notice)
                    shown += 1
        finally:
            screen.close()
            cutter.close()
            pool.stop()
    return pool.line_notices


class _Progress:
    """Shows how many shards are done, at which speed, and the time that is left."""

    def __init__(self, folder: ShardFolder, shard_lines: int, screen: Screen) -> None:
        self._folder, self._shard_lines, self._screen = folder, shard_lines, screen
        self._tally = Tally(folder)
        self._shown = time.monotonic()
        self._began: tuple[float, int] | None = None  # (when the first new shard was done, shards done by then)

    def show(self) -> None:
        now = time.monotonic()
        if now - self._shown < SHOWN_SECONDS:
            return
        self._shown = now
        done, size = self._tally.done(), self._folder.cut_size()
        if self._began is None or not done:
            self._began = now, done
        began, before = self._began
        speed = (done - before) * self._shard_lines / max(1e-9, now - began)
        total = None if size is None else size.shards
        left = f", {clock((total - done) * self._shard_lines / speed)} left" if total is not None and speed else ""
        text = f"shards done, {speed:,.0f} lines/s{left}" if speed else "shards done"
        self._screen.advance(done, total, text, "shard")
