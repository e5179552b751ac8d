"""Do numbers, addresses, placeholders, names and tags come back as they were, and does the sentence stay as good?

    python benchmarks/keep.py MODEL PAIRS --train TRAIN [--count 2000] [--kinds numbers tags …] [--seed 1] [--threads 1]

Inserts one to four things of a kind, or of all kinds, into each of `count` sources of PAIRS, translates them with
`keep`, and prints for each kind

    once       sentences in which each thing is there exactly once, exactly as it was
    balanced   sentences whose tags are balanced
    plain      chrF++ of the sources without things
    without    chrF++ of the translations with the things taken out
    encloses   pairs of tags that enclose a word which is linked with a word that they enclosed. Links are statistical,
               learned from TRAIN and the translations; pairs around words without any link are not counted.
    filled     chrF++ where things replace words instead: a word of the source and the word of the reference that is
               linked with it become the same thing

Sources that have such things already are left out.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path

import regex
import torch
from markdown_it import MarkdownIt

from regard.alignment.statistical import statistical_links
from regard.metrics.translation import chrf, group
from regard.tasks.registry import TRANSLATION, load_for
from regard.tasks.translation.anchors import find_anchors
from regard.tasks.translation.predictor import Translator
from regard.text.keep import KINDS, Keep
from regard.text.normal import tidy
from regard.text.pairs import Pair, read_pairs, read_references
from regard.text.placeables import Placeable, paired
from regard.text.placeholders import word_spans

PATTERN = r"[A-Z]{2}-\d{4}"
ALL = Keep(KINDS, (PATTERN,))
NAMES = ("Zelmira", "Quentin", "Oswaldo", "Ingeborg", "Fatoumata", "Brynhild", "Anatole", "Xochitl")


def _number(rng: random.Random) -> str:
    return rng.choice(("{}", "{}.5", "{},000", "{}/7", "-{}", "{}:30", "2026-11-{}")).format(rng.randrange(100, 10_000))


def _address(rng: random.Random) -> str:
    n = rng.randrange(100, 10_000)
    return rng.choice((f"https://example.org/a/{n}?b=c&d", f"www.site{n}.net", f"info{n}@example.org"))


def _placeholder(rng: random.Random) -> str:
    n = rng.randrange(100, 10_000)
    return rng.choice((f"{{name{n}}}", f"{{{n}}}", f"%(n{n})s", f"%{n}$s", f"{{{{ user.n{n} }}}}", f"${{v{n}}}"))


WORDS: dict[str, tuple[Callable[[random.Random], str], Keep]] = {
    "numbers": (_number, Keep(("numbers",))),
    "addresses": (_address, Keep(("addresses",))),
    "placeholders": (_placeholder, Keep(("markup",))),
    "names": (lambda rng: rng.choice(NAMES), Keep(("names",))),
    "pattern": (lambda rng: f"{rng.choice(('AB', 'QX', 'ZZ'))}-{rng.randrange(1000, 10_000)}", Keep((), (PATTERN,))),
}
PAIRS = {
    "tags": (("<b>", "</b>"), ("<i>", "</i>"), ('<a href="/x?y=1">', "</a>"), ('<span class="k">', "</span>")),
    "emphasis": (("**", "**"), ("*", "*"), ("~~", "~~"), ("[", "](http://example.org/z)")),
}
POINTS = ("<br/>", '<img src="x.png">')


@dataclass(frozen=True)
class Task:
    """A source with things, and the words that each pair encloses in the source without them."""

    source: str
    words: tuple[str, ...]
    enclosed: tuple[tuple[str, int, int], ...]  # opening, first word and last word + 1


def with_things(source: str, kind: str, rng: random.Random) -> Task:
    """Insert one to four things of a kind, or of all kinds."""
    spans = [(match.start(), match.end()) for match in regex.finditer(r"\S+", source)]
    before: dict[int, list[str]] = {}
    words: list[str] = []
    enclosed: list[tuple[str, int, int]] = []
    ends: dict[int, list[tuple[int, str, str]]] = {}
    taken: list[tuple[int, int]] = []
    for _ in range(rng.randint(1, 4)):
        chosen = rng.choice((*WORDS, *PAIRS)) if kind == "all" else kind
        if chosen in WORDS:
            text = WORDS[chosen][0](rng)
            place = rng.randrange(len(spans))
            begins = place == 0 or not source[spans[place - 1][1] - 1].isalnum()
            if text not in words and not (chosen == "names" and begins):
                words.append(text)
                before.setdefault(spans[place][0], []).append(text)
        elif rng.random() < 0.15 and chosen == "tags":
            before.setdefault(spans[rng.randrange(len(spans))][0], []).append(rng.choice(POINTS))
        else:
            first = rng.randrange(len(spans))
            last = min(len(spans), first + rng.randint(1, 3))
            # Nested, or apart: the same words twice, or words that overlap, would be no markup.
            if (
                all(last <= a or b <= first or (a <= first and last <= b) for a, b in taken)
                and (first, last) not in taken
            ):
                taken.append((first, last))
                opening, closing = rng.choice(PAIRS[chosen])
                if opening not in [each[0] for each in enclosed]:
                    enclosed.append((opening, first, last))
                    ends.setdefault(spans[first][0], []).append((-last, opening, ""))
                    ends.setdefault(_core_end(source, spans[last - 1]), []).append((-first, "", closing))
    return Task(_rendered(source, before, ends), tuple(words), tuple(enclosed))


def _core_end(source: str, span: tuple[int, int]) -> int:
    """Return where a word ends, without the punctuation after it."""
    return span[0] + len(source[slice(*span)].rstrip(".,;:?!\"'”’)")) or span[1]


def _rendered(source: str, before: dict[int, list[str]], ends: dict[int, list[tuple[int, str, str]]]) -> str:
    text = ""
    for offset in range(len(source) + 1):
        events = ends.get(offset, [])
        text += "".join(closing for _, _, closing in sorted(events) if closing)
        text += "".join(thing + " " for thing in before.get(offset, []))
        text += "".join(opening for _, opening, _ in sorted(events) if opening)
        text += source[offset : offset + 1]
    return text


class _Tags(HTMLParser):
    """Checks that tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.balanced = True

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "br":
            self.balanced &= bool(self.open) and self.open.pop() == tag


