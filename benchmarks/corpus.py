"""What a corpus larger than memory costs: the speed of tokenizing it, the time to its first updates, and memory.

    python benchmarks/corpus.py --folder /tmp/corpus                     # 20 million pairs, about 15 minutes on 2 cores
    python benchmarks/corpus.py --folder /tmp/corpus --pairs 1000000     # fewer

The corpus is made on the spot: sentences of a few phrases each, of words with Zipf's distribution, the target word for
word, the same in every run. It stays in the folder for the next run, the cache of `regard train` does not.

It prints, in one run: the speed of `encode_batch` of Hugging Face's tokenizers on lines in memory, with all cores, and
that of the stored corpus, measured by the events of `regard train`; the time to 100 updates; how many pairs a second
one thread prepares; and the peak of the anonymous memory of all processes together. Bars: at least 80 % of the speed
of `encode_batch`; at most 2 GB.

Batches are those of `regard train`, unless --batch-tokens says otherwise.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

WORDS = 60_000
PHRASES = 300_000  # of PHRASE_WORDS words each, of which sentences are made
PHRASE_WORDS, MAX_PHRASES = 3, 6
BLOCK = 100_000  # pairs that are made at a time
SAMPLE = 200_000  # lines of each side on which `encode_batch` is timed
BYTES_PER_PAIR = 500  # on disk, of the corpus and of its cache
MEMORY_SECONDS = 0.25  # the interval at which memory is measured


def spelled(count: int, letters: str, seed: int) -> list[str]:
    """Return different words of 1 to 5 syllables, the most frequent ones short."""
    rng = np.random.default_rng(seed)
    syllables = [first + second for first in letters for second in "aeiou"]
    words: dict[str, None] = {}
    while len(words) < count:
        size = 1 + min(4, int(np.log2(1 + len(words) / 60) / 2.5 + rng.random() * 1.5))
        words["".join(rng.choice(syllables, size))] = None
    return list(words)


def blocks(pairs: int) -> Iterator[str]:
    """Yield the corpus as a table, in blocks of lines."""
    sources, targets = phrases()
    for number, first in enumerate(range(0, pairs, BLOCK)):
        rng = np.random.default_rng([3, number])
        ends = np.cumsum(rng.integers(1, MAX_PHRASES + 1, min(BLOCK, pairs - first))).tolist()
        rows = rng.integers(PHRASES, size=ends[-1]).tolist()
        words, others = [sources[row] for row in rows], [targets[row] for row in rows]
        lines = [
            f"{' '.join(words[begin:end]).capitalize()}.\t{' '.join(others[begin:end]).capitalize()}.\n"
            for begin, end in pairwise([0, *ends])
        ]
        yield "".join(lines)


def phrases() -> tuple[list[str], list[str]]:
    """Return the phrases of both sides."""
    rng, frequencies = np.random.default_rng(4), 1 / (np.arange(WORDS) + 2.7)
    cumulative = np.cumsum(frequencies / frequencies.sum())
    rows = np.searchsorted(cumulative, rng.random((PHRASES, PHRASE_WORDS))).tolist()
    words = spelled(WORDS, "bdfgklmnprst", 1), spelled(WORDS, "vzhjcwqxlmny", 2)
    first, second = ([" ".join([side[word] for word in row]) for row in rows] for side in words)
    return first, second


def make(file: Path, pairs: int) -> None:
    """Write the corpus, unless it is there."""
    if file.exists():
        return
    free = shutil.disk_usage(file.parent).free
    if free < pairs * BYTES_PER_PAIR:
        sys.exit(f"{file.parent}: expected {pairs * BYTES_PER_PAIR / 1e9:.1f} GB free, got {free / 1e9:.1f}")
    began, unfinished = time.monotonic(), file.with_suffix(".new")
    with unfinished.open("w", encoding="utf-8") as out:
        for block in blocks(pairs):
            out.write(block)
    unfinished.rename(file)
    print(f"made {file} in {time.monotonic() - began:.0f} s: {file.stat().st_size / 1e9:.2f} GB")


def encode_batch_speed(file: Path, vocabularies: Path) -> float:
    """Return how many lines a second `encode_batch` encodes, with all cores, of lines in memory."""
    from tokenizers import Tokenizer

    with file.open(encoding="utf-8") as lines:
        pairs = [next(lines).rstrip("\n").split("\t") for _ in range(SAMPLE)]
    files = [vocabularies / "source.json", vocabularies / "target.json"]
    seconds = 0.0
    for side, path in enumerate(files):
        tokenizer = Tokenizer.from_file(str(path if path.exists() else files[0]))
        texts = [pair[side] for pair in pairs]
        tokenizer.encode_batch(texts[:1000])
        began = time.monotonic()
        encoded = tokenizer.encode_batch(texts)
        seconds += time.monotonic() - began
        del encoded
    return 2 * len(pairs) / seconds


class MemoryMeter:
    """Measures the anonymous memory of a process and of all its descendants, at intervals."""

    def __init__(self, pid: int) -> None:
        self.peaks: dict[str, int] = {}  # bytes, by the phase of the run
        self.phase = "starting"
        self._pid, self._ended = pid, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(MEMORY_SECONDS):
            memory, phase = sum(map(_anonymous, _tree(self._pid))), self.phase
            self.peaks[phase] = max(self.peaks.get(phase, 0), memory)


def _tree(pid: int) -> list[int]:
    """Return the process and all its descendants."""
    try:
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return [pid]
    return [pid, *(each for child in children for each in _tree(child))]


def _anonymous(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    match = re.search(r"RssAnon:\s+(\d+) kB", status)
    return 1024 * int(match[1]) if match else 0


TRAIN = """
import json, sys, time
from regard.tasks.train import train
from regard.training import loop
from regard.training.progress import Silent

