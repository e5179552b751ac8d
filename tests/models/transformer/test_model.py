"""The Transformer: steps say what teacher forcing says, whatever it is made of; its layers are torch's."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.core.patterns import Causal
from regard.models.transformer.layers import AttentionOptions, EncoderBlock, Shape
from regard.models.transformer.model import Transformer, TransformerOptions
from regard.models.transformer.step import TransformerState
from regard.search.beam import beam
from regard.search.force_decode import force_decode
from regard.search.hypothesis import LengthLimit

SMALL = TransformerOptions(width=16, heads=4, feedforward=24, encoder_layers=2, decoder_layers=2, dropout=0.0)
SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0], [3, 2, 0, 0, 0]])
LENGTHS = torch.tensor([5, 3, 2])
TARGET = torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9], [1, 3, 3, 4]])
KINDS: dict[str, TransformerOptions] = {
    "as it is": SMALL,
    "post-norm": replace(SMALL, norm="post", activation="gelu"),
    "learned positions": replace(SMALL, positions="learned", longest=3),
    "rotary": replace(SMALL, positions="rotary"),
    "alibi": replace(SMALL, positions="alibi"),
    "fewer keys": replace(
        SMALL,
        encoder=AttentionOptions(kv_heads=2),
        decoder=AttentionOptions(kv_heads=1),
        cross=AttentionOptions(kv_heads=2),
    ),
    "additive": replace(SMALL, **{name: AttentionOptions("additive") for name in ("encoder", "decoder", "cross")}),
    "cosine, sparse": replace(
        SMALL, decoder=AttentionOptions("cosine", normalizer="entmax15"), cross=AttentionOptions("general")
    ),
    "hard": replace(SMALL, cross=AttentionOptions(normalizer="hard")),
    "a pattern per head": replace(
        SMALL,
        encoder=AttentionOptions(pattern="per_head(window(1), strided(2), full, global(0))"),
        decoder=AttentionOptions(pattern="per_head(window(2), full, strided(2), full)"),
        cross=AttentionOptions(pattern="window(2)"),
    ),
}


def made(options: TransformerOptions) -> Transformer:
    torch.manual_seed(3)
    return Transformer(options, 12, 12).eval()


@pytest.mark.parametrize("name", KINDS)
def test_step_by_step_is_all_at_once(name: str) -> None:
    model = made(KINDS[name])
    with torch.no_grad():
        logits = model.logits(model(SOURCE, LENGTHS, TARGET).output)
        weights = model.attentions(SOURCE, LENGTHS, TARGET)["cross"]  # [B, L, H, T, S]
        state = model.start(SOURCE, LENGTHS)
        for t in range(TARGET.shape[1]):
            result, seen, state = model.step(state, TARGET[:, t : t + 1])
            torch.testing.assert_close(result[:, 0], logits[:, t], atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(seen[:, 0], weights[:, :, :, t], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_hypotheses_are_selected_and_sentences_kept(name: str) -> None:
    """Two hypotheses that change places, then two of the sentences: the same as forcing each by itself."""
    model = made(KINDS[name])
    with torch.no_grad():
        state = model.start(SOURCE, LENGTHS).select(torch.zeros(3, 2, dtype=torch.int64))
        _, _, state = model.step(state, torch.tensor([[1, 1]] * 3))
        _, _, state = model.step(state, torch.tensor([[4, 5]] * 3))
        swapped: TransformerState = state.select(torch.tensor([[1, 0]] * 3)).keep(torch.tensor([2, 0]))
        result, seen, _ = model.step(swapped, torch.tensor([[6, 6]] * 2))
        for row, sentence in enumerate((2, 0)):
            for slot, message in enumerate(([1, 5, 6], [1, 4, 6])):
                alone = model.start(SOURCE[sentence : sentence + 1], LENGTHS[sentence : sentence + 1])
                for token in message:
                    logits, weights, alone = model.step(alone, torch.tensor([[token]]))
                torch.testing.assert_close(result[row, slot], logits[0, 0], atol=1e-5, rtol=1e-5)
                torch.testing.assert_close(seen[row, slot], weights[0, 0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_it_learns_from_every_parameter(name: str) -> None:
    model = made(KINDS[name]).train()
    decoded = model(SOURCE, LENGTHS, TARGET)
    model.logits(decoded.output).square().sum().backward()  # type: ignore[no-untyped-call]
    grown = {name for name, x in model.named_parameters() if x.grad is not None and bool(x.grad.abs().sum() > 0)}
    still = {name for name, _ in model.named_parameters()} - grown
    # A key's bias moves all energies of a query alike, which softmax does not see.
    assert all(name.endswith("key.bias") for name in still), still


def test_padding_does_not_matter() -> None:
    model = made(SMALL)
    with torch.no_grad():
        together = model(SOURCE, LENGTHS, TARGET).output[1]
        alone = model(SOURCE[1:2, :3], LENGTHS[1:2], TARGET[1:2]).output[0]
    torch.testing.assert_close(together, alone)


def test_nothing_looks_ahead() -> None:
    model = made(KINDS["a pattern per head"])
    with torch.no_grad():
        one = model(SOURCE, LENGTHS, TARGET).output
        other = model(SOURCE, LENGTHS, TARGET.index_fill(1, torch.tensor([3]), 9)).output
    torch.testing.assert_close(one[:, :3], other[:, :3])
    assert not torch.allclose(one[:, 3], other[:, 3])


def test_beam_search_shows_what_forced_decoding_shows() -> None:
    model = made(SMALL)
    result = beam(model, SOURCE, LENGTHS, LengthLimit(0.0, 6.0), width=3)
    report = force_decode(model, SOURCE, LENGTHS, [best[0].output_tokens for best in result])
    for best, each in zip(result, report, strict=True):
        assert abs(best[0].log_probability - float(each.log_probabilities.sum())) < 1e-4
        torch.testing.assert_close(torch.tensor(best[0].weights), torch.tensor(each.weights), atol=1e-5, rtol=1e-5)
        assert each.weights.shape[:2] == (2, 4)
    rows = [each.self_attention["encoder"].sum(-1) for each in report]
    assert all(abs(row - 1).max() < 1e-5 for row in rows)


def test_scheduled_sampling_feeds_its_own_words() -> None:
    model = made(SMALL)
    with torch.no_grad():
        own = model.logits(model(SOURCE, LENGTHS, TARGET).output).argmax(-1)
        fed = torch.cat([TARGET[:, :1], own[:, :-1]], 1)
        torch.testing.assert_close(
            model(SOURCE, LENGTHS, TARGET, sampling=1.0).output, model(SOURCE, LENGTHS, fed).output
        )


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_block_is_torchs(norm: Any, causal: bool) -> None:
    torch.manual_seed(1)
    block = EncoderBlock(Shape(16, 4, 24, norm, "gelu", dropout=0.0), AttentionOptions(), causal)
    theirs = nn.TransformerEncoderLayer(16, 4, 24, 0.0, "gelu", batch_first=True, norm_first=norm == "pre")
    attend = block.attend
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(
            torch.cat([part.weight for part in (attend.query, attend.key, attend.value)])
        )
        theirs.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in (attend.query, attend.key, attend.value)]))
        for mine, other in (
            (attend.output, theirs.self_attn.out_proj),
            (block.feed_forward.inner, theirs.linear1),
            (block.feed_forward.outer, theirs.linear2),
            (block.around_attend.norm, theirs.norm1),
            (block.around_feed_forward.norm, theirs.norm2),
        ):
            other.load_state_dict(mine.state_dict())  # type: ignore[attr-defined]
    states = torch.randn(2, 5, 16)
    mask = ~Causal().mask(5, 5) if causal else None
    torch.testing.assert_close(block(states), theirs(states, mask), atol=1e-5, rtol=1e-5)


def test_the_aligning_head_is_what_training_is_told() -> None:
    model = made(SMALL)
    with torch.no_grad():
        report: Tensor | None = model(SOURCE, LENGTHS, TARGET, weights=True).weights
        assert report is not None
        torch.testing.assert_close(report, model.attentions(SOURCE, LENGTHS, TARGET)["cross"][:, 0, 0])


def test_one_table_for_all() -> None:
    model = Transformer(replace(SMALL, tie="all"), 12, 12)
    assert model.output.weight is model.embedded.embedding.weight
    assert model.output.weight is model.source_embeddings[0].weight  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="one vocabulary for both sides, got 11 source and 12 target"):
        Transformer(replace(SMALL, tie="all"), 11, 12)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"heads": 3}, "a divisor of dim = 16"),
        ({"positions": "rotary", "heads": 16}, "an even number of features"),
        ({"encoder": AttentionOptions(pattern="per_head(full, causal)")}, "one for each of 4 heads, got 2"),
    ],
)
def test_what_does_not_fit_is_said(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Transformer(replace(SMALL, **wrong), 12, 12)


@pytest.mark.parametrize(
    ("options", "width"),
    [
        ({}, 17),
        ({"cross": AttentionOptions("general")}, 2),
        ({"cross": AttentionOptions("additive")}, 2),
        ({"cross": AttentionOptions(normalizer="hard")}, 2),
        ({"cross": AttentionOptions(pattern="window(2)")}, 2),
        ({"decoder": AttentionOptions("general")}, 2),
    ],
)
def test_it_searches_in_16_bits(options: dict[str, AttentionOptions], width: int) -> None:
    model = Transformer(replace(SMALL, **options), 10, 30).eval()
    with torch.autocast("cpu", torch.bfloat16):
        result = beam(model, SOURCE, LENGTHS, LengthLimit(1, 3), width=width, best=width)
    assert [len(some) for some in result] == [width] * 3