def is_balanced(task: Task, output: str) -> bool:
    """Return whether tags are balanced, by Python's parser, and whether Markdown has as many marks as in the source."""
    tags = _Tags()
    tags.feed(output)
    return tags.balanced and not tags.open and _marks(output) == _marks(task.source)


def _marks(text: str) -> Counter[str]:
    tokens = MarkdownIt("commonmark").enable("strikethrough").parseInline(text)[0].children or []
    return Counter(token.type for token in tokens if token.type.endswith("_open"))


def is_once(task: Task, output: str) -> bool:
    """Return whether each thing is in the output as often as in the source, exactly as it was."""
    words = all(len(regex.findall(rf"(?<![\w-]){regex.escape(word)}(?![\w-])", output)) == 1 for word in task.words)
    return words and _tag_texts(output) == _tag_texts(task.source)


def _tag_texts(text: str) -> Counter[str]:
    return Counter(regex.findall(r"<[^<>]*>|\*|~~|\[|\]\([^()]*\)", text))


def taken_out(output: str, task: Task) -> str:
    """Return an output without its things."""
    for word in sorted(task.words, key=len, reverse=True):
        output = output.replace(word, " ")
    output = regex.sub(r"<[^<>]*>|\*+|~~|\[|\]\([^()]*\)", lambda match: " " if match[0] in POINTS else "", output)
    return regex.sub(r" (?=[.,;:?!।])", "", tidy(output))