BEGAN = time.monotonic()

class Events(Silent):
    def note(self, **event):
        print(json.dumps({"seconds": round(time.monotonic() - BEGAN, 2), **event}), flush=True)
    def say(self, text):
        self.note(text=text)
    def status(self, text):
        self.note(text=text)
    def advance(self, done, total, text, unit="update"):
        self.note(text=text.split("  ")[0], done=done, total=total, unit=unit)

class Enough(Exception):
    pass

def update(self, batch, began, last=False):
    real(self, batch, began, last)
    if self.progress.update in (1, UPDATES):
        screen.note(text="update", done=self.progress.update, unit="update")
    if self.progress.update == UPDATES:
        began, pairs = time.monotonic(), 0
        for make in self.task.epoch(1, 1.0)[:PREPARED]:
            pairs += len(make(self.machine.device).source)
        screen.note(text="prepared", rate=pairs / (time.monotonic() - began))
        raise Enough

UPDATES, PREPARED = int(sys.argv[3]), 200
real, loop.Loop.update = loop.Loop.update, update
screen = Events()
try:
    train(sys.argv[1], sys.argv[2], screen=screen, settings=json.loads(sys.argv[4]), overwrite=True)
except Enough:
    pass
"""


def trained(
    file: Path, out: Path, updates: int, settings: dict[str, int]
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Train for some updates in a process of its own; return its events and the peaks of memory."""
    run = subprocess.Popen(
        [sys.executable, "-c", TRAIN, str(file), str(out), str(updates), json.dumps(settings)], stdout=subprocess.PIPE
    )
    meter = MemoryMeter(run.pid)
    assert run.stdout is not None
    events: list[dict[str, Any]] = []
    for line in run.stdout:
        events.append(json.loads(line))
        meter.phase = re.split(r"[ :]", events[-1]["text"])[0] if "done" in events[-1] else events[-1]["text"]
    meter.stop()
    if run.wait():
        sys.exit("regard train failed")
    return events, meter.peaks


def phase(events: list[dict[str, Any]], text: str) -> tuple[float, float, int]:
    """Return when the events that begin with a text began and ended, and how many lines they counted."""
    some = [event for event in events if event["text"].startswith(text) and "done" in event]
    return some[0]["seconds"], some[-1]["seconds"], some[-1]["done"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="for the corpus and the model; made if not there")
    parser.add_argument("--pairs", type=int, default=20_000_000)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--batch-tokens", type=int, help="the limit of a batch; default: that of regard train")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    file, out = options.folder / f"pairs-{options.pairs}.tsv", options.folder / "model"
    cache = options.folder / ".regard-cache"
    make(file, options.pairs)
    shutil.rmtree(cache, ignore_errors=True)
    settings = {} if options.batch_tokens is None else {"training.batch_tokens": options.batch_tokens}
    events, peaks = trained(file, out, options.updates, settings)
    if not cache.exists():
        sys.exit(f"--pairs: {options.pairs:,} are read into memory; expected a corpus of more than 100 MB, say 1000000")
    (vocabularies,) = cache.glob("vocabulary-*")
    speed = encode_batch_speed(file, vocabularies)
    for event in events:
        if "done" not in event:
            print(f"{event['seconds']:8.1f} s  {event['text']}")
    for name in ("reading", "tokenizing"):
        began, ended, pairs = phase(events, name)
        rate = 2 * pairs / (ended - began)
        print(
            f"{name}: {pairs:,} pairs in {ended - began:.1f} s, {rate:,.0f} lines/s, {rate / speed:.0%} of encode_batch"
        )
    print(f"encode_batch on lines in memory: {speed:,.0f} lines/s")
    for event in events:
        if event["text"] == "update":
            print(f"update {event['done']}: after {event['seconds']:.1f} s")
        if event["text"] == "prepared":
            print(f"preparing batches, without updates: {event['rate']:,.0f} pairs/s")
    print(f"anonymous memory of all processes: {max(peaks.values()) / 1e9:.2f} GB at the peak")
    for name, memory in peaks.items():
        print(f"    {memory / 1e9:.2f} GB  {name}")
    used = sum(each.stat().st_size for each in cache.rglob("*") if each.is_file())
    print(f"the cache: {used / 1e9:.2f} GB, of {file.stat().st_size / 1e9:.2f} GB of text")
    shutil.rmtree(cache)


if __name__ == "__main__":
    main()
