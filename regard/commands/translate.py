"""`regard translate`: one line out for every line in."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from regard.commands.flags import refuse_idle

if TYPE_CHECKING:
    from regard.alignment.carry import Kind
    from regard.commands.look_output import Looking
    from regard.tasks.translation.predictor import Answer, Search, Translator

Texts = Annotated[list[str] | None, typer.Argument(help="Texts; none: lines of -i, or of standard input.")]
Input = Annotated[Path | None, typer.Option("--input", "-i", help="A text file (.gz too), a line each.")]
Out = Annotated[Path | None, typer.Option("--output", "-o", help="Write here, not on standard output.")]
Beam = Annotated[int | None, typer.Option(min=1, max=100, help="Hypotheses kept; 1: greedy. Default: the recipe's.")]
Best = Annotated[int, typer.Option(min=1, max=100, help="Give so many different texts, as rank TAB score TAB text.")]
Look = Annotated[
    list[str] | None,
    typer.Option(
        help="Show what each word looked at: terminal, or a .html, .svg, .png, .pdf or .json file. Several if wanted."
    ),
]
Test = Annotated[bool, typer.Option("--evidence", help="Of --look: test whether the weights mean anything. Slower.")]
Carry = Annotated[
    str | None,
    typer.Option(metavar="KINDS", help="Carry over as they are, parted by commas: numbers, addresses, markup, names."),
]


def translate(
    model: Annotated[Path, typer.Argument(help="The folder of a model.")],
    text: Texts = None,
    input_: Input = None,
    output: Out = None,
    beam: Beam = None,
    n_best: Best = 1,
    length_penalty: Annotated[float | None, typer.Option(min=0.0, help="α in log p / length^α.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw tokens at random instead of searching.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Of --sample: lower is safer. Default: 1.")] = None,
    top_k: Annotated[int | None, typer.Option(min=1, help="Of --sample: only the k most probable tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Of --sample: only the most probable tokens that sum to p, as 0.9.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**31, help="Of --sample.")] = None,
    prefix: Annotated[str, typer.Option(help="How each translation must begin.")] = "",
    carry: Carry = None,
    look: Look = None,
    view: Annotated[str | None, typer.Option(help="Of a picture: grid or links. Default: grid.")] = None,
    evidence: Test = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notices.")] = False,
) -> None:
    """Translate texts, a file or standard input; results on standard output, all else on standard error."""
    import torch

    from regard.alignment.carry import read_kinds
    from regard.commands.input import chunks
    from regard.commands.look_output import Looking
    from regard.commands.output import open_results
    from regard.tasks.registry import TRANSLATION, load_for

    search = _search(beam, n_best, length_penalty, sample, temperature, top_k, top_p, seed, json_)
    _check_texts(prefix, view)
    looking = Looking(look or [], view, evidence, output, as_json=json_)
    given, kinds = chunks(text, input_), read_kinds(carry)
    if threads is not None:
        torch.set_num_threads(threads)
    if seed is not None:
        torch.manual_seed(seed)
    with open_results(output) as out:
        translator = load_for(TRANSLATION, model, device, precision)  # type: ignore[arg-type]
        if beam is None:
            search = replace(search, beam=max(translator.search.beam, n_best))
        if length_penalty is None:
            search = replace(search, length_penalty=translator.search.length_penalty)

        def answers(lines: list[str]) -> list[Answer]:
            found = translator.answers(lines, search, prefix, details=looking.wanted)
            return [carried(answer, kinds) for answer in found] if kinds else found

        _write_all(given, answers, translator, looking, out, _writer(json_, n_best), quiet)
    looking.finish(quiet)


def _search(
    beam: int | None,
    n_best: int,
    length_penalty: float | None,
    sample: bool,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int | None,
    as_json: bool,
) -> Search:
    """What the options say, checked before a model is loaded; what they leave open is the model's to say."""
    from regard.tasks.translation.predictor import Search

    if sample:
        refuse_idle({"--beam": beam, "--length-penalty": length_penalty}, "expected neither with --sample")
    else:
        drawing = {"--temperature": temperature, "--top-k": top_k, "--top-p": top_p, "--seed": seed}
        refuse_idle(drawing, "expected --sample with it")
    if beam == 1 and not as_json:
        refuse_idle({"--length-penalty": length_penalty}, "expected a larger --beam with it, or --json")
    return Search(
        beam or max(Search.beam, n_best),
        n_best,
        Search.length_penalty if length_penalty is None else length_penalty,
        sample,
        Search.temperature if temperature is None else temperature,
        top_k,
        top_p,
    )


def _check_texts(prefix: str, view: str | None) -> None:
    from regard.text.pairs import broken

    if broken(prefix):
        raise ValueError(f"--prefix is not UTF-8: {prefix!r}")
    if view == "text":
        raise ValueError("view: expected grid or links, got 'text', which is for labels")


def _write_all(
    chunks: Iterator[list[str]],
    answers: Callable[[list[str]], list[Answer]],
    translator: Translator,
    looking: Looking,
    out: TextIO,
    write: Callable[[Answer, TextIO], None],
    quiet: bool,
) -> None:
    from regard.commands.screen import complain

    for lines in chunks:
        for answer in answers(lines):
            write(answer, out)
            looking.take(answer, translator)
            for notice in () if quiet else answer.notices:
                complain(f"{_short(answer.source)!r}: {notice}")
        out.flush()


def carried(answer: Answer, kinds: Collection[Kind]) -> Answer:
    """With numbers and the like as the source has them."""
    from regard.alignment.carry import carry_over
    from regard.tasks.translation.predictor import distinct_texts

    found = [
        replace(each, text=" ".join(carry_over(trace, kinds) for trace in each.traces) if each.traces else "")
        for each in answer.translations
    ]
    return replace(answer, translations=distinct_texts(found))  # they may have differed in what was carried over


def _writer(as_json: bool, n_best: int) -> Callable[[Answer, TextIO], None]:
    if as_json:
        return _write_json
    return _write_ranked if n_best > 1 else _write_text


def _write_text(answer: Answer, out: TextIO) -> None:
    print(answer.text, file=out)


def _write_ranked(answer: Answer, out: TextIO) -> None:
    for rank, each in enumerate(answer.translations, 1):
        print(rank, f"{each.score:.4f}", each.text, sep="\t", file=out)


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
