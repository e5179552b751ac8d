"""`regard.compare`: which kind of attention is best for these data?"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.alignment.links import without_zero
from regard.experiments.compare import folder as layout
from regard.experiments.compare.comparison import Comparison
from regard.experiments.compare.folder import ComparisonPlan
from regard.experiments.compare.gold import GoldSet, read_gold_set
from regard.experiments.compare.job import TrainingJob
from regard.experiments.compare.kinds import ModelKind, chosen_kinds
from regard.experiments.compare.page import comparison_page
from regard.experiments.compare.progress import ComparisonProgress, SilentWatcher, Watcher, WatcherScreen
from regard.experiments.compare.results import compared, read_run
from regard.experiments.compare.samples import sample_sentences
from regard.experiments.compare.table import csv_text
from regard.experiments.processes import RunProcess, run_all
from regard.metrics.translation import group
from regard.runtime import launch
from regard.runtime.files import folder_path, write_file
from regard.runtime.precision import Precision, autocast, gpu_names, read_device
from regard.runtime.processes import available_cores
from regard.tasks.registry import TRANSLATION
from regard.tasks.spec import Given, Texts, TrainingData
from regard.text.weighted import weighted_parts
from regard.training.clock import limit_seconds
from regard.training.lock import locked

SEEDS = 2
MINUTES = 3.0  # of each run
MAX_SEEDS = 1000


def compare(
    data: Texts,
    out: str | Path,
    *,
    dev: Texts | None = None,
    recipes: Sequence[str | Path] | None = None,
    vary: Sequence[str | Mapping[str, str]] | None = None,
    seeds: int = SEEDS,
    minutes: float | None = MINUTES,
    gold: Sequence[str | Path] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    jobs: int | None = None,
    reverse: bool = False,
    languages: tuple[str, str] | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    watcher: Watcher | None = None,
) -> Comparison:
    """Train several kinds of translators on the same data, dev set and seeds, and compare them.

    data       a .tsv or .jsonl file, two parallel text files, or (source, target) texts
    out        the folder of the comparison: models, compare.json, compare.csv, compare.html
    dev        validation data of the same form; if not given, a part of `data` is set aside
    recipes    "rnn", "transformer", "article" or .toml files; None: six kinds of attention, with `vary` these two
    vary       one more kind each, of every recipe that has the keys: "model.score=general" or a mapping
    seeds      every kind is trained with the seeds 1, 2, …
    minutes    the time limit of each run; None: as long as `regard.train` without `minutes`
    gold       files of sentence pairs and of their links: adds the alignment error rate
    resume     do what is missing of the comparison in `out`; `overwrite`: begin anew there
    jobs       runs at a time; None: as many as there are cores, or one on each GPU
    """
    launch.refuse("compare", "trains its models in processes of its own, one on each GPU")
    _check_numbers(seeds, minutes, jobs)
    watcher, on_gpu = watcher or SilentWatcher(), read_device(device).type == "cuda"
    autocast(precision, read_device(device))  # raises an error for an unknown precision before anything is read
    kinds = chosen_kinds(recipes, vary)
    folder, given = folder_path(out), Given(data, dev, reverse, languages)
    if weighted_parts(data) is not None:
        raise ValueError("compare: expected one source of data, without weights")
    layout.check_folder(folder, resume, overwrite)
    links = None if gold is None else _gold_links(gold, given, watcher)
    read = TRANSLATION.data(given, kinds[0].recipe, WatcherScreen(watcher))
    plan = _plan(read, given, kinds, range(1, seeds + 1), minutes, precision)
    with locked(folder, WatcherScreen(watcher)):
        _prepare_folder(folder, plan, given, read, resume, overwrite)
        run = _Comparing(folder.absolute(), given, plan, kinds, gold, links, on_gpu, device, precision, watcher)
        run.train(jobs)
        return run.finish()


def _prepare_folder(
    folder: Path, plan: ComparisonPlan, given: Given, data: TrainingData[Any], resume: bool, overwrite: bool
) -> None:
    """Create the folder of a new comparison, or check that of one that is resumed."""
    layout.check_folder(folder, resume, overwrite)  # again: another comparison may just have changed it
    if resume:
        layout.check_same(folder, plan)
        layout.remove_error_files(folder)
    else:
        layout.create(folder, plan, _files(given, data))


def _check_numbers(seeds: int, minutes: float | None, jobs: int | None) -> None:
    if not isinstance(seeds, int) or not 1 <= seeds <= MAX_SEEDS:
        raise ValueError(f"seeds: expected a whole number from 1 to {MAX_SEEDS}, got {seeds!r}")
    limit_seconds(minutes)
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise ValueError(f"jobs: expected a whole number of at least 1, got {jobs!r}")


def _gold_links(gold: Sequence[str | Path], given: Given, watcher: Watcher) -> GoldSet:
    """Read the gold links; say if they seem to be counted from 1."""
    links = read_gold_set(gold, given.reverse, given.languages)
    if without_zero(links.links):
        watcher.say("gold: no link has a 0; if it counts from 1, AER is wrong: links are counted from 0")
    return links


def _plan(
    data: TrainingData[Any],
    given: Given,
    kinds: Sequence[ModelKind],
    seeds: Sequence[int],
    minutes: float | None,
    precision: str,
) -> ComparisonPlan:
    sources, _ = group(data.dev)
    return ComparisonPlan(
        data={"name": data.name, "lines": data.lines, "sha256": data.digest, "train_pairs": len(data.train)},
        dev={"sha256": data.dev_digest, "sources": len(sources)},
        kinds=layout.described(kinds),
        seeds=list(seeds),
        minutes=minutes,
        reverse=given.reverse,
        languages=None if given.languages is None else list(given.languages),
        precision=precision,
        command=shlex.join(["regard", *sys.argv[1:]]),
    )


def _files(given: Given, data: TrainingData[Any]) -> dict[str, str]:
    """Return the files that the folder begins with: the dev set, and data that were given as texts."""
    files = {layout.DEV: layout.dev_text(*group(data.dev))}
    for name, texts in (("train.jsonl", given.data), ("given-dev.jsonl", given.dev)):
        if texts is not None and _paths(texts) is None:
            lines = ({"source": source, "target": target} for source, target in texts)
            files[name] = "".join(json.dumps(line) + "\n" for line in lines)
    return files


def _paths(given: Any) -> list[str] | None:
    """Return the absolute paths of data that are given as files; None if they are texts."""
    parts = [given] if isinstance(given, (str, Path)) else list(given)
    return [os.path.abspath(part) for part in parts] if all(isinstance(part, (str, Path)) for part in parts) else None


@dataclass(frozen=True)
class _Comparing:
    """One call of `compare`, after its arguments were checked and its folder was made."""

    folder: Path
    given: Given
    plan: ComparisonPlan
    kinds: Sequence[ModelKind]
    gold: Sequence[str | Path] | None
    links: GoldSet | None
    on_gpu: bool
    device: str | None
    precision: Precision
    watcher: Watcher

    def train(self, jobs: int | None) -> None:
        """Do the runs that have no result yet."""
        cores = available_cores()
        # Seed by seed, so that an early look at the folder already compares all kinds.
        every = [self._job(kind, seed) for seed in self.plan.seeds for kind in self.kinds]
        missing = [job for job in every if not job.is_done]
        gpus = gpu_names(self.device)
        at_once = max(1, min(len(missing), jobs or (max(1, len(gpus)) if self.on_gpu else cores)))
        threads = None if self.on_gpu else max(1, cores // at_once)
        if missing:
            limit = "" if self.plan.minutes is None else f", {self.plan.minutes:g} min each"
            counts = f"{_count(len(self.kinds), 'kind')} x {_count(len(self.plan.seeds), 'seed')}{limit}"
            done = f"; {len(every) - len(missing)} of them done before" if len(missing) < len(every) else ""
            self.watcher.say(f"{_count(len(every), 'run')} ({counts}), {at_once} at a time{done}")
        done_before = len(every) - len(missing)
        progress = ComparisonProgress(self.watcher, len(every), done_before, at_once, self.plan.minutes)

        def ended(run: RunProcess, failure: str | None) -> None:
            if failure is not None:
                layout.write_failure(Path(run.job.run), failure)
            progress.ended(run, failure)

        try:
            run_all([replace(job, threads=threads) for job in missing], at_once, progress.watch, ended, gpus)
        finally:
            self.watcher.close()

    def _job(self, kind: ModelKind, seed: int) -> TrainingJob:
        data, dev = self.given.data, self.given.dev
        return TrainingJob(
            comparison=str(self.folder),
            run=str(layout.run_folder(self.folder, kind, seed)),
            kind=kind.name,
            seed=seed,
            recipe=next(each["recipe"] for each in self.plan.kinds if each["name"] == kind.name),
            data=_paths(data) or [str(self.folder / "train.jsonl")],
            dev=None if dev is None else _paths(dev) or [str(self.folder / "given-dev.jsonl")],
            # Texts are written as they were given, and reversed when they are read.
            reverse=self.given.reverse,
            languages=None if self.plan.languages is None else list(self.plan.languages),
            # Of texts no digest is expected: a file of them is read without exact duplicates.
            sha256=None if _paths(data) is None else self.plan.data["sha256"],
            minutes=self.plan.minutes,
            threads=None,
            device=self.device,
            precision=self.precision,
            gold=None if self.gold is None else [os.path.abspath(file) for file in self.gold],
            gold_digest=None if self.links is None else self.links.digest,
            command=sys.argv[1:],
        )

    def finish(self) -> Comparison:
        """Compare the runs, and write the results."""
        sources, references = layout.read_dev(self.folder)
        runs = [(kind, [read_run(self.folder, kind, seed) for seed in self.plan.seeds]) for kind in self.kinds]
        facts = {name: value for name, value in self.plan.as_dict().items() if name not in ("format", "kinds")}
        comparison = Comparison(self.folder, compared(runs, references), facts)
        if not comparison.trained:
            raise ValueError(f"{self.folder}: every run failed: {comparison.kinds[0].failures[0]}")
        self.watcher.show(["comparing"])
        layout.write_json(self.folder / layout.JSON, comparison.as_dict())
        write_file(self.folder / layout.CSV, csv_text(comparison.kinds))
        try:
            samples = sample_sentences(comparison, sources, references, self.device, self.precision)
            write_file(self.folder / layout.PAGE, comparison_page(comparison, samples))
        finally:
            self.watcher.close()
        return comparison


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