def enclosing(tasks: Sequence[Task], plain: Sequence[str], outputs: Sequence[str], train: Sequence[Pair]) -> str:
    """Return in how many pairs of tags an enclosed word is linked with a word that was enclosed in the source."""
    rows = []
    for task, source, output in zip(tasks, plain, outputs, strict=True):
        parts = ALL.parts(output)
        texts = ["" if isinstance(part, Placeable) else part for part in parts]
        target = "".join(texts)
        for opening, closing in paired(parts).items():
            thing = parts[opening]
            assert isinstance(thing, Placeable)
            first = next((each for each in task.enclosed if each[0] == thing.text), None)
            if first is not None:
                start, end = len("".join(texts[:opening])), len("".join(texts[:closing]))
                rows.append((source, target, first[1:], (start, end)))
    sentences = [*((pair.source, pair.target) for pair in train), *((row[0], row[1]) for row in rows)]
    links = statistical_links([(_words(source), _words(target)) for source, target in sentences])[len(train) :]
    judged = right = 0
    for (source, target, words, (start, end)), linked in zip(rows, links, strict=True):
        runs = [(match.start(), match.end()) for match in regex.finditer(r"\S+", source)][slice(*words)]
        inside = [i for i, span in enumerate(word_spans(source)) if runs[0][0] <= span[0] < runs[-1][1]]
        within = [i for i, span in enumerate(word_spans(target)) if start <= span[0] < end]
        wanted = {t for s, t in linked if s in inside}
        judged += bool(wanted)
        right += bool(wanted & set(within))
    return f"{100 * right / judged:.1f} % of {judged}" if judged else "–"


def _words(text: str) -> list[str]:
    return [text[start:end].lower() for start, end in word_spans(text)]


def filled(translator: Translator, kind: str, pairs: Sequence[Pair], train: Sequence[Pair], seed: int) -> float:
    """Return chrF++ where things replace linked words of source and reference."""
    make, keep = WORDS[kind]
    rng = random.Random(seed)
    sources, references = [], []
    for pair, anchors in zip(pairs, find_anchors([*pairs, *train], seed), strict=False):
        fitting = [anchor for anchor in anchors if anchor.source[0] > 0]
        if fitting:
            anchor, thing = rng.choice(fitting), make(rng)
            sources.append(pair.source[: anchor.source[0]] + thing + pair.source[anchor.source[1] :])
            references.append([pair.target[: anchor.target[0]] + thing + pair.target[anchor.target[1] :]])
    return chrf(translator.translate(sources, keep=keep), references)


def rows(translator: Translator, given: argparse.Namespace) -> Iterator[list[str]]:
    pairs = read_references([given.pairs], False, None)
    train = read_pairs([given.train], False, None).pairs if given.train else []
    sources, references = group(pairs)
    usable = [i for i, source in enumerate(sources) if ALL.parts(source) == [source] and " " in source]
    rng = random.Random(given.seed)
    drawn = [usable[i % len(usable)] for i in range(given.count)]
    plain = [tidy(sources[i]) for i in drawn]
    expected = [references[i] for i in drawn]
    distinct = list(dict.fromkeys(plain))
    base = dict(zip(distinct, translator.translate(distinct), strict=True))
    plain_score = chrf([base[source] for source in plain], expected)
    replaceable = [pair for pair in pairs if ALL.parts(pair.source) == [pair.source]]
    for kind in given.kinds or (*WORDS, *PAIRS, "all"):
        tasks = [with_things(source, kind, rng) for source in plain]
        keep = WORDS[kind][1] if kind in WORDS else ALL if kind == "all" else Keep(("markup",))
        outputs = translator.translate([task.source for task in tasks], keep=keep)
        once, balanced = (
            100 * sum(check(task, output) for task, output in zip(tasks, outputs, strict=True)) / len(tasks)
            for check in (is_once, is_balanced)
        )
        without = chrf([taken_out(output, task) for output, task in zip(outputs, tasks, strict=True)], expected)
        encloses = enclosing(tasks, plain, outputs, train) if kind in (*PAIRS, "all") and train else "–"
        replaced = f"{filled(translator, kind, replaceable, train, given.seed):.2f}" if kind in WORDS and train else "–"
        yield [kind, f"{once:.2f} %", f"{balanced:.2f} %", f"{plain_score:.2f}", f"{without:.2f}", encloses, replaced]
        wrong = (
            f"    {task.source!r} → {output!r}"
            for task, output in zip(tasks, outputs, strict=True)
            if not (is_once(task, output) and is_balanced(task, output))
        )
        print(*islice(wrong, given.show), sep="\n", end="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--train", type=Path, help="training pairs, from which links are learned")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--kinds", nargs="*", choices=(*WORDS, *PAIRS, "all"))
    parser.add_argument(
        "--show", type=int, default=3, help="print so many sentences in which a thing is not there once"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print("| kind | once | balanced | plain | without | encloses | filled |\n|---|---|---|---|---|---|---|")
    for row in rows(load_for(TRANSLATION, given.model, "cpu", "fp32"), given):
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
