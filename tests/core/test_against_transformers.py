"""Longformer's and BigBird's patterns give what the sparse attentions of `transformers` give, gradients included."""

import numpy
import pytest
import torch

import regard

pytest.importorskip("transformers")
longformer_code = pytest.importorskip("transformers.models.longformer.modeling_longformer")
bigbird_code = pytest.importorskip("transformers.models.big_bird.modeling_big_bird")

HEADS, DIM = 3, 12


def random(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def randomize(layer):
    """Random numbers for all parameters, of a size that makes the weights neither flat nor sharp."""
    with torch.no_grad():
        for seed, parameter in enumerate(layer.parameters()):
            parameter.copy_(0.4 * random(*parameter.shape, seed=100 + seed))


def ours_like(layer, pattern):
    """MultiHead with the layer's projections, and none behind the heads: these layers have that elsewhere."""
    module = regard.MultiHead(DIM, HEADS, pattern=pattern).double()
    for name in ("query", "key", "value"):
        getattr(module, name).load_state_dict(getattr(layer, name).state_dict())
    with torch.no_grad():
        module.output.weight.copy_(torch.eye(DIM))
        module.output.bias.zero_()
    return module


def kernels(pattern, size, lengths):
    """The names of the kernels that compute the pattern over `size` positions."""
    heads = random(2, HEADS, size, DIM // HEADS)
    plan = regard.plan(heads, heads, heads, pattern=pattern, lengths=lengths)
    return {part.kernel.name for _, part in plan.by_head()} or {plan.kernel.name}


def assert_same(ours, theirs, real, ours_by, theirs_by):
    """The same outputs in real rows, and from these the same gradients with respect to `ours_by` and `theirs_by`."""
    torch.testing.assert_close(ours[real], theirs[real], rtol=0, atol=1e-10)
    upstream = random(*theirs.shape, seed=99) * real[..., None]
    gradients = torch.autograd.grad(ours, ours_by, upstream)
    expected = torch.autograd.grad(theirs, theirs_by, upstream)
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=1e-10)


def projections(layer):
    return [*layer.query.parameters(), *layer.key.parameters(), *layer.value.parameters()]


@pytest.fixture
def softmax_in_double(monkeypatch):
    """Longformer's code takes its softmax in float32, whatever it computes in; here it is to keep to float64."""

    def softmax(x, dim, dtype):
        return torch.softmax(x, dim)

    monkeypatch.setattr(torch.nn.functional, "softmax", softmax)


def longformer_layer(window):
    """Its code has projections of their own for global positions; here they are the local ones."""
    config = longformer_code.LongformerConfig(
        hidden_size=DIM, num_attention_heads=HEADS, attention_window=[window], attention_probs_dropout_prob=0.0
    )
    layer = longformer_code.LongformerSelfAttention(config, layer_id=0).double()
    randomize(layer)
    for name in ("query", "key", "value"):
        setattr(layer, f"{name}_global", getattr(layer, name))
    return layer


def run_longformer(layer, hidden, real, positions):
    """Its mask is −10000 for padding, 0 for local and 10000 for global positions."""
    mask = torch.where(real, 0.0, -10000.0).double()
    mask[:, positions] = 10000.0
    (context,) = layer(
        hidden,
        attention_mask=mask,
        is_index_masked=mask < 0,
        is_index_global_attn=mask > 0,
        is_global_attn=len(positions) > 0,
    )[:1]
    return context


@pytest.mark.usefixtures("softmax_in_double")
@pytest.mark.parametrize(
    ("positions", "padding"),  # their gradient is NaN where padding sees padding only
    [([], 0), ([], 2), ([0], 0), ([0], 11), ([0, 5, 12], 3), ([3, 4, 5, 6, 7], 11), ([0, 23], 0)],
)
@pytest.mark.parametrize(
    ("window", "size", "kernel"), [(4, 24, "dense"), (8, 24, "dense"), (8, 160, "tiles"), (40, 200, "tiles")]
)
def test_longformer(window, size, kernel, positions, padding):
    layer = longformer_layer(window)
    lengths = torch.tensor([size, size - padding])
    real = torch.arange(size) < lengths[:, None]
    pattern = regard.longformer(window, positions)
    module = ours_like(layer, pattern)
    hidden = random(2, size, DIM).requires_grad_()
    assert kernels(pattern, size, lengths) == {kernel}
    ours = module(hidden, lengths=lengths).context
    theirs = run_longformer(layer, hidden, real, positions)
    assert_same(ours, theirs, real, [hidden, *projections(module)], [hidden, *projections(layer)])


def bigbird_layer(block, random_blocks):
    config = bigbird_code.BigBirdConfig(
        hidden_size=DIM,
        num_attention_heads=HEADS,
        block_size=block,
        num_random_blocks=random_blocks,
        attention_probs_dropout_prob=0.0,
    )
    layer = bigbird_code.BigBirdBlockSparseAttention(config, seed=5).double().train()
    randomize(layer)
    return layer


def run_bigbird(layer, hidden, real, monkeypatch):
    """(context, weights, the random blocks that each head drew for all blocks of queries but the first and last)"""
    drawn = []
    draw = layer._bigbird_block_rand_mask_with_head

    def draw_and_keep(*arguments, **options):
        drawn.extend(draw(*arguments, **options))
        return drawn

    monkeypatch.setattr(layer, "_bigbird_block_rand_mask_with_head", draw_and_keep)
    blocked, band, queries, keys = bigbird_code.BigBirdModel.create_masks_for_block_sparse_attn(
        real.double(), layer.block_size
    )
    before = numpy.random.get_state()
    context, weights = layer(
        hidden, band_mask=band, from_mask=queries, to_mask=keys, from_blocked_mask=blocked, to_blocked_mask=blocked
    )
    numpy.random.set_state(before)
    return context, weights, drawn


def bigbird_table(drawn):
    """For each block of queries the blocks of keys that the code looks at; `drawn` is [blocks − 2, random blocks]."""
    last = len(drawn) + 1
    everything = list(range(last + 1))
    second = [0, 1, 2, last, *drawn[0]]
    middle = [[0, row - 1, row, row + 1, *drawn[row - 1], last] for row in range(2, last - 1)]
    second_last = [0, last - 2, last - 1, last, *drawn[-1]]
    table = [everything, second, *middle, second_last, everything]
    assert all(len(set(row)) == len(row) for row in table)  # a block looked at twice would count twice
    return [[int(column) for column in row] for row in table]


@pytest.mark.parametrize("padding", [0, 3, 11])
@pytest.mark.parametrize(
    ("block", "blocks", "random_blocks", "kernel"),
    [(4, 8, 1, "dense"), (2, 21, 8, "dense"), (16, 12, 2, "tiles"), (8, 21, 8, "tiles")],
)
def test_bigbird(block, blocks, random_blocks, kernel, padding, monkeypatch):
    size = block * blocks
    layer = bigbird_layer(block, random_blocks)
    lengths = torch.tensor([size, size - padding])
    real = torch.arange(size) < lengths[:, None]
    hidden = random(2, size, DIM).requires_grad_()
    theirs, their_weights, drawn = run_bigbird(layer, hidden, real, monkeypatch)
    pattern = regard.per_head([regard.Blocks(bigbird_table(rows), block) for rows in drawn])
    assert len(set(pattern.patterns)) == HEADS  # each head drew differently
    assert kernels(pattern, size, lengths) == {kernel}
    module = ours_like(layer, pattern)
    result = module(hidden, lengths=lengths, weights=True)
    weights, their_weights = (x.transpose(1, 2)[real] for x in (result.weights, their_weights))
    torch.testing.assert_close(weights, their_weights, rtol=0, atol=1e-10)
    assert_same(result.context, theirs, real, [hidden, *projections(module)], [hidden, *projections(layer)])
