"""`python -m tests.gpu [PART …]`: the tests that need a GPU, part by part; `make test-gpu` runs all of them.

It uses the interpreter that runs it and installs nothing: torch with CUDA, Triton, pytest, hypothesis, and what the
package itself depends on must be there. Each part takes at most 9 minutes: those of drawn cases, which mostly compile
kernels, are spread over several processes.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PARTS = {
    "dot": ["test_kernels.py", "-k", "test_fused_dot"],
    "additive": ["test_kernels.py", "-k", "test_fused_additive"],
    "hard": ["test_kernels.py", "-k", "test_fused_hard"],
    "torch": ["test_kernels.py", "-k", "test_torch"],
    "anywhere": ["test_kernels.py", "-k", "test_anywhere"],
    "loss": ["test_loss.py"],
    "library": ["test_library.py"],
    "translators": ["test_translators.py"],
    "runs": ["test_runs.py"],
    "deterministic": ["test_deterministic.py"],
    "classifiers": ["test_classifiers.py"],
    "distributed": ["test_distributed.py"],
}
DRAWN = ("dot", "additive", "hard", "torch", "anywhere")
PROCESSES = min(16, os.cpu_count() or 1)
"""of a part of drawn cases"""
NEEDED = ("pytest", "hypothesis", "triton", "typer", "sacrebleu", "regex")


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"test-gpu: no part {', '.join(unknown)}; expected some of {', '.join(PARTS)}", file=sys.stderr)
        return 1
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"test-gpu: {sys.executable} lacks {', '.join(missing)}; nothing is installed here", file=sys.stderr)
        return 1
    import torch

    if not torch.cuda.is_available():
        print(f"test-gpu: torch {torch.__version__} finds no GPU here; these tests need one", file=sys.stderr)
        return 1
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Python {sys.version.split()[0]}", flush=True)
    failed = [name for name in names or PARTS if not _passes(name)]
    print(f"failed: {', '.join(failed)}" if failed else "all parts passed", flush=True)
    return 1 if failed else 0


def _passes(name: str) -> bool:
    """Run one part, in one process or several."""
    began = time.monotonic()
    count = PROCESSES if name in DRAWN else 1
    with ThreadPoolExecutor(count) as pool:
        done = list(pool.map(lambda index: _run(name, index, count), range(count)))
    failed = [each for each in done if each.returncode]
    for each in failed:
        print(each.stdout, flush=True)
    tests = Counter[str]()
    for each in done:
        for number, outcome in re.findall(r"(\d+) (passed|failed|errors?)", (each.stdout.splitlines() or [""])[-1]):
            tests[outcome] += int(number)
    counts = ", ".join(f"{number:,} {outcome}" for outcome, number in tests.items())
    print(f"{name}: {'FAILED' if failed else 'ok'}: {counts} in {time.monotonic() - began:.0f} s", flush=True)
    return not failed


def _run(name: str, index: int, count: int) -> subprocess.CompletedProcess[str]:
    """Run the part's drawn cases index, index + count, index + 2·count, …"""
    file, *options = PARTS[name]
    cases = {"REGARD_TEST_FIRST": str(index), "REGARD_TEST_STEP": str(count)}
    environment = {**os.environ, "REGARD_TEST_GPU": "1", **cases}
    command = [sys.executable, "-m", "pytest", "--tb=short", "-p", "no:cacheprovider", *options]
    path = Path(__file__).with_name(file)
    return subprocess.run(
        [*command, str(path)], env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
