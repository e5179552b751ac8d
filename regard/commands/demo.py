"""`regard demo`: train a translator on the sample, score it, and show its attention."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from regard.commands.options import Seed, Threads

if TYPE_CHECKING:
    from regard.tasks.translation.predictor import Translator

SENTENCE = "Rahul is a good boy"
OUT = Path("regard-demo")
MINUTES = 2.8
SMALL_MODEL = {
    "model.embedding": 128,
    "model.encoder": 128,
    "model.decoder": 256,
    "model.attention": 128,
    "model.dropout": 0.2,
    "training.guided_attention": 0.1,
    "training.placeholders": 0.05,
}
"""settings for 3,000 short sentences; these are too few to learn an alignment without guided attention, and more
placeholders cost quality"""


def demo(
    out: Annotated[Path, Option(help="The folder of the model; an existing one is replaced.")] = OUT,
    minutes: Annotated[float, Option(min=0.1, help="The time limit of training.")] = MINUTES,
    threads: Threads = None,
    seed: Seed = 1,
) -> None:
    """Train an English–Marathi translator on the sample, score it, translate, and show its attention.

    Takes about 3 minutes on 2 cores.
    """
    from regard import samples
    from regard.commands.screen import Terminal
    from regard.tasks.train import train
    from regard.tasks.translation.predictor import Translator

    screen = Terminal()
    folder = samples.folder()
    screen.say("Training on the sample: English–Marathi sentences written for this project (regard/samples/README.md).")
    try:
        translator = train(
            folder / samples.TRAIN,
            out,
            dev=folder / samples.DEV[0],
            settings=SMALL_MODEL,
            minutes=minutes,
            overwrite=out.exists(),
            languages=("en", "mr"),
            threads=threads,
            seed=seed,
            device="cpu",
            screen=screen,
        )
    finally:
        screen.close()
    assert isinstance(translator, Translator)
    typer.echo(_scores(translator))
    typer.echo(_attention(translator))
    typer.echo(_next_steps(out))


def _scores(translator: Translator) -> str:
    """Return the scores on sentence frames and on free sentences, also in lower case and without full stop."""
    from regard import samples
    from regard.text.pairs import Pair, read_references

    lines = ["", "Exact match on sentences it has not seen:"]
    for title, name in zip(("sentence frames", "free sentences"), samples.DEV, strict=True):
        pairs = read_references([samples.folder() / name])
        bare = [Pair(pair.source.rstrip(".").lower(), pair.target.rstrip("."), pair.line) for pair in pairs]
        plain, typed = translator.evaluate(pairs), translator.evaluate(bare)
        lines.append(
            f"  {title:16} {plain.exact:5.1f} % of {plain.sources:3}   chrF++ {plain.chrf:5.1f}"
            f"   in lower case, without full stop: {typed.exact:5.1f} %"
        )
    return "\n".join(lines)


def _attention(translator: Translator) -> str:
    """Return the translation of a sentence, and a grid of its attention weights."""
    from regard.look.table import table
    from regard.look.terminal import grid, in_colour

    (answer,) = translator.answers([SENTENCE])
    width = shutil.get_terminal_size((100, 24)).columns
    shown = grid(table(answer.translations[0].traces[0]), width, in_colour(sys.stdout))
    return f"\n{SENTENCE}  →  {answer.text}\n\n{shown}\n\n" + (
        "A row is a word of the translation, and shows where the model looked when it wrote it."
    )


def _next_steps(out: Path) -> str:
    """Return commands to try next."""
    return (
        "\nNext:\n"
        f'  regard translate {out} "Sita is a good girl." --look terminal\n'
        f'  regard translate {out} "The girl is reading a book." --look girl.html        a page to look into\n'
        f"  regard look {out} --history        how it learned where to look\n"
        "  regard train YOUR-PAIRS.tsv --out my-model        your own sentences: source TAB target, a line each"
    )
