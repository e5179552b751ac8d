"""`regard translate`: translate texts, one line out for every line in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from typer import Option

from regard.commands import options
from regard.commands.confidence_output import Confidence, ConfidenceOutput, Fallback, MinConfidence
from regard.commands.document_input import DocumentInput, input_document
from regard.commands.input import chunks
from regard.commands.look_output import LookOutput
from regard.commands.options import refuse_idle
from regard.commands.screen import complain
from regard.commands.shards import Join, ShardingOptions, ShardLines, Shards, Workers, run_sharded
from regard.commands.streams import open_results

if TYPE_CHECKING:
    from regard.tasks.translation.search_options import Search
    from regard.text.keep import Keep
    from regard.text.placeables import Part

Beam = Annotated[int | None, Option(min=1, max=100, help="The beam size; 1: greedy search. Default: the recipe's.")]
NBest = Annotated[int, Option(min=1, max=100, help="Print so many different translations, as rank TAB score TAB text.")]
Temperature = Annotated[
    float | None, Option(help="With --sample or --mbr: lower is safer. Default: 1, with --mbr 0.5.")
]
Seed = Annotated[int | None, Option(min=0, max=2**31, help="With --sample or --mbr: the seed of the random numbers.")]
TopP = Annotated[float | None, Option(help="With --sample: only the most probable tokens that sum to p, such as 0.9.")]
LengthPenalty = Annotated[float | None, Option(min=0.0, help="α of the score log p / length^α. Default: the recipe's.")]
GlossaryFile = Annotated[
    Path | None,
    Option(
        "--glossary",
        metavar="FILE",
        help="Terms to use, a .tsv of source term and target term; several forms are separated by |, = keeps the "
        "source as it is.",
    ),
]
View = Annotated[str | None, Option(help="With --look, of pictures and the terminal: grid or links. Default: grid.")]
KeepKinds = Annotated[
    list[str] | None,
    Option(
        metavar="KINDS",
        help="What is not translated, separated by commas: numbers, addresses, markup, names, re:PATTERN. Can be "
        "repeated. In whole files, always numbers, addresses and markup.",
    ),
]
Columns = Annotated[
    str | None, Option(metavar="NAMES", help="With a .csv file: the columns to translate, separated by commas.")
]

NOT_WITH_SHARDS = "expected no --shards with it"


def translate(
    model: options.Model,
    text: options.Texts = None,
    input_: options.Input = None,
    output: options.Output = None,
    ensemble: options.Ensemble = None,
    beam: Beam = None,
    n_best: NBest = 1,
    length_penalty: LengthPenalty = None,
    mbr: options.Mbr = None,
    sample: Annotated[bool, Option("--sample", help="Sample tokens at random instead of beam search.")] = False,
    temperature: Temperature = None,
    top_k: Annotated[int | None, Option(min=1, help="With --sample: only the k most probable tokens.")] = None,
    top_p: TopP = None,
    seed: Seed = None,
    prefix: Annotated[str, Option(help="The text with which each translation must begin.")] = "",
    glossary: GlossaryFile = None,
    keep: KeepKinds = None,
    columns: Columns = None,
    confidence: Confidence = False,
    min_confidence: MinConfidence = None,
    fallback: Fallback = None,
    look: options.Look = None,
    view: View = None,
    evidence: options.Evidence = False,
    json_: options.JsonLines = False,
    device: options.Device = None,
    threads: options.Threads = None,
    precision: options.Precision = "auto",
    quiet: options.Quiet = False,
    shards: Shards = None,
    shard_lines: ShardLines = None,
    workers: Workers = None,
    join: Join = False,
) -> None:
    """Translate texts, a file or standard input: one line out for every line in. Results go to standard output,
    everything else to standard error. With --shards, translate a large file in parts, on several machines.

    Files ending in .html, .md, .srt, .po, .json and .csv are translated as a whole: what is not text stays."""
    from regard.tasks.registry import TRANSLATION, load_for
    from regard.tasks.translation.output import answer_lines
    from regard.text.glossary import Glossary
    from regard.text.keep import Keep

    given: dict[str, Any] = {"beam": beam, "n_best": n_best, "length_penalty": length_penalty, "sample": sample}
    given |= {"mbr": mbr, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    search_by = _search(given, json_, seed)
    _check_texts(prefix, view)
    of_confidence: dict[str, object] = {"--confidence": confidence}
    of_confidence |= {"--min-confidence": min_confidence, "--fallback": fallback}
    confidence_output = ConfidenceOutput.of(confidence, min_confidence, fallback, output)
    if glossary is not None:
        refuse_idle({"--sample": sample, "--mbr": mbr or None}, "expected neither with --glossary")
    sharding = ShardingOptions(shards, shard_lines, workers, join)
    if sharding.folder is not None:
        refuse_idle({"TEXT": text or None, "--look": look, "--view": view, "--evidence": evidence}, NOT_WITH_SHARDS)
        refuse_idle(of_confidence | {"--columns": columns}, NOT_WITH_SHARDS)
        given |= {"seed": seed, "prefix": prefix or None, "glossary": glossary, "keep": keep or None, "json": json_}
        given |= {"device": device, "threads": threads, "precision": None if precision == "auto" else precision}
        by_option = {f"--{name.replace('_', '-')}": value for name, value in given.items()}
        by_option["--n-best"] = None if n_best == 1 else n_best
        run_sharded(sharding, [model, *(ensemble or [])], (input_, output), search_by, by_option, quiet)
        return
    look_output = LookOutput(look or [], view, evidence, output, as_json=json_)
    if keep:
        refuse_idle({"--evidence": evidence}, "expected it without --keep, whose words the model does not see")
    kinds = Keep.parse(*keep) if keep else None
    idle = {"--json": json_, "--n-best": n_best > 1, "--prefix": bool(prefix), "--evidence": evidence} | of_confidence
    document = input_document(text, input_, columns, kinds, idle)
    line_chunks = document.chunks() if document else _parts(chunks(text, input_), kinds)
    terms = None if glossary is None else Glossary.read(glossary)
    options.set_threads(threads, seed)
    with open_results(output) as out:
        first = load_for(TRANSLATION, model, device, precision)  # type: ignore[arg-type]
        translator = TRANSLATION.ensemble(first, ensemble or [])
        search = search_by(translator.search)
        search = search if terms is None else replace(search, mbr=0)
        for lines in line_chunks:
            for answer in translator.answers_of_parts(
                lines, search, prefix, look_output.wanted, terms, confidence_output.wanted
            ):
                if document:
                    document.add(answer.translations[0].content)
                else:
                    print(answer_lines(confidence_output.applied(answer), json_, n_best, confidence_output), file=out)
                traces = answer.translations[0].traces
                look_output.show(traces, lambda trace: TRANSLATION.examine(translator, trace))
                _complain_of([] if quiet else answer.notices, answer.source)
            out.flush()
        if document:
            _finish(document, out, quiet)
    look_output.finish(quiet)


def _finish(document: DocumentInput, out: TextIO, quiet: bool) -> None:
    """Write a whole file, with notices for what could not be translated."""
    result, notices = document.result()
    out.write(result)
    for notice in [] if quiet else notices:
        complain(notice)


def _parts(line_chunks: Iterable[list[str]], keep: Keep | None) -> Iterator[list[list[Part]]]:
    """Yield chunks of lines as their parts; None: all of a line is translated."""
    for lines in line_chunks:
        yield [[line] if keep is None else keep.parts(line) for line in lines]


def _check_texts(prefix: str, view: str | None) -> None:
    """Raise a ValueError for a prefix that is not UTF-8 or a view that shows no translation."""
    from regard.text.pairs import has_lone_surrogate

    if has_lone_surrogate(prefix):
        raise ValueError(f"--prefix is not UTF-8: {prefix!r}")
    if view == "text":
        raise ValueError("view: expected grid or links, got 'text', which is for labels")


def _search(given: dict[str, Any], as_json: bool, seed: int | None) -> Callable[[Search], Search]:
    """Check the options of a search before a model is loaded; return what applies them to the model's own defaults."""
    from regard.tasks.translation.search_options import Search

    chosen = {name: value for name, value in given.items() if value is not None}
    by_option = {f"--{name.replace('_', '-')}": value for name, value in given.items()} | {"--seed": seed}
    penalty = {"--length-penalty": by_option["--length-penalty"]}
    if given["sample"]:
        refuse_idle({"--beam": given["beam"], "--mbr": given["mbr"]} | penalty, "expected neither with --sample")
    else:
        names = ("--top-k", "--top-p", *(() if given["mbr"] else ("--temperature", "--seed")))
        refuse_idle({name: by_option[name] for name in names}, "expected --sample with it")
    if given["mbr"]:
        refuse_idle(penalty, "expected it without --mbr, which ranks by chrF++")
        chosen |= {} if seed is None else {"seed": seed}
    elif given["sample"] or given["length_penalty"] is not None:
        chosen["mbr"] = 0
    if given["beam"] == 1 and not as_json:
        refuse_idle(penalty, "expected a larger --beam with it, or --json")

    def applied(defaults: Search) -> Search:
        wider = {} if given["mbr"] else {"beam": max(defaults.beam, given["n_best"])}
        return replace(defaults, **wider | chosen)

    applied(Search())  # raises an error for values that make no search
    return applied


def _complain_of(notices: Sequence[str], source: str) -> None:
    short = source if len(source) < 60 else source[:57] + "…"
    for notice in notices:
        complain(f"{short!r}: {notice}")
