"""Pairs of other tasks than translation: dates, pronunciation, reversal. For docs/recipes.md.

    python examples/sequences.py dates FOLDER       writes train.tsv, dev.tsv and test.tsv

Everything is drawn by rules from a seed; no source of dev or test occurs in another part.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

Pair = tuple[str, str]

SIZES = {"train": 8000, "dev": 500, "test": 1000}


def dates(drawn: random.Random) -> Pair:
    """As people write them, from 1950 to 2049 → 1979-05-03."""
    when = date(1950, 1, 1) + timedelta(drawn.randrange(100 * 365))
    ending = "th" if when.day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(when.day % 10, "th")
    written = (
        f"{when.day} {when:%B %Y}",
        f"{when:%B} {when.day}, {when.year}",
        f"{when:%A}, {when.day} {when:%b %Y}",
        f"the {when.day}{ending} of {when:%B %Y}",
        f"{when.day}.{when.month}.{when.year}",
    )
    return drawn.choice(written), when.isoformat()


ONSETS = "b c ch ci d f g gh gi gl gn l m n p qu r s sc sch sp st t tr v z bb cc ff ll mm nn rr ss tt zz"
SOUNDS = (
    # (spelling, sound), the first that fits; a spelling with (?=…) looks at what follows, one with (?<=…) before
    ("sch", "sk"), ("sc(?=[eiè])", "ʃ"), ("cch", "kː"), ("ch", "k"),
    ("cci(?=[aou])", "tːʃ"), ("cc(?=[eiè])", "tːʃ"), ("cc", "kː"),
    ("ci(?=[aou])", "tʃ"), ("c(?=[eiè])", "tʃ"), ("c", "k"),
    ("gli(?=[aeou])", "ʎ"), ("gl(?=i)", "ʎ"), ("gn", "ɲ"), ("gh", "ɡ"),
    ("gi(?=[aou])", "dʒ"), ("g(?=[eiè])", "dʒ"), ("g", "ɡ"),
    ("qu", "kw"), ("zz", "tːs"), ("z", "ts"), ("(?<=[aeiouè])s(?=[aeiouè])", "z"), ("è", "ɛ"),
    (r"([bflmnprstv])\1", r"\1ː"),
)  # fmt: skip


def pronunciation(drawn: random.Random) -> Pair:
    """Made-up words in the spelling of Italian → how they are said, the stress left out: gnocesa → ɲotʃeza."""
    word = "".join(drawn.choice(ONSETS.split()) + drawn.choice("aeiou") for _ in range(drawn.randint(2, 4)))
    word = re.sub(r"^([bcflmnrstz])\1", r"\1", word)  # no word begins with a double consonant
    word = word[:-1] + "è" if drawn.random() < 0.1 else word
    return word, pronounced(word)


def pronounced(word: str) -> str:
    """The sounds of a word."""
    sounds, at = "", 0
    while at < len(word):
        for spelling, sound in (*SOUNDS, (".", r"\g<0>")):
            if match := re.compile(spelling).match(word, at):
                sounds += match.expand(sound)
                at = match.end()
                break
    return sounds


def reversal(drawn: random.Random) -> Pair:
    """Letters → the same from the end: kast → tsak."""
    letters = "".join(drawn.choices("abcdefghijklmnopqrstuvwxyz", k=drawn.randint(3, 10)))
    return letters, letters[::-1]


TASKS: dict[str, Callable[[random.Random], Pair]] = {
    "dates": dates,
    "pronunciation": pronunciation,
    "reversal": reversal,
}


def parts(task: str, seed: int = 1) -> dict[str, list[Pair]]:
    """Distinct sources, dealt to train, dev and test."""
    drawn = random.Random(f"{task} {seed}")
    result: dict[str, str] = {}
    while len(result) < sum(SIZES.values()):
        result.update([TASKS[task](drawn)])
    pairs = iter(result.items())
    return {part: [next(pairs) for _ in range(size)] for part, size in SIZES.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for part, pairs in parts(options.task, options.seed).items():
        lines = "".join(f"{source}\t{target}\n" for source, target in pairs)
        (options.folder / f"{part}.tsv").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
