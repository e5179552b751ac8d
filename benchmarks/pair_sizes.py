"""The size of a sentence pair: bytes as text and as token ids, tokens per side, and memory in a training.

    python benchmarks/pair_sizes.py train.en.gz train.de.gz --vocabulary 16000

docs/scale.md multiplies these by billions. Memory is that of the Python objects which `train` holds for the pairs,
plain and as varied for one epoch, as tracemalloc counts it.
"""

from __future__ import annotations

import argparse
import gzip
import tracemalloc
from pathlib import Path

from regard.config.recipe import TrainingRecipe
from regard.text.examples import Examples, Variety
from regard.text.pairs import read_pairs
from regard.text.vocabulary import learn

ID_BYTES, OFFSET_BYTES = 2, 8  # of a token id of a vocabulary up to 65,536, and of the place where a side begins


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--vocabulary", type=int, default=16_000, help="subwords of the joint vocabulary")
    given = parser.parse_args()
    pairs = read_pairs([given.source, given.target]).pairs
    texts = [text for pair in pairs for text in (pair.source, pair.target)]
    vocabulary = learn(texts, "subwords", given.vocabulary)
    joined = "".join(f"{text}\n" for text in texts).encode()
    del texts
    tracemalloc.start()
    again = read_pairs([given.source, given.target]).pairs
    training = TrainingRecipe()
    variety = Variety(training.segmentation_dropout, training.lower_case, training.no_stop, training.no_punctuation)
    examples = Examples(again, vocabulary, vocabulary, variety, 1)
    epoch = examples.epoch(0)
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    count = len(pairs)
    sources, targets = (sum(len(example[side]) + 1 for example in examples.plain) / count for side in (0, 1))
    assert len(epoch) == count
    print(f"{count:,} pairs, {given.vocabulary:,} subwords; per pair:")
    print(f"text             {len(joined) / count:8.0f} bytes, {len(gzip.compress(joined)) / count:.0f} as gzip")
    print(f"tokens           {sources:8.1f} source, {targets:.1f} target, each with the end token")
    print(f"as token ids     {ID_BYTES * (sources + targets) + 2 * OFFSET_BYTES:8.0f} bytes")
    print(f"in a training    {memory / count:8.0f} bytes")


if __name__ == "__main__":
    main()
