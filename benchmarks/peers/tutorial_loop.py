"""The training loop that tutorials on translation with attention teach, on English → Marathi, in plain PyTorch.

    PYTHONPATH=benchmarks python -m peers.tutorial_loop --train train.tsv --updates 20

Words are cut at blanks, after the English is lower-cased and ASCII punctuation and digits are taken out; the
vocabulary holds every word of the corpus. Both sides of every batch are padded to the longest sentence of the corpus.
A GRU of 1024 reads the source; the decoder goes over the target position by position, in Python, under teacher forcing:

    c = Σⱼ softmaxⱼ(vᵀ tanh(W₁ hⱼ + W₂ s)) hⱼ,   s ← GRU([c; e(y)], s),   logits = W s + b

The keys W₁ hⱼ are projected, the output layer applied and the loss masked at every step, as those loops do. Padding of
the source is not masked. Adam, no clipping, no dropout.
"""

from __future__ import annotations

import argparse
import json
import string
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, TensorDataset

from peers.protocol import Meter, parameters

PADDING = 0
BATCH = 64
EMBEDDING = 256
UNITS = 1024
DROPPED = str.maketrans("", "", string.punctuation + string.digits + "०१२३४५६७८९")


def words(sentence: str) -> list[str]:
    return ["<start>", *sentence.translate(DROPPED).split(), "<end>"]


def numbers(sentences: list[list[str]]) -> tuple[Tensor, int]:
    """(sentences, longest) word numbers, and the size of the vocabulary with padding."""
    vocabulary = sorted({word for sentence in sentences for word in sentence})
    number = {word: index for index, word in enumerate(vocabulary, start=PADDING + 1)}
    rows = [torch.tensor([number[word] for word in sentence]) for sentence in sentences]
    return pad_sequence(rows, batch_first=True, padding_value=PADDING), len(vocabulary) + 1


class Encoder(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, EMBEDDING)
        self.gru = nn.GRU(EMBEDDING, UNITS, batch_first=True)

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, source) → states (batch, source, units), the last one (1, batch, units)"""
        states, last = self.gru(self.embedding(source))
        return states, last


class Decoder(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, EMBEDDING)
        self.keys = nn.Linear(UNITS, UNITS)
        self.query = nn.Linear(UNITS, UNITS)
        self.score = nn.Linear(UNITS, 1)
        self.gru = nn.GRU(UNITS + EMBEDDING, UNITS, batch_first=True)
        self.output = nn.Linear(UNITS, vocabulary)

    def forward(self, word: Tensor, state: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """One step: word (batch, 1), state (1, batch, units) → logits (batch, vocabulary), state"""
        scores = self.score(torch.tanh(self.keys(states) + self.query(state.transpose(0, 1))))
        context = (scores.softmax(1) * states).sum(1, keepdim=True)
        hidden, state = self.gru(torch.cat([context, self.embedding(word)], -1), state)
        return self.output(hidden.squeeze(1)), state


def endless(data: TensorDataset) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield from DataLoader(data, batch_size=BATCH, shuffle=True, drop_last=True)


def measure(train: Path, updates: int, warmup: int, threads: int = 2, seed: int = 1) -> dict[str, float]:
    """Real target tokens a second: words and the end token, of `updates` updates after `warmup` updates."""
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    with train.open(encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t") for line in lines]
    sources, source_words = numbers([words(source.lower()) for source, _ in pairs])
    targets, target_words = numbers([words(target) for _, target in pairs])

    encoder, decoder = Encoder(source_words), Decoder(target_words)
    model = nn.ModuleList([encoder, decoder])
    optimizer = torch.optim.Adam(model.parameters())
    meter = Meter(updates, warmup)
    batches = endless(TensorDataset(sources, targets))
    for _ in range(meter.total):
        source, target = next(batches)
        labels = target[:, 1:]
        meter.batch(int((labels != PADDING).sum()), labels.numel())

        states, state = encoder(source)
        loss = torch.zeros(())
        for position in range(1, target.shape[1]):
            logits, state = decoder(target[:, position - 1 : position], state, states)
            each = cross_entropy(logits, target[:, position], reduction="none")
            loss = loss + (each * (target[:, position] != PADDING)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return meter.report(parameters(model))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="English<TAB>Marathi, one pair a line")
    parser.add_argument("--updates", type=int, default=10, help="updates that are measured")
    parser.add_argument("--warmup", type=int, default=2, help="updates before those")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    print(json.dumps(measure(**vars(parser.parse_args()))))
