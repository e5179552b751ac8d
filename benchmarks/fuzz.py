"""Do broken model folders and corpora ever crash, hang, fill the memory, or leave their folder?

    python benchmarks/fuzz.py models --count 5000 [--seed 1]
    python benchmarks/fuzz.py corpora --count 5000 [--seed 1]
    python benchmarks/fuzz.py traces --count 1000
    python benchmarks/fuzz.py models --replay 57

Small honest models of every kind and corpora of every format are broken by rule: flipped bytes, truncations, swapped
and missing files, links, pipes and folders in place of files, other types and huge numbers in JSON and TOML, changed
headers of safetensors, hostile regular expressions, compressed bombs. Case N is the same every time. Each runs the real
command in a forked process. It must end within 10 s, with exit code 0 and a result, or with 2 and a sentence; without a
traceback; with at most twice the memory of the honest commands; and without reading or changing a file outside of its
folder. The table counts how the cases ended; every defect is printed with its number, for --replay.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}  # forked processes have one thread

import argparse
import importlib
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fuzzing import world as files
from fuzzing.cases import SETS, Case, draw_case, honest_cases
from fuzzing.sandbox import MODULES, Ended, defect, run


def prepared(folder: Path) -> Path:
    """Create the honest files in a process of its own, so that this one has no threads, and return their folder."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            files.build(folder / "world")
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(process, 0)[1]:
        raise SystemExit("the honest files could not be created")
    return folder / "world"


def honest(world: Path, here: Path, load: bool = False) -> tuple[dict[str, str], float]:
    """Run honest commands; return their results by group, and the most memory that one of them took, in MB.

    `load`: import the modules that they import, which those of later cases then need not.
    """
    results, most = {}, 0.0
    here.mkdir(parents=True)
    for case in honest_cases(world, here):
        ended = run(case, here)
        if ended.code:
            raise SystemExit(f"an honest command failed: {case.arguments}: {ended.errors}")
        results[case.group] = ended.out
        most = max(most, ended.megabytes)
        for name in (here / MODULES).read_text(encoding="utf-8").split("\n") if load else []:
            with suppress(ImportError):
                importlib.import_module(name)
    return results, most


def outcome(case: Case, ended: Ended, results: dict[str, str]) -> str:
    """Return how a case without a defect ended."""
    if ended.code == 2:
        return "a clear error"
    same = results.get(case.group) == ended.out
    return "the same result" if same else "a result"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kinds", choices=SETS, nargs="+")
    parser.add_argument("--count", type=int, default=5000, help="of each kind")
    parser.add_argument("--seed", type=int, default=1, help="the number of the first case")
    parser.add_argument("--replay", type=int, help="run one case, and print all of it")
    options = parser.parse_args()
    first, count = (options.seed, options.count) if options.replay is None else (options.replay, 1)
    with tempfile.TemporaryDirectory() as name:
        world = prepared(Path(name))
        honest(world, Path(name) / "cases/first", load=True)
        results, megabytes = honest(world, Path(name) / "cases/honest")
        fuzzer = Fuzzer(world, results, megabytes, options.replay is not None)
        defects = sum(fuzzer.run(kind, range(first, first + count)) for kind in options.kinds)
    sys.exit(1 if defects else 0)


@dataclass(frozen=True)
class Fuzzer:
    """Runs cases, counts how they ended, and prints the defects."""

    world: Path
    results: dict[str, str]  # of honest commands, by group
    megabytes: float  # the most memory of an honest command
    prints_all: bool

    def run(self, kind: str, seeds: range) -> int:
        """Run the cases of a kind, print a table, and return the number of defects."""
        counts: Counter[str] = Counter()
        slowest = most = 0.0
        began = time.monotonic()
        for seed in seeds:
            here = self.world.with_name("cases") / f"{kind}-{seed}"
            here.mkdir()
            case = draw_case(kind, seed, self.world, here)
            ended = run(case, here)
            wrong = defect(case, ended, self.megabytes) or _changed(self.world)
            slowest, most = max(slowest, ended.seconds), max(most, ended.megabytes)
            counts["defect" if wrong else outcome(case, ended, self.results)] += 1
            if wrong or self.prints_all:
                report = f"{seed}: {wrong or 'fine'}, {ended.seconds:.1f} s, {ended.megabytes:.0f} MB"
                print(f"{report}: {shlex.join(case.arguments) or case.python}; {'; '.join(case.changes)}", flush=True)
                print(f"    {ended.code}: {ended.out[-500:]}{ended.errors[-3000:]}", flush=True)
            shutil.rmtree(here)
        print(f"{len(seeds):,} broken {kind}, cases {seeds[0]} to {seeds[-1]}, in {time.monotonic() - began:.0f} s")
        for name in ("a clear error", "the same result", "a result", "defect"):
            print(f"  {name:16} {counts[name]:6,}")
        print(f"  slowest {slowest:.1f} s; memory at most {most:.0f} MB, of honest commands {self.megabytes:.0f} MB")
        return counts["defect"]


def _changed(world: Path) -> str | None:
    """Return whether a file outside of the case's folder was changed."""
    intact = (world / "secret" / "secret.txt").read_bytes() == files.SECRET.encode()
    return None if intact else "a file outside of the folder was changed"


if __name__ == "__main__":
    main()
