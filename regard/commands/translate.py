"""`regard translate`: translate texts, one line out for every line in."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from typer import Option

from regard.commands import options
from regard.commands.input import chunks
from regard.commands.look_output import LookOutput
from regard.commands.options import refuse_idle
from regard.commands.output import open_results
from regard.commands.screen import complain

if TYPE_CHECKING:
    from regard.alignment.carry import Kind
    from regard.tasks.translation.predictor import Answer, Search

Beam = Annotated[int | None, Option(min=1, max=100, help="The beam size; 1: greedy search. Default: the recipe's.")]
NBest = Annotated[int, Option(min=1, max=100, help="Print so many different translations, as rank TAB score TAB text.")]
TopP = Annotated[float | None, Option(help="With --sample: only the most probable tokens that sum to p, such as 0.9.")]
CarryOver = Annotated[
    str | None,
    Option(metavar="KINDS", help="Copy from the source, separated by commas: numbers, addresses, markup, names."),
]


def translate(
    model: options.Model,
    text: options.Texts = None,
    input_: options.Input = None,
    output: options.Output = None,
    beam: Beam = None,
    n_best: NBest = 1,
    length_penalty: Annotated[
        float | None, Option(min=0.0, help="α of the score log p / length^α. Default: the recipe's.")
    ] = None,
    sample: Annotated[bool, Option("--sample", help="Sample tokens at random instead of beam search.")] = False,
    temperature: Annotated[float | None, Option(help="With --sample: lower is safer. Default: 1.")] = None,
    top_k: Annotated[int | None, Option(min=1, help="With --sample: only the k most probable tokens.")] = None,
    top_p: TopP = None,
    seed: Annotated[int | None, Option(min=0, max=2**31, help="With --sample: the seed of the random numbers.")] = None,
    prefix: Annotated[str, Option(help="The text with which each translation must begin.")] = "",
    carry: CarryOver = None,
    look: options.Look = None,
    view: Annotated[
        str | None, Option(help="With --look, of pictures and the terminal: grid or links. Default: grid.")
    ] = None,
    evidence: options.Evidence = False,
    json_: options.JsonLines = False,
    device: options.Device = None,
    threads: options.Threads = None,
    precision: options.Precision = "auto",
    quiet: options.Quiet = False,
) -> None:
    """Translate texts, a file or standard input: one line out for every line in.

    Results go to standard output, everything else to standard error.
    """
    import torch

    from regard.alignment.carry import read_kinds
    from regard.tasks.registry import TRANSLATION, load_for

    search = _search(beam, n_best, length_penalty, sample, temperature, top_k, top_p, seed, json_)
    _check_texts(prefix, view)
    look_output = LookOutput(look or [], view, evidence, output, as_json=json_)
    given, kinds = chunks(text, input_), read_kinds(carry)
    options.set_threads(threads)
    if seed is not None:
        torch.manual_seed(seed)
    with open_results(output) as out:
        translator = load_for(TRANSLATION, model, device, precision)  # type: ignore[arg-type]
        search = _with_defaults(search, translator.search, beam is None, length_penalty is None)
        for lines in given:
            for answer in translator.answers(lines, search, prefix, details=look_output.wanted):
                carried = with_carried_over(answer, kinds) if kinds else answer
                print(_lines(carried, json_, n_best), file=out)
                traces = answer.translations[0].traces
                look_output.show(traces, lambda trace: TRANSLATION.examine(translator, trace))
                for notice in () if quiet else answer.notices:
                    complain(f"{_short(answer.source)!r}: {notice}")
            out.flush()
    look_output.finish(quiet)


def _check_texts(prefix: str, view: str | None) -> None:
    """Raise a ValueError for a prefix that is not UTF-8 or a view that shows no translation."""
    from regard.text.pairs import has_lone_surrogate

    if has_lone_surrogate(prefix):
        raise ValueError(f"--prefix is not UTF-8: {prefix!r}")
    if view == "text":
        raise ValueError("view: expected grid or links, got 'text', which is for labels")


def _with_defaults(search: Search, defaults: Search, beam: bool, length_penalty: bool) -> Search:
    """Return the search with the recipe's beam size or length penalty, where none was given."""
    if beam:
        search = replace(search, beam=max(defaults.beam, search.n_best))
    return replace(search, length_penalty=defaults.length_penalty) if length_penalty else search


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
    """Return the search that the options describe, checked before a model is loaded."""
    from regard.tasks.translation.predictor import Search

    if sample:
        refuse_idle({"--beam": beam, "--length-penalty": length_penalty}, "expected neither with --sample")
    else:
        sampling = {"--temperature": temperature, "--top-k": top_k, "--top-p": top_p, "--seed": seed}
        refuse_idle(sampling, "expected --sample with it")
    if beam == 1 and not as_json:
        refuse_idle({"--length-penalty": length_penalty}, "expected a larger --beam with it, or --json")
    penalty = Search.length_penalty if length_penalty is None else length_penalty
    temperature = Search.temperature if temperature is None else temperature
    return Search(beam or max(Search.beam, n_best), n_best, penalty, sample, temperature, top_k, top_p)


def with_carried_over(answer: Answer, kinds: Collection[Kind]) -> Answer:
    """Return the answer with numbers, addresses and the like replaced by those of the source."""
    from regard.alignment.carry import carry_over
    from regard.tasks.translation.predictor import distinct_texts

    translations = [
        replace(each, text=" ".join(carry_over(trace, kinds) for trace in each.traces) if each.traces else "")
        for each in answer.translations
    ]
    return replace(answer, translations=distinct_texts(translations))  # some may differ no longer


def _lines(answer: Answer, as_json: bool, n_best: int) -> str:
    """Return what is printed of an answer."""
    if as_json:
        translations = [
            {"text": each.text, "score": round(each.score, 6), "log_probability": round(each.log_probability, 6)}
            for each in answer.translations
        ]
        result = {"source": answer.source, "translations": translations, "notices": answer.notices}
        return json.dumps(result, ensure_ascii=False)
    if n_best > 1:
        ranked = enumerate(answer.translations, 1)
        return "\n".join(f"{rank}\t{each.score:.4f}\t{each.text}" for rank, each in ranked)
    return answer.text


def _short(text: str) -> str:
    return text if len(text) < 60 else text[:57] + "…"
