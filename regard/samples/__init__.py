"""A small English–Marathi corpus, written for this project by tools/sample."""

from importlib.resources import files
from pathlib import Path

TRAIN = "train.tsv"
DEV = ("dev.frames.tsv", "dev.free.tsv")  # together the dev part; scored separately
LINKS = ("links.src", "links.tgt", "links.talp")  # word links: tokens, tokens, i-j sure, ipj possible


def folder() -> Path:
    """The folder that holds the parts named above."""
    return Path(str(files(__name__))) / "english-marathi"


def read(path: Path) -> list[tuple[str, str]]:
    """The pairs of a file with one English sentence, a tab and its Marathi translation a line."""
    pairs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        english, tab, marathi = line.partition("\t")
        if not tab or "\t" in marathi:
            raise ValueError(f"{path}, line {number}: expected English, one tab, Marathi; got {line!r}")
        pairs.append((english, marathi))
    return pairs
