"""The recurrent translator written out, one sentence and one step at a time, with the weights of a model."""

from dataclasses import dataclass
from typing import Any

import torch
from entmax import entmax15, sparsemax
from hypothesis import strategies as st
from torch import Tensor

from regard.models.recurrent.model import Recurrent, RecurrentOptions

VOCABULARY = 11
START, END = 1, 2


@st.composite
def options(draw, **fixed: Any) -> RecurrentOptions:  # type: ignore[no-untyped-def]
    """Any options that are possible, small."""
    chosen: dict[str, Any] = {
        "cell": draw(st.sampled_from(["gru", "lstm"])),
        "embedding": 4,
        "encoder_layers": draw(st.integers(1, 2)),
        "bidirectional": draw(st.booleans()),
        "decoder_layers": draw(st.integers(1, 3)),
        "order": draw(st.sampled_from(["luong", "bahdanau"])),
        "input_feeding": draw(st.booleans()),
        "bridge": draw(st.booleans()),
        "score": draw(st.sampled_from(["additive", "general", "dot", "scaled_dot", "cosine"])),
        "attention": 7,
        "pattern": draw(st.sampled_from(["full", "window(2)"])),
        "predictive": draw(st.sampled_from([0, 2])),
        "normalizer": draw(st.sampled_from(["softmax", "sparsemax", "entmax15", "hard"])),
        "estimator": draw(st.sampled_from(["straight_through", "gumbel", "reinforce"])),
        "tie": draw(st.sampled_from(["none", "target", "all"])),
        "dropout": 0.0,
    }
    chosen |= fixed
    chosen["encoder"] = 3 if chosen["bidirectional"] else 6
    chosen["decoder"] = draw(st.sampled_from([5, 6])) if chosen["score"] in ("additive", "general") else 6
    return RecurrentOptions(**chosen)


@dataclass
class Data:
    source: Tensor
    lengths: Tensor
    target: Tensor
    targets: list[int]
    """how long each target is, START counted"""

    @property
    def real(self) -> Tensor:
        """bool [B, T]"""
        return torch.arange(self.target.shape[1]) < torch.tensor(self.targets)[:, None]

    def alone(self, row: int) -> "Data":
        """One sentence, without padding."""
        n, t = int(self.lengths[row]), self.targets[row]
        rows = slice(row, row + 1)
        return Data(self.source[rows, :n], self.lengths[rows], self.target[rows, :t], [t])


def data(sources: tuple[int, ...] = (5, 2, 4), targets: tuple[int, ...] = (3, 6, 4)) -> Data:
    """Sentences of these lengths, padded."""
    source = torch.zeros(len(sources), max(sources), dtype=torch.int64)
    target = torch.zeros(len(targets), max(targets), dtype=torch.int64)
    for row, (n, t) in enumerate(zip(sources, targets, strict=True)):
        source[row, :n] = torch.randint(3, VOCABULARY, (n,))
        source[row, n - 1] = END
        target[row, :t] = torch.randint(3, VOCABULARY, (t,))
        target[row, 0] = START
    return Data(source, torch.tensor(sources), target, list(targets))


def spread(model: Recurrent) -> Recurrent:
    """Larger weights than at the start, so that what is looked at differs."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.6)
    return model


def translated(model: Recurrent, source: Tensor, target: Tensor, own: bool = False) -> tuple[Tensor, Tensor]:
    """source [S], target [T] of one sentence → o [T, O], weights [T, S]. `own`: fed with its own predictions."""
    chosen = model.options
    layers = range(chosen.decoder_layers)
    states, hidden = _encoded(model, source)
    state = [_begun(model, hidden, layer) for layer in layers]
    fed = states.new_zeros(model.combine.out_features)
    outputs, rows = [], []
    for t in range(len(target)):
        token = target[t] if t == 0 or not own else model.output(fed).argmax()
        seen = None
        if chosen.order == "bahdanau":
            seen, row = _attended(model, state[-1][0], states, t)
        x = model.embedding.weight[token]
        if chosen.input_feeding:
            x = torch.cat([x, fed if seen is None else seen])
        for layer in layers:
            weights = [
                getattr(model.recurrence, f"{name}_l{layer}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            ]
            if chosen.cell == "gru":
                state[layer] = (torch.gru_cell(x[None], state[layer][0][None], *weights)[0],)
            else:
                new = torch.lstm_cell(x[None], [part[None] for part in state[layer]], *weights)
                state[layer] = (new[0][0], new[1][0])
            x = state[layer][0]
        if seen is None:
            seen, row = _attended(model, x, states, t)
        fed = torch.tanh(model.combine.weight @ torch.cat([x, seen]) + model.combine.bias)
        outputs.append(fed)
        rows.append(row)
    return torch.stack(outputs), torch.stack(rows)


def _encoded(model: Recurrent, source: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """states [S, E]; the last of each layer, each [layers, E]."""
    states, last = model.encoder.recurrence(model.encoder.embedding.weight[source][None])
    parts = last if isinstance(last, tuple) else (last,)
    return states[0], tuple(part[:, 0].reshape(model.options.encoder_layers, -1) for part in parts)


def _begun(model: Recurrent, hidden: tuple[Tensor, ...], layer: int) -> tuple[Tensor, ...]:
    if model.bridge is None:
        return tuple(part.new_zeros(model.options.decoder) for part in hidden)
    from_layer = min(layer, model.options.encoder_layers - 1)
    return tuple(torch.tanh(model.bridge.weight @ part[from_layer] + model.bridge.bias) for part in hidden)


def _attended(model: Recurrent, state: Tensor, states: Tensor, t: int) -> tuple[Tensor, Tensor]:
    """state [H], states [S, E] → context [E], weights [S]."""
    chosen, score = model.options, model.attend.score
    query = state if model.query is None else model.query.weight @ state
    if chosen.score == "additive":
        energies = torch.tanh(query + states @ score.key_weight.T) @ score.vector
    elif chosen.score == "cosine":
        energies = score.log_tau.exp() * torch.cosine_similarity(query[None], states)
    else:
        energies = states @ query / (len(query) ** 0.5 if chosen.score == "scaled_dot" else 1)
    places = torch.arange(len(states))
    near, gain = torch.ones(len(states), dtype=torch.bool), torch.ones_like(energies)
    if chosen.pattern == "window(2)":
        near = (places - t).abs() <= 2
    if chosen.predictive:
        local = model.attend.pattern
        centre = len(states) * torch.sigmoid(local.outer.weight[0] @ torch.tanh(local.inner.weight @ query))
        near = near & ((places - centre).abs() <= chosen.predictive)
        gain = torch.exp(-((places - centre) ** 2) / (2 * (chosen.predictive / 2) ** 2))
    weights = torch.zeros_like(energies)
    if near.any():
        weights = weights.masked_scatter(near, _normalized(chosen, energies[near])) * gain
    return weights @ states, weights


def _normalized(chosen: RecurrentOptions, energies: Tensor) -> Tensor:
    if chosen.normalizer == "hard":
        hard = torch.nn.functional.one_hot(energies.argmax(), len(energies)).to(energies)
        soft = energies.softmax(0)
        return hard if chosen.estimator == "reinforce" else hard + soft - soft.detach()
    return {"softmax": torch.softmax, "sparsemax": sparsemax, "entmax15": entmax15}[chosen.normalizer](energies, 0)
