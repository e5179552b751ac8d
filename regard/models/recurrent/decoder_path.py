"""The choice of how a recurrent decoder computes all steps of a target, in training.

In search there is no choice: the next token depends on the last step, so it goes step by step.
"""

from __future__ import annotations

from enum import Enum

import torch
from torch import Tensor

from regard.core.kernels.gpu.kernels import why_no_triton
from regard.models.recurrent.options import RecurrentOptions


class DecoderPath(Enum):
    """The implementations, which compute the same."""

    FUSED = "all steps as one autograd function of GPU kernels, which a CUDA graph can capture (fused_decoder.py)"
    ALL_AT_ONCE = "torch's recurrence over all steps, then attention with all queries at once"
    STEP_BY_STEP = "one step after another, left to autograd (step.py)"


def decoder_path(options: RecurrentOptions, states: Tensor, sampling: float) -> DecoderPath:
    """Return how to decode, given the encoder's states and the fraction of scheduled sampling."""
    if sampling > 0:  # the input of a step may be the prediction of the last one
        return DecoderPath.STEP_BY_STEP
    if not options.input_feeding:  # the RNN's inputs are all known
        return DecoderPath.ALL_AT_ONCE
    if why_not_fused(options) is None and states.dtype is torch.float32 and why_no_triton(states.device) is None:
        return DecoderPath.FUSED
    return DecoderPath.STEP_BY_STEP


def why_not_fused(options: RecurrentOptions) -> str | None:
    """Return why fused_decoder.py does not implement such a decoder; None if it does."""
    implemented = {
        "cell": "gru", "decoder_layers": 1, "order": "luong", "input_feeding": True,
        "score": "additive", "normalizer": "softmax", "pattern": "full", "predictive": 0,
    }  # fmt: skip
    for name, value in implemented.items():
        if getattr(options, name) != value:
            return f"it needs {name} = {value!r}, got {getattr(options, name)!r}"
    return None
