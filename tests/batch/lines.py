"""Lines to translate, and what they should become."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import regard
from regard.batch.folder import ShardFolder
from regard.batch.manifest import Manifest, TranslationOptions, open_folder
from regard.batch.translation import load_translator, translate_lines
from regard.tasks.translation.search_options import Search
from tests.training import toy

SOURCES = [source for source, _ in toy.PAIRS]
LINES = [*SOURCES, "", "  ", " ".join(SOURCES[:5]), "unseen: 漢字 😀", *SOURCES[::-1], *SOURCES[:40]]
LINES += [" ".join(source.split()[:3]) for source in SOURCES]
SHARD_LINES = 20
NOTICES = 2  # about lines 83 and 84, which are too long
OPTIONS = TranslationOptions(Search(beam=3), precision="fp32")


def begun(root: Path, file: Path, model: Path, options: TranslationOptions = OPTIONS) -> tuple[ShardFolder, Manifest]:
    """A folder whose input is not cut yet."""
    return open_folder(root, Manifest.of(file, [model], options, SHARD_LINES), keep_shard_lines=False)


def expected(model: Path, options: TranslationOptions = OPTIONS) -> str:
    """The output of a run in one process, shard by shard."""
    translator = load_translator([model], "cpu", options)
    shards = [LINES[first : first + SHARD_LINES] for first in range(0, len(LINES), SHARD_LINES)]
    outputs = [translate_lines(translator, lines, options, number).lines for number, lines in enumerate(shards)]
    return "".join(f"{line}\n" for lines in outputs for line in lines)


def joined(root: Path, output: Path) -> str:
    regard.join_shards(root, output)
    return output.read_text(encoding="utf-8")


def owners(root: Path) -> set[int]:
    """The processes that have claims on shards."""
    pids = set()
    for path in root.glob("claims/0*/*"):
        try:
            note = path.read_text()
        except FileNotFoundError:
            continue
        if '"pid"' in note:
            pids.add(int(note.split('"pid": ')[1].split(",")[0]))
    return pids


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def kill_one_owner(root: Path) -> int:
    """Wait until a process works on a shard, and kill it."""
    wait_until(lambda: bool(owners(root)))
    pid = min(owners(root))
    os.kill(pid, signal.SIGKILL)
    return pid


def no_claims(root: Path) -> bool:
    return not [path for path in root.glob("claims/**/*") if path.is_file()]
