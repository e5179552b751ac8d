"""Run a case in a forked process with limits of time and memory, and judge how it ended."""

from __future__ import annotations

import os
import resource
import sys
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzing.cases import Case
from fuzzing.world import SECRET

SECONDS = 10.0  # that a case may take
HEADROOM = 4 << 30  # bytes of address space that a case may take on top: the machine must survive
OUT, ERRORS = "stdout.txt", "stderr.txt"
MODULES = "modules.txt"  # the modules that an honest case imported


@dataclass(frozen=True)
class Ended:
    """How a case ended."""

    code: int  # the exit code, or minus the number of the signal
    out: str
    errors: str
    seconds: float
    megabytes: float  # the largest resident memory


def run(case: Case, here: Path) -> Ended:
    """Run the case in its folder, in a process forked from this one, which has imported everything."""
    began = time.monotonic()
    process = os.fork()
    if process == 0:
        _child(case, here)
    hung = False
    while True:
        done, status, usage = os.wait4(process, os.WNOHANG)
        if done:
            break
        if time.monotonic() - began > SECONDS and not hung:
            hung = True
            os.kill(process, 9)
        time.sleep(0.002)
    code = os.waitstatus_to_exitcode(status)
    texts = [(here / name).read_bytes().decode("utf-8", errors="replace") for name in (OUT, ERRORS)]
    return Ended(code, texts[0], texts[1], time.monotonic() - began, usage.ru_maxrss / 1024)


def _child(case: Case, here: Path) -> None:
    """Run the case, and end the process."""
    code = 1
    try:
        os.chdir(here)
        for number, (name, flags) in enumerate(
            (("/dev/null", os.O_RDONLY), *((n, os.O_WRONLY) for n in (OUT, ERRORS)))
        ):
            os.dup2(os.open(name, flags | (os.O_CREAT if number else 0), 0o644), number)
        sys.stdin, sys.stdout, sys.stderr = (open(number, "r" if number == 0 else "w") for number in range(3))  # noqa: SIM115
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + HEADROOM, used + HEADROOM))
        code = _use(case.python) if case.python else _command(case.arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        if not case.changes:  # of an honest case
            Path(MODULES).write_text("\n".join(sys.modules), encoding="utf-8")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _command(arguments: list[str]) -> int:
    """Run a command through the same `main()` as a user does, and return its exit code."""
    from regard.cli import main

    sys.argv = ["regard", *arguments]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _use(kind: str) -> int:
    """Load a model of images from Python, and use it; a ValueError is a clear error."""
    import torch

    import regard
    from regard.runtime.warnings import RegardWarning

    pixels = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    warnings.simplefilter("ignore", RegardWarning)  # a notice, for which Python has a form of its own
    try:
        model: Any = regard.load("model" if Path("model").exists() else kind, "cpu")
        print(model.classify(pixels) if isinstance(model, regard.ImageClassifier) else _used_otherwise(model, pixels))
    except (ValueError, OSError) as error:
        print(f"regard: {' '.join(str(error).split())[:4000]}", file=sys.stderr)
        return 2
    return 0


def _used_otherwise(model: Any, pixels: Any) -> Any:
    import regard

    if isinstance(model, regard.Captioner):
        return [caption.text for caption in model.captions(pixels)]
    return model.translate("a") if isinstance(model, regard.Translator) else model.classify("a")


def defect(case: Case, ended: Ended, honest_megabytes: float) -> str | None:
    """Return what is wrong with how a case ended; None: nothing."""
    lines = ended.errors.split("\n")
    if ended.seconds > SECONDS:
        return "hang"
    if "Traceback" in ended.errors:
        return "traceback"
    if ended.code not in (0, 2):
        return f"exit code {ended.code}"
    if "out of memory" in ended.errors or ended.megabytes > 2 * honest_megabytes:
        return f"memory: {ended.megabytes:.0f} MB"
    if SECRET in ended.out + ended.errors:
        return "a file outside of the folder was read"
    if ended.code == 2 and not lines[-2].startswith("regard: "):
        return "refused without a sentence"
    if ended.code == 0 and case.answers is not None and ended.out.count("\n") != case.answers:
        return f"expected {case.answers} lines of results, got {ended.out.count(chr(10))}"
    strange = [line for line in lines[:-1] if not line.startswith("regard: ")]
    if strange and not case.group.startswith(("train", "resume")):
        return f"standard error has {strange[0][:80]!r}"
    return None
