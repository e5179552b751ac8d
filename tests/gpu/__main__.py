"""`python -m tests.gpu [PART …]`: the tests that need a GPU, part by part; `make test-gpu` runs all of them.

It uses the interpreter that runs it and installs nothing: torch with CUDA, Triton, pytest, hypothesis, and what the
package itself depends on must be there. Each part takes at most 9 minutes.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

PARTS = {
    "dot": ["test_kernels.py", "-k", "test_fused_dot"],
    "additive": ["test_kernels.py", "-k", "test_fused_additive"],
    "hard": ["test_kernels.py", "-k", "test_fused_hard"],
    "torch": ["test_kernels.py", "-k", "test_torch"],
    "anywhere": ["test_kernels.py", "-k", "test_anywhere"],
    "library": ["test_library.py"],
    "translators": ["test_translators.py"],
    "classifiers": ["test_classifiers.py"],
}
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
    """Run one part in a process of its own."""
    file, *options = PARTS[name]
    path = Path(__file__).with_name(file)
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", str(path), *options]
    code = subprocess.run(command, env={**os.environ, "REGARD_TEST_GPU": "1"}, check=False).returncode
    print(f"{name}: {'passed' if code == 0 else 'FAILED'} in {time.monotonic() - began:.0f} s", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
