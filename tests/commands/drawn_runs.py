"""Run a drawn command line, in this process or as one of its own, and judge what it did."""

from __future__ import annotations

import hashlib
import io
import math
import multiprocessing
import os
import shutil
import stat
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.commands import drawn_world

Entry = tuple[int, str]
"""mode; target of a link, or hash of the content"""
SECONDS = 120
"""that a command may take as a process"""


@dataclass(frozen=True)
class CommandLine:
    arguments: list[str]
    stdin: bytes = b""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str
    trace: str = ""
    """of an exception that got out"""
    changed: list[str] = field(default_factory=list)
    """files that were made, changed or removed, relative to the world"""


class World:
    """A folder with all the files, which is put back into its first state after every run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._pristine = folder / "world", folder / "pristine"
        self.folder.mkdir()
        drawn_world.build(self.folder)
        shutil.copytree(self.folder, self._pristine, symlinks=True)
        self._hashes: dict[tuple[str, int, int, int], str] = {}
        self._before = self._snapshot()

    def run(self, line: CommandLine, as_process: bool = False) -> Ended:
        with _working_in(self.folder):
            ended = _in_process(line) if not as_process else _as_process(line)
        after = self._snapshot()
        changed = sorted(
            name for name in self._before.keys() | after.keys() if self._before.get(name) != after.get(name)
        )
        for name in changed:
            self._restore(name)
        return Ended(ended.code, ended.stdout, ended.stderr, ended.trace, changed)

    def _snapshot(self) -> dict[str, Entry]:
        result: dict[str, Entry] = {}
        for place, folders, files in os.walk(self.folder):
            for name in [*folders, *files]:
                path = os.path.join(place, name)
                result[os.path.relpath(path, self.folder)] = self._entry(path)
        return result

    def _entry(self, path: str) -> Entry:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return status.st_mode, os.readlink(path)
        if not stat.S_ISREG(status.st_mode):
            return status.st_mode, ""
        key = path, status.st_ino, status.st_mtime_ns, status.st_size
        if key not in self._hashes:
            self._hashes[key] = _digest(path, status.st_mode)
        return status.st_mode, self._hashes[key]

    def _restore(self, name: str) -> None:
        ours, theirs = self.folder / name, self._pristine / name
        if ours.is_dir() and not ours.is_symlink():
            if not os.path.lexists(theirs):
                shutil.rmtree(ours)
            return
        ours.unlink(missing_ok=True)
        if os.path.lexists(theirs) and theirs.is_dir() and not theirs.is_symlink():
            ours.mkdir(exist_ok=True)
        elif os.path.lexists(theirs):
            ours.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(theirs, ours, follow_symlinks=False)


def _digest(path: str, mode: int) -> str:
    try:
        return hashlib.sha1(Path(path).read_bytes()).hexdigest()
    except PermissionError:
        return f"unreadable {mode}"


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _in_process(line: CommandLine) -> Ended:
    """Through the same `main()`, with streams in memory."""
    import torch

    from regard.cli import main
    from regard.commands import screen

    saved, interval = (sys.argv, sys.stdin, sys.stdout, sys.stderr), screen.LINE_SECONDS
    screen.LINE_SECONDS = math.inf  # lines of progress, which come on a slow machine, are no fault
    threads = torch.get_num_threads()
    out, error = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    sys.argv, sys.stdin = ["regard", *line.arguments], io.TextIOWrapper(io.BytesIO(line.stdin))
    sys.stdout, sys.stderr = out, error
    code, trace = 0, ""
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:  # whatever gets out is what is looked for
        code, trace = 1, traceback.format_exc()
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = saved
        screen.LINE_SECONDS = interval
        torch.set_num_threads(threads)
    out.flush()
    error.flush()
    report = [stream.buffer.getvalue().decode() for stream in (out, error)]  # type: ignore[attr-defined]
    return Ended(code, *report, trace)


def _as_process(line: CommandLine) -> Ended:
    """As a process with streams of its own, forked from one that has imported everything already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["regard.cli", "regard.tasks.translation.predictor", "tests.commands.drawn_runs"])
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("in", "out", "error")]
        files[0].write_bytes(line.stdin)
        process = context.Process(target=_child, args=(line.arguments, list(map(str, files)), str(Path.cwd())))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
        out, error = (file.read_bytes().decode() for file in files[1:])
    return Ended(process.exitcode or 0, out, error, error if "Traceback" in error else "")


def _child(arguments: list[str], files: list[str], folder: str) -> None:
    import torch

    os.chdir(folder)
    torch.set_num_threads(1)
    for number, (file, flags) in enumerate(zip(files, (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT] * 2), strict=True)):
        os.dup2(os.open(file, flags), number)
    sys.stdin, sys.stdout, sys.stderr = (open(number, "r" if number == 0 else "w") for number in range(3))  # noqa: SIM115
    sys.argv = ["regard", *arguments]
    from regard.cli import main
    from regard.commands import screen

    screen.LINE_SECONDS = math.inf
    main()


def fault(line: CommandLine, ended: Ended) -> str | None:
    """What is wrong with how a command ended; None: nothing."""
    lines = ended.stderr.split("\n")
    if ended.trace or "Traceback" in ended.stderr:
        return "a traceback"
    if ended.code not in (0, 2):
        return f"exit code {ended.code}"
    if lines.pop() != "":
        return "standard error does not end with a line end"
    trains = line.arguments[:1] in (["train"], ["tune"], ["compare"])
    strange = [report for report in lines if not report.startswith("regard: ")]
    if strange and not (trains and ended.code == 0) and not (trains and lines[-1].startswith("regard: ")):
        return f"standard error has {strange[0]!r}"
    if ended.code == 2 and not lines:
        return "refused without a word"
    unasked = [name for name in ended.changed if not _asked(name, line.arguments)]
    if unasked:
        return f"{unasked[0]!r} was changed"
    if ended.code == 2 and (temporary := [name for name in ended.changed if ".regard-" in name or ".new" in name]):
        return f"{temporary[0]!r} was left behind"
    if ended.code == 0 and not ended.stdout and not ended.changed and not _may_say_nothing(line, ended):
        return "no result"
    return None


def _asked(name: str, arguments: list[str]) -> bool:
    """Is the file one that was named to be written, in a folder that was, or a folder made for it?"""
    if "--history" in arguments and name == "history.html":
        return True
    stem, _, number = Path(name).stem.rpartition("-")
    names = {name} | ({str(Path(name).with_name(stem + Path(name).suffix))} if stem and number.isdigit() else set())
    for argument in arguments:
        given = argument.split("=", 1)[-1] if argument.startswith("--") else argument.removeprefix("-o")
        place = os.path.normpath(given)
        targets = (
            {place, os.path.normpath(os.path.join(os.path.dirname(place), "old.txt"))} if "link" in place else {place}
        )
        for target in targets - {"."}:
            if any(each == target or each.startswith(target + "/") or target.startswith(each + "/") for each in names):
                return True
    return False


def _may_say_nothing(line: CommandLine, ended: Ended) -> bool:
    """Nothing came, or the result went to where it cannot be seen."""
    if line.arguments[:1] in (["translate"], ["classify"]):
        return True
    return any("null.txt" in each or "/dev/null" in each for each in line.arguments) or "written: " in ended.stderr
