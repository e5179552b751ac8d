"""`python -m tools.sample.build` writes train.tsv, dev.frames.tsv and dev.free.tsv again, always the same.

Dev takes a tenth of the distinct sources, 22 % of it from the free sentences and the rest evenly from the frames.
Sources are tried in the order of their hash; one is taken when every word of it and of its references still stands in
at least three lines of train afterwards, and when no reference of it is also the translation of another source.
"""

from collections import Counter
from pathlib import Path

from regard.samples import DEV, TRAIN, folder, read
from tools.sample.frames import frame_pairs
from tools.sample.sentences import Pair, by_hash, words

SHARE = 0.10  # of the distinct sources, in dev
FREE = 0.22  # of dev, from the free sentences
MIN_TRAIN_LINES = 3  # lines of train that hold each word of dev

FREE_SENTENCES = Path(__file__).with_name("free.tsv")
"""the free sentences before the split"""


class Split:
    """The choice of dev: what train would still hold decides whether a source may leave it."""

    def __init__(self, pairs: list[Pair]) -> None:
        self.references: dict[str, list[str]] = {}
        for english, marathi in pairs:
            self.references.setdefault(english, []).append(marathi)
        self.train = Counter(word for pair in pairs for word in set(_words(*pair)))
        self.sources = Counter(marathi for marathis in self.references.values() for marathi in set(marathis))
        self.dev: list[str] = []

    def take(self, source: str) -> bool:
        """Move the source to dev if the rules allow it."""
        references = self.references[source]
        leaving = Counter(word for marathi in references for word in set(_words(source, marathi)))
        short = any(self.train[word] - leaving[word] < MIN_TRAIN_LINES for word in leaving)
        if short or any(self.sources[marathi] > 1 for marathi in references):
            return False
        self.train -= leaving
        self.dev.append(source)
        return True

    def take_some(self, sources: list[str], count: int) -> int:
        """Up to `count` of the sources, by hash; how many it were."""
        taken = 0
        for source in by_hash(sources):
            if taken == count:
                break
            taken += source not in self.dev and self.take(source)
        return taken


def _words(english: str, marathi: str) -> list[str]:
    return words(english) + words(marathi)


def split() -> dict[str, list[Pair]]:
    """The pairs of every file, by its name."""
    frames = frame_pairs()
    framed = [pair for pairs in frames.values() for pair in pairs]
    free = read(FREE_SENTENCES)
    chosen = Split(framed + free)
    wanted = round(SHARE * len(chosen.references))
    from_free = round(FREE * wanted)
    chosen.take_some([english for english, _ in free], from_free)
    fraction = (wanted - from_free) / len({english for english, _ in framed})
    owed = 0.0
    for pairs in frames.values():
        sources = [english for english, _ in pairs]
        owed += fraction * len(set(sources))
        owed -= chosen.take_some(sources, round(owed))
    dev = set(chosen.dev)
    return {
        TRAIN: [pair for pair in framed + free if pair[0] not in dev],
        DEV[0]: [pair for pair in framed if pair[0] in dev],
        DEV[1]: [pair for pair in free if pair[0] in dev],
    }


def text(pairs: list[Pair]) -> str:
    return "".join(f"{english}\t{marathi}\n" for english, marathi in pairs)


def write(into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for name, pairs in split().items():
        (into / name).write_text(text(pairs), encoding="utf-8")


if __name__ == "__main__":
    write(folder())
