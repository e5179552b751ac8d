"""`regard translate`: translate texts, one line out for every line in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from regard.commands import options
from regard.commands.confidence_output import ConfidenceOptions, ConfidenceOutput
from regard.commands.document_input import DocumentInput, input_document
from regard.commands.groups import given, with_groups
from regard.commands.input import chunks
from regard.commands.look_output import LookOptions, LookOutput, refuse_text_view
from regard.commands.options import refuse_idle
from regard.commands.screen import complain
from regard.commands.shards import ShardingOptions, run_sharded
from regard.commands.streams import open_results
from regard.commands.translate_options import ContentOptions, SearchOptions

if TYPE_CHECKING:
    from regard.tasks.translation.predictor import Translator
    from regard.tasks.translation.search_options import Search
    from regard.text.glossary import Glossary
    from regard.text.keep import Keep
    from regard.text.placeables import Part


@with_groups
def translate(
    model: options.Model,
    *,
    texts: options.TextOptions,
    ensemble: options.Ensemble = None,
    search: SearchOptions,
    content: ContentOptions,
    confidence: ConfidenceOptions,
    look: LookOptions,
    json_: options.JsonLines = False,
    on: options.DeviceOptions,
    quiet: options.Quiet = False,
    sharding: ShardingOptions,
) -> None:
    """Translate texts, a file or standard input: one line out for every line in. Results go to standard output,
    everything else to standard error. With --shards, translate a large file in parts, on several machines.

    Files ending in .html, .md, .srt, .po, .json and .csv are translated as a whole: what is not text stays."""
    from regard.tasks.registry import TRANSLATION

    search.check(json_)
    refuse_text_view(look.view)
    confidence_output = ConfidenceOutput.of(confidence, texts.output)
    if content.glossary is not None:
        refuse_idle({"--sample": search.sample, "--mbr": search.mbr or None}, "expected neither with --glossary")
    models = [model, *(ensemble or [])]
    if sharding.shards is not None:
        idle = {"TEXT": texts.text or None, "--columns": content.columns} | given(look) | given(confidence)
        refuse_idle(idle, "expected no --shards with it")
        run_sharded(sharding, models, texts, search, content, on, json_, quiet)
        return
    look_output = LookOutput(look.look or [], look.view, look.evidence, texts.output, as_json=json_)
    document, line_chunks = _input(texts, search, content, confidence, look, json_)
    terms = content.terms()
    options.set_threads(on.threads, search.seed)
    with open_results(texts.output) as out:
        translator, chosen = _translator(models, search, terms, on)
        wanted = look_output.wanted, terms, confidence_output.wanted
        for lines in line_chunks:
            for answer in translator.answers_of_parts(lines, chosen, search.prefix, *wanted):
                if document:
                    document.add(answer.translations[0].content)
                else:
                    print(confidence_output.lines(answer, json_, search.n_best), file=out)
                look_output.show(answer.translations[0].traces, lambda trace: TRANSLATION.examine(translator, trace))
                _complain_of([] if quiet else answer.notices, answer.source)
            out.flush()
        if document:
            _finish(document, out, quiet)
    look_output.finish(quiet)


def _translator(
    models: Sequence[Path], search: SearchOptions, terms: Glossary | None, on: options.DeviceOptions
) -> tuple[Translator, Search]:
    """Return the model or ensemble, and its search; a glossary needs a beam."""
    from regard.tasks.registry import TRANSLATION, load_for

    first = load_for(TRANSLATION, models[0], on.device, on.precision)  # type: ignore[arg-type]
    translator = TRANSLATION.ensemble(first, models[1:])
    chosen = search.applied(translator.search)
    return translator, chosen if terms is None else replace(chosen, mbr=0)


def _input(
    texts: options.TextOptions,
    search: SearchOptions,
    content: ContentOptions,
    confidence: ConfidenceOptions,
    look: LookOptions,
    as_json: bool,
) -> tuple[DocumentInput | None, Iterable[list[list[Part]]]]:
    """Return the file that is translated as a whole, if it is one, and the texts to translate, in chunks."""
    kinds = content.kinds()
    if kinds is not None:
        refuse_idle({"--evidence": look.evidence}, "expected it without --keep, whose words the model does not see")
    idle: dict[str, object] = {"--json": as_json, "--n-best": search.n_best > 1, "--prefix": bool(search.prefix)}
    idle |= {"--evidence": look.evidence} | given(confidence)
    document = input_document(texts.text, texts.input_, content.columns, kinds, idle)
    return document, document.chunks() if document else _parts(chunks(texts.text, texts.input_), kinds)


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


def _complain_of(notices: Sequence[str], source: str) -> None:
    short = source if len(source) < 60 else source[:57] + "…"
    for notice in notices:
        complain(f"{short!r}: {notice}")
