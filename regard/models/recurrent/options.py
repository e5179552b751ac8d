"""The options of a recurrent translator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.core.checks import choices, fraction, whole_number
from regard.core.local import heads_of
from regard.core.pattern_text import parse
from regard.models.embedding import Tie
from regard.models.training_sizes import TrainingSizes


@dataclass(frozen=True)
class RecurrentOptions(TrainingSizes):
    """The options of a recurrent translator: the section `model` of a recipe."""

    kind: Literal["rnn"] = "rnn"
    cell: Literal["gru", "lstm"] = "gru"
    embedding: int = 256
    encoder: int = 256
    """features of each direction"""
    encoder_layers: int = 1
    bidirectional: bool = True
    decoder: int = 512
    decoder_layers: int = 1
    order: Literal["bahdanau", "luong"] = "luong"
    input_feeding: bool = True
    bridge: bool = True
    """start the decoder from the encoder's last state"""
    score: Literal["additive", "general", "dot", "scaled_dot", "cosine"] = "additive"
    attention: int = 512
    """hidden features of the additive score"""
    pattern: str = "full"
    """the source positions that a step may attend to, as text; `window(D)` is Luong's monotonic local attention"""
    predictive: int = 0
    """D of Luong's predictive local attention; 0: none"""
    normalizer: Literal["softmax", "sparsemax", "entmax15", "hard"] = "softmax"
    estimator: Literal["straight_through", "gumbel", "reinforce"] = "straight_through"
    """how hard attention is trained"""
    readout: int = 0
    """features of o; 0: as many as the embedding has if it is tied to the output layer, otherwise as the decoder"""
    tie: Tie = "target"
    """the output layer is the target embedding; with "all" the source embedding too"""
    dropout: float = 0.3

    def __post_init__(self) -> None:
        for name in ("embedding", "encoder", "encoder_layers", "decoder", "decoder_layers", "attention"):
            whole_number("model", name, getattr(self, name), minimum=1)
        for name in ("predictive", "readout"):
            whole_number("model", name, getattr(self, name))
        if self.tie != "none" and self.readout not in (0, self.embedding):
            raise ValueError(
                f"model.readout: expected {self.embedding}, as the embedding, which is the output layer too "
                f'(or tie = "none"), got {self.readout}'
            )
        fraction("model.dropout", self.dropout)
        choices("model", self)
        if (heads := heads_of(parse(self.pattern))) is not None:
            raise ValueError(f"model.pattern: expected one pattern, as there is one head, got {heads}")
