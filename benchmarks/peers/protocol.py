"""What the scripts of all peers share: the command line, the clock over updates, and the line they print."""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # not every peer has torch
    from torch import nn

Measured = Callable[[argparse.Namespace], dict[str, float]]

MODELS = ("rnn", "transformer")
FILES = ("train.src", "train.tgt", "dev.src", "dev.tgt", "vocab.txt")
"""Pieces joined by single blanks, one sentence a line; in the vocabulary, one piece a line."""


class Meter:
    """Tokens and seconds of `updates` updates after `warmup` updates, read off training code that is not ours.

    The clock runs from the end of one optimizer step to the end of another, so it holds everything a loop does for an
    update: making the batch, forward, backward, clipping, the step and its bookkeeping. Nothing before the first update
    and nothing after the last one is in it.
    """

    def __init__(self, updates: int, warmup: int) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        if updates < 1 or warmup < 1:
            raise ValueError(f"updates and warmup: got {updates} and {warmup}, expected at least 1 of each")
        self.updates = updates
        self.warmup = warmup
        self.done = 0
        self.tokens = 0
        self.padded = 0
        self.started = 0.0
        self.seconds = 0.0
        self.hook = register_optimizer_step_post_hook(lambda *_: self._updated())

    @property
    def total(self) -> int:
        return self.warmup + self.updates

    def batch(self, tokens: int, padded: int) -> None:
        """Call before each update with its batch: target tokens with the end token, and positions with padding."""
        if self.warmup <= self.done < self.total:
            self.tokens += tokens
            self.padded += padded

    def _updated(self) -> None:
        now = time.perf_counter()
        self.done += 1
        if self.done == self.warmup:
            self.started = now
        if self.done == self.total:
            self.seconds = now - self.started

    def report(self, parameters: int) -> dict[str, float]:
        self.hook.remove()
        if self.done < self.total:
            raise RuntimeError(f"training stopped after {self.done} of {self.total} updates")
        return {
            "tokens": self.tokens,
            "seconds": self.seconds,
            "tokens_per_second": self.tokens / self.seconds,
            "padded_tokens": self.padded,
            "parameters": parameters,
        }


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def translated(lengths: list[int], steps: int, seconds: float) -> dict[str, float]:
    """The report of a translation, once it is sure that every sentence took all the steps."""
    if set(lengths) != {steps}:
        raise RuntimeError(f"expected {steps} tokens in every translation, got lengths {sorted(set(lengths))}")
    return {"sentences": len(lengths), "seconds": seconds, "sentences_per_second": len(lengths) / seconds}


def main(
    description: str,
    train: Measured | None,
    translate: Measured,
    options: Mapping[str, tuple[str, ...]] | None = None,
    models: tuple[str, ...] = MODELS,
) -> None:
    """Read the command line, measure, print one line of JSON.

    `train`: None, if the peer does not train. `options`: further ones, with their choices.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)

    if train is not None:
        training = commands.add_parser("train", help="real target tokens a second")
        training.set_defaults(measure=train)
        training.add_argument("--updates", type=int, default=100, help="updates that are measured")
        training.add_argument("--warmup", type=int, default=10, help="updates before those")

    translation = commands.add_parser("translate", help="sentences a second")
    translation.set_defaults(measure=translate)
    translation.add_argument("--sentences", default="dev.src", help="a file of the folder")
    translation.add_argument("--beam", type=int, default=5)
    translation.add_argument("--steps", type=int, default=16, help="target tokens that every sentence is forced to")

    for command in commands.choices.values():
        command.add_argument("--model", choices=models, default=models[0])
        command.add_argument("--folder", type=Path, required=True, help=f"holds {', '.join(FILES)}")
        command.add_argument("--batch", type=int, default=64, help="sentences")
        command.add_argument("--threads", type=int, default=2)
        command.add_argument("--seed", type=int, default=1)
        for name, choices in (options or {}).items():
            command.add_argument(f"--{name}", choices=choices, default=choices[0])

    arguments = parser.parse_args()
    missing = [name for name in FILES if not (arguments.folder / name).is_file()]
    if missing:
        parser.error(f"--folder: {arguments.folder} holds no {', '.join(missing)}")
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(arguments.threads)
    print(json.dumps(arguments.measure(arguments)))
