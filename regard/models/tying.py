"""Weight tying: embeddings that are also the output layer (Press and Wolf 2017)."""

from __future__ import annotations

from typing import Literal

from torch import nn

Tie = Literal["none", "target", "all"]


def tie(how: Tie, source: nn.Embedding, target: nn.Embedding, output: nn.Linear) -> None:
    """Initialize both embeddings with small numbers, and 0 for padding, and tie weights as `how` says.

    "target": the output layer is the target embedding; "all": the source embedding too.
    """
    for table in (source, target):
        nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
        nn.init.zeros_(table.weight[0].detach())
    if how != "none":
        output.weight = target.weight
    if how == "all":
        if source.num_embeddings != target.num_embeddings:
            raise ValueError(
                "tie: 'all' needs one vocabulary for both sides, "
                f"got {source.num_embeddings} source and {target.num_embeddings} target tokens"
            )
        source.weight = target.weight
