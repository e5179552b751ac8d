"""`regard translate`: one line out for every line in."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

if TYPE_CHECKING:
    from regard.translator import Answer

LINES = 256
"""lines read before they are translated together"""


def translate(
    model: Annotated[Path, typer.Argument(help="The folder of a model.")],
    text: Annotated[list[str] | None, typer.Argument(help="Texts; none: lines of -i, or of standard input.")] = None,
    input_: Annotated[Path | None, typer.Option("--input", "-i", help="A text file (.gz too), a line each.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write here, not on standard output.")] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, max=100, help="Hypotheses kept; 1: greedy. Default: the recipe's.")
    ] = None,
    n_best: Annotated[int, typer.Option(min=1, max=100, help="Give so many, as rank TAB score TAB text.")] = 1,
    length_penalty: Annotated[float | None, typer.Option(min=0.0, help="α in log p / length^α.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw tokens at random instead of searching.")] = False,
    temperature: Annotated[float, typer.Option(help="Of --sample: lower is safer.")] = 1.0,
    among: Annotated[int | None, typer.Option(min=1, help="Of --sample: only among so many tokens.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**31, help="Of --sample.")] = None,
    prefix: Annotated[str, typer.Option(help="How each translation must begin.")] = "",
    look: Annotated[str | None, typer.Option(help="terminal: show what each word looked at.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notices.")] = False,
) -> None:
    """Translate texts, a file or standard input; results on standard output, all else on standard error."""
    import torch

    from regard.commands.screen import complain
    from regard.translator import Search, load

    if text and input_ is not None:
        raise ValueError("expected texts or --input, got both")
    if look not in (None, "terminal"):
        raise ValueError(f"--look: expected terminal, got {look!r}")
    if threads is not None:
        torch.set_num_threads(threads)
    if seed is not None:
        torch.manual_seed(seed)
    translator = load(model, device, precision)  # type: ignore[arg-type]
    usual = translator.search
    search = Search(
        beam or max(usual.beam, n_best),
        n_best,
        usual.length_penalty if length_penalty is None else length_penalty,
        sample,
        temperature,
        among,
    )
    write = _writer(json_, n_best, look)
    with _opened(output) as out:
        for lines in _chunks(_lines(text, input_)):
            for answer in translator.answers(lines, search, prefix):
                write(answer, out)
                for notice in () if quiet else answer.notices:
                    complain(f"{_short(answer.source)!r}: {notice}")
            out.flush()


def _lines(text: list[str] | None, path: Path | None) -> Iterator[str]:
    from regard.text.pairs import read_lines

    if text:
        return iter(text)
    return read_lines(sys.stdin.buffer if path is None else path)


def _chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    """Many lines at a time; of a person typing, one."""
    count = 1 if sys.stdin.isatty() else LINES
    while chunk := list(islice(lines, count)):
        yield chunk


class _opened:  # noqa: N801, read like the function it stands for
    """The output file, which appears as a whole when all is done, or standard output."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._beside = None if path is None else path.with_name(path.name + ".new")

    def __enter__(self) -> TextIO:
        if self._beside is None:
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
            return sys.stdout
        self._file = self._beside.open("w", encoding="utf-8", newline="\n")
        return self._file

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._beside is None:
            return
        self._file.close()
        if kind is None:
            assert self._path is not None
            self._beside.replace(self._path)
        else:
            self._beside.unlink()


def _writer(as_json: bool, n_best: int, look: str | None) -> Callable[[Answer, TextIO], None]:
    if as_json:
        return _write_json
    if n_best > 1:
        return _write_ranked
    return _write_looked if look else _write_text


def _write_text(answer: Answer, out: TextIO) -> None:
    print(answer.text, file=out)


def _write_ranked(answer: Answer, out: TextIO) -> None:
    for rank, each in enumerate(answer.translations, 1):
        print(rank, f"{each.score:.4f}", each.text, sep="\t", file=out)


def _write_looked(answer: Answer, out: TextIO) -> None:
    from regard.look.terminal import grid

    print(answer.text, file=out)
    for trace in answer.translations[0].traces:
        print("\n" + grid(trace) + "\n", file=out)


def _write_json(answer: Answer, out: TextIO) -> None:
    told = {
        "source": answer.source,
        "translations": [
            {"text": each.text, "score": round(each.score, 6), "log_probability": round(each.log_probability, 6)}
            for each in answer.translations
        ],
        "notices": answer.notices,
    }
    print(json.dumps(told, ensure_ascii=False), file=out)


def _short(text: str) -> str:
    return text if len(text) < 60 else text[:57] + "…"
