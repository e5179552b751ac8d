"""The command line in this process, on a GPU."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from regard import samples
from regard.cli import main


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


class _Stream(io.TextIOWrapper):
    """Text that is kept, with the methods that commands ask a standard stream for."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)

    @property
    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


def regard(*arguments: object) -> Ended:
    """Run `regard` with these arguments."""
    before, out, err = sys.argv, _Stream(), _Stream()
    sys.argv = ["regard", *map(str, arguments)]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.argv = before
        torch.cuda.synchronize()
    return Ended(int(code) if isinstance(code, int) else int(code is not None), out.text, err.text)


def works(*arguments: object) -> Ended:
    """Run a command that must end well, without NaN in its results."""
    ended = regard(*arguments)
    assert ended.code == 0, f"regard {' '.join(map(str, arguments))}: {ended.err}"
    assert "nan" not in ended.out.lower().split(), ended.out
    return ended


def settings(**values: object) -> list[str]:
    """`--set` for each; `__` stands for a dot."""
    return [word for key, value in values.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]


def some_pairs(folder: Path, count: int = 400) -> Path:
    """The first pairs of the sample as a file."""
    lines = (samples.folder() / samples.TRAIN).read_text(encoding="utf-8").splitlines()[:count]
    path = folder / "pairs.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def sentences(path: Path, side: int = 0, count: int = 12) -> Sequence[str]:
    return [line.split("\t")[side] for line in path.read_text(encoding="utf-8").splitlines()[:count]]
