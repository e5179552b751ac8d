"""Small translators for search, and what their own forward pass says about a translation."""

import torch
from torch import Tensor

from regard.models.recurrent.model import Recurrent, RecurrentOptions
from regard.search.hypothesis import Hypothesis
from regard.text.vocabulary import END, START

SHAPES = [
    RecurrentOptions(embedding=4, encoder=3, decoder=6, attention=7, dropout=0),
    RecurrentOptions(embedding=4, encoder=3, decoder=6, order="bahdanau", attention=7, cell="lstm", dropout=0),
    RecurrentOptions(
        embedding=4,
        encoder=3,
        decoder=6,
        score="general",
        input_feeding=False,
        decoder_layers=2,
        tie="target",
        dropout=0,
    ),
]


def translator(vocabulary: int, seed: int = 0, shape: int = 0, sharp: float = 1.0) -> Recurrent:
    """Untrained, with weights large enough to have opinions."""
    torch.manual_seed(seed)
    model = Recurrent(SHAPES[shape], 9, vocabulary).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * sharp)
    return model


def sources(*lengths: int) -> tuple[Tensor, Tensor]:
    """Drawn sentences that end with the end token, padded."""
    source = torch.zeros(len(lengths), max(lengths), dtype=torch.int64)
    for row, length in enumerate(lengths):
        source[row, : length - 1] = torch.randint(3, 9, (length - 1,))
        source[row, length - 1] = END
    return source, torch.tensor(lengths)


@torch.no_grad()
def force_decoded(model: Recurrent, source: Tensor, tokens: list[int]) -> tuple[Tensor, Tensor]:
    """source [S] without padding, tokens [T] with the end token if there is one → log p [T], weights [T, S]."""
    target = torch.tensor([[START, *tokens[:-1]]])
    result = model(source[None], torch.tensor([len(source)]), target, weights=True)
    probabilities = model.logits(result.output).log_softmax(-1)[0]
    return probabilities[torch.arange(len(tokens)), torch.tensor(tokens)], result.weights[0]


def check_against_forward(model: Recurrent, source: Tensor, result: Hypothesis, penalty: float | None = 1.0) -> None:
    """Log-probability, score and weights are those of teacher forcing; with no penalty, the score may be any."""
    tokens = [*result.tokens, END] if result.finished else result.tokens
    probabilities, weights = force_decoded(model, source, tokens)
    assert END not in result.tokens and min(result.tokens, default=END) >= END
    torch.testing.assert_close(result.log_probability, probabilities.sum().item(), rtol=1e-4, atol=1e-4)
    if penalty is not None:
        expected = probabilities.sum().item() / len(tokens) ** penalty
        torch.testing.assert_close(result.score, expected, rtol=1e-4, atol=1e-4)
    assert result.weights.shape == (1, 1, *weights.shape)
    torch.testing.assert_close(torch.from_numpy(result.weights[0, 0]), weights.float())
