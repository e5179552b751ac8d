"""Attention gives what torch's scaled_dot_product_attention and nn.MultiheadAttention give, gradients included."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import regard
from regard import Blocks, Causal, Dilated, Full, Global, Strided, Window

SHAPES = pytest.mark.parametrize(("queries", "keys"), [(5, 7), (9, 4), (1, 1), (200, 200), (150, 190)])


def random(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def states(queries, keys, *, batch=2, heads=3, kv_heads=None, dim=8, value_dim=None):
    """query [B, H, T, D], key [B, H or kv_heads, S, D], value [B, H or kv_heads, S, Dv], to be differentiated."""
    kv_heads = heads if kv_heads is None else kv_heads
    query = random(batch, heads, queries, dim, seed=1)
    key = random(batch, kv_heads, keys, dim, seed=2)
    value = random(batch, kv_heads, keys, dim if value_dim is None else value_dim, seed=3)
    return [x.requires_grad_() for x in (query, key, value)]


def assert_same(ours, theirs, inputs):
    """The same outputs, and the same gradients of all inputs."""
    assert ours.shape == theirs.shape
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    upstream = random(*theirs.shape, seed=99)
    gradients = torch.autograd.grad(ours, inputs, upstream, retain_graph=True)
    expected = torch.autograd.grad(theirs, inputs, upstream, retain_graph=True)
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=1e-10)


def grid(queries, keys, position=0):
    return torch.arange(position, position + queries)[:, None], torch.arange(keys)[None, :]


def some_mask(*shape):
    """About half of the pairs, and the first key for everyone: torch gives NaN where there is nothing to look at."""
    mask = random(*shape, seed=7) > 0
    mask[..., 0] = True
    return mask


@SHAPES
def test_full(queries, keys):
    query, key, value = inputs = states(queries, keys)
    assert_same(regard.attention(query, key, value).context, scaled_dot_product_attention(query, key, value), inputs)


@SHAPES
def test_causal(queries, keys):
    query, key, value = inputs = states(queries, keys)
    context = regard.attention(query, key, value, pattern=Causal()).context
    assert_same(context, scaled_dot_product_attention(query, key, value, is_causal=True), inputs)


@SHAPES
@pytest.mark.parametrize("leading", [(2, 3), (2, 1), (1, 3), ()])
def test_bool_mask(queries, keys, leading):
    query, key, value = inputs = states(queries, keys)
    mask = some_mask(*leading, queries, keys)
    context = regard.attention(query, key, value, allowed=mask).context
    assert_same(context, scaled_dot_product_attention(query, key, value, attn_mask=mask), inputs)


@SHAPES
@pytest.mark.parametrize("leading", [(2, 3), (2, 1), (1, 3), ()])
@pytest.mark.parametrize("trained", [False, True])
def test_float_mask(queries, keys, leading, trained):
    inputs = states(queries, keys)
    query, key, value = inputs
    bias = random(*leading, queries, keys, seed=4).requires_grad_(trained)
    context = regard.attention(query, key, value, bias=bias).context
    expected = scaled_dot_product_attention(query, key, value, attn_mask=bias)
    assert_same(context, expected, [*inputs, bias] if trained else inputs)


@SHAPES
def test_float_mask_with_hidden_pairs(queries, keys):
    query, key, value = inputs = states(queries, keys)
    bias = random(2, 1, queries, keys, seed=4).masked_fill(~some_mask(2, 1, queries, keys), -torch.inf)
    context = regard.attention(query, key, value, bias=bias).context
    assert_same(context, scaled_dot_product_attention(query, key, value, attn_mask=bias), inputs)


@SHAPES
def test_values_of_another_width(queries, keys):
    query, key, value = inputs = states(queries, keys, value_dim=5)
    assert_same(regard.attention(query, key, value).context, scaled_dot_product_attention(query, key, value), inputs)


@SHAPES
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_grouped_heads(queries, keys, kv_heads):
    query, key, value = inputs = states(queries, keys, heads=4, kv_heads=kv_heads)
    repeated = [x.repeat_interleave(4 // kv_heads, 1) for x in (key, value)]
    context = regard.attention(query, *repeated).context
    assert_same(context, scaled_dot_product_attention(query, key, value, enable_gqa=True), inputs)


@pytest.mark.parametrize("size", [6, 200])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_multihead_with_grouped_heads(size, kv_heads):
    module = regard.MultiHead(16, 4, kv_heads=kv_heads, pattern=Causal()).double()
    hidden = random(2, size, 16).requires_grad_()
    query, key, value = (
        projected.unflatten(-1, (-1, 4)).transpose(1, 2)
        for projected in (module.query(hidden), module.key(hidden), module.value(hidden))
    )
    heads = scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
    expected = module.output(heads.transpose(1, 2).flatten(-2))
    assert_same(module(hidden).context, expected, [hidden, *module.parameters()])


@pytest.mark.parametrize("leading", [(), (3,), (2, 1, 3)])
@pytest.mark.parametrize("queries", [4, 160])
def test_leading_dims(leading, queries):
    query, key, value = inputs = [random(*leading, queries, 8, seed=seed).requires_grad_() for seed in range(3)]
    for pattern, mask in ((Full(), None), (Window(5), within(5)(*grid(queries, queries)))):
        context = regard.attention(query, key, value, pattern=pattern).context
        assert_same(context, scaled_dot_product_attention(query, key, value, attn_mask=mask), inputs)


def within(before, after=None):
    after = before if after is None else after
    return lambda i, j: (j >= i - before) & (j <= i + after)


def every(step):
    return lambda i, j: (i - j) % step == 0


def at(*positions):
    chosen = torch.tensor(positions)
    return lambda i, j: torch.isin(i, chosen) | torch.isin(j, chosen)


def both(*masks):
    return lambda i, j: torch.stack([mask(i, j) for mask in masks]).all(0)


def either(*masks):
    return lambda i, j: torch.stack([mask(i, j) for mask in masks]).any(0)


def causal(i, j):
    return j <= i


def in_blocks(table, block):
    return lambda i, j: table[i // block, j // block]


TABLE = torch.rand(10, 10, generator=torch.Generator().manual_seed(5)) < 0.4
TABLE |= torch.eye(10, dtype=torch.bool)
PATTERNS = [
    ("tiles", Window(16), within(16)),
    ("tiles", Window(0), within(0)),
    ("tiles", Window(70, 0), within(70, 0)),
    ("tiles", Window(3, None), within(3, 300)),
    ("tiles", Window(40) & Causal(), both(within(40), causal)),
    ("tiles", regard.longformer(32, [0, 150, 299]), either(within(16), at(0, 150, 299))),
    ("tiles", (Window(9) | Global([0])) & Causal(), both(either(within(9), at(0)), causal)),
    ("tiles", Blocks(TABLE, 30), in_blocks(TABLE, 30)),
    ("regrouped", Strided(7), every(7)),
    ("regrouped", Strided(64), every(64)),
    ("regrouped", Strided(7) & Causal(), both(every(7), causal)),
    ("regrouped", Dilated(5, 4), both(every(4), within(20))),
    ("regrouped", Dilated(20, 6) & Window(50, 30), both(every(6), within(50, 30))),
    ("union", Window(8) | Strided(16), either(within(8), every(16))),
    ("union", regard.longformer(16, [0, 77], stride=32), either(within(8), at(0, 77), every(32))),
    ("union", Strided(12) | Strided(35), either(every(12), every(35))),
    (
        "union",
        Window(8) & Causal() | Dilated(6, 8) | Global([0]),
        either(both(within(8), causal), both(every(8), within(48)), at(0)),
    ),
]
EVERY_PATTERN = pytest.mark.parametrize(
    ("kernel", "pattern", "mask"), PATTERNS, ids=[str(pattern)[:40] for _, pattern, _ in PATTERNS]
)


@EVERY_PATTERN
def test_pattern(kernel, pattern, mask):
    query, key, value = inputs = states(300, 300, heads=2)
    assert regard.plan(query, key, value, pattern=pattern).kernel.name == kernel
    context = regard.attention(query, key, value, pattern=pattern).context
    expected = scaled_dot_product_attention(query, key, value, attn_mask=mask(*grid(300, 300)))
    assert_same(context, expected, inputs)


@EVERY_PATTERN
def test_pattern_over_few_pairs(kernel, pattern, mask):
    query, key, value = inputs = states(90, 120, heads=2)
    assert regard.plan(query, key, value, pattern=pattern).kernel.name == "dense"
    context = regard.attention(query, key, value, pattern=pattern).context
    expected = scaled_dot_product_attention(query, key, value, attn_mask=mask(*grid(90, 120)))
    assert_same(context, expected, inputs)


@EVERY_PATTERN
def test_pattern_from_a_position_on(kernel, pattern, mask):
    query, key, value = inputs = states(140, 300, heads=2)
    assert regard.plan(query, key, value, pattern=pattern, position=160).kernel.name == kernel
    context = regard.attention(query, key, value, pattern=pattern, position=160).context
    expected = scaled_dot_product_attention(query, key, value, attn_mask=mask(*grid(140, 300, position=160)))
    assert_same(context, expected, inputs)


@EVERY_PATTERN
def test_pattern_with_padding(kernel, pattern, mask):
    query, key, value = inputs = states(300, 300, heads=2)
    lengths = torch.tensor([300, 181])
    assert regard.plan(query, key, value, pattern=pattern, lengths=lengths).kernel.name == kernel
    context = regard.attention(query, key, value, pattern=pattern, lengths=lengths).context
    real = torch.arange(300) < lengths[:, None, None, None]
    seen = mask(*grid(300, 300)) & real
    empty = ~seen.any(-1, keepdim=True)
    expected = scaled_dot_product_attention(query, key, value, attn_mask=seen | empty).masked_fill(empty, 0)
    assert_same(context, expected, inputs)


@EVERY_PATTERN
def test_pattern_with_bias_and_mask_of_pairs(kernel, pattern, mask):
    inputs = states(300, 300, heads=2)
    bias = random(1, 2, 300, 300, seed=4).requires_grad_()
    hidden = random(2, 1, 300, 300, seed=5) > 1
    result = regard.attention(*inputs, pattern=pattern, bias=bias, allowed=~hidden)
    seen = mask(*grid(300, 300)) & ~hidden
    empty = ~seen.any(-1, keepdim=True)
    float_mask = torch.where(seen, bias, torch.where(empty, 0.0, -torch.inf))
    expected = scaled_dot_product_attention(*inputs, attn_mask=float_mask).masked_fill(empty, 0)
    assert_same(result.context, expected, [*inputs, bias])


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        ("tiles", "window(3) | random(1, 30, 1)"),
        ("regrouped", "strided(4) & random(1, 30, 1)"),
        ("union", "strided(4) | random(1, 30, 1)"),
    ],
)
def test_random_blocks_where_a_stride_does_not_divide_the_keys(kernel, text):
    query, key, value = inputs = states(990, 990, batch=1, heads=1, dim=4)
    pattern = regard.parse_pattern(text)
    assert regard.plan(query, key, value, pattern=pattern).kernel.name == kernel
    seen = pattern.mask(990, 990)  # what is drawn is the pattern's own
    empty = ~seen.any(-1, keepdim=True)
    expected = scaled_dot_product_attention(query, key, value, attn_mask=seen | empty).masked_fill(empty, 0)
    assert_same(regard.attention(query, key, value, pattern=pattern).context, expected, inputs)


def test_pattern_per_head():
    chosen = [*PATTERNS, PATTERNS[2], PATTERNS[0]]  # heads with the same pattern are computed together
    query, key, value = inputs = states(300, 300, heads=len(chosen), dim=4)
    pattern = regard.per_head([pattern for _, pattern, _ in chosen])
    plan = regard.plan(query, key, value, pattern=pattern)
    assert plan.kernel.name == "heads"
    assert [part.kernel.name for _, part in plan.by_head()] == [kernel for kernel, _, _ in PATTERNS]
    masks = torch.stack([mask(*grid(300, 300)) for _, _, mask in chosen])
    context = regard.attention(query, key, value, pattern=pattern).context
    assert_same(context, scaled_dot_product_attention(query, key, value, attn_mask=masks), inputs)


def theirs_and_ours(dim, heads, key_dim=None, value_dim=None, **options):
    """nn.MultiheadAttention with random weights, and MultiHead with the same."""
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(
        dim, heads, kdim=key_dim, vdim=value_dim, batch_first=True, dtype=torch.float64
    )
    ours = regard.MultiHead(dim, heads, key_dim=key_dim, value_dim=value_dim, **options).double()
    with torch.no_grad():
        for bias in (theirs.in_proj_bias, theirs.out_proj.bias):
            bias.normal_()
        if theirs.in_proj_weight is None:
            weights = [theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight]
        else:
            weights = theirs.in_proj_weight.chunk(3)
        mine = (ours.query, ours.key, ours.value)
        for projection, weight, bias in zip(mine, weights, theirs.in_proj_bias.chunk(3), strict=True):
            projection.weight.copy_(weight)
            projection.bias.copy_(bias)
        ours.output.load_state_dict(theirs.out_proj.state_dict())
    return theirs, ours


@pytest.mark.parametrize("size", [6, 200])
@pytest.mark.parametrize("padded", [False, True])
def test_self_attention_module(size, padded):
    theirs, ours = theirs_and_ours(16, 4)
    hidden = random(3, size, 16).requires_grad_()
    lengths = torch.tensor([size, size // 2, 1]) if padded else None
    padding = torch.arange(size) >= lengths[:, None] if padded else None
    result = ours(hidden, lengths=lengths, weights=True)
    expected, weights = theirs(hidden, hidden, hidden, key_padding_mask=padding, average_attn_weights=False)
    torch.testing.assert_close(result.weights, weights, rtol=0, atol=1e-10)
    assert_same(result.context, expected, [hidden])
    loss, expected_loss = (output.square().sum() for output in (result.context, expected))
    projections = (ours.query, ours.key, ours.value)
    for name in ("weight", "bias"):
        parameters = [getattr(projection, name) for projection in projections]
        gradient = torch.cat(torch.autograd.grad(loss, parameters, retain_graph=True))
        joined = getattr(theirs, f"in_proj_{name}")
        (expected_gradient,) = torch.autograd.grad(expected_loss, joined, retain_graph=True)
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize(("queries", "keys"), [(5, 7), (150, 200)])
@pytest.mark.parametrize(("key_dim", "value_dim"), [(16, 16), (10, 10), (10, 6)])
def test_cross_attention_module(queries, keys, key_dim, value_dim):
    theirs, ours = theirs_and_ours(16, 2, key_dim, value_dim)
    query = random(2, queries, 16, seed=1).requires_grad_()
    key = random(2, keys, key_dim, seed=2).requires_grad_()
    value = random(2, keys, value_dim, seed=3).requires_grad_()
    lengths = torch.tensor([keys, keys - 3])
    padding = torch.arange(keys) >= lengths[:, None]
    result = ours(query, key, value, lengths=lengths, weights=True)
    expected, weights = theirs(query, key, value, key_padding_mask=padding, average_attn_weights=False)
    torch.testing.assert_close(result.weights, weights, rtol=0, atol=1e-10)
    assert_same(result.context, expected, [query, key, value])


@pytest.mark.parametrize(("size", "kernel"), [(10, "small dense"), (200, "tiles")])
def test_module_with_a_mask_and_padding(size, kernel):
    pattern = Window(4, 0)
    theirs, ours = theirs_and_ours(16, 4, pattern=pattern)
    hidden = random(2, size, 16).requires_grad_()
    lengths = torch.tensor([size, size - 2])
    padding = torch.arange(size) >= lengths[:, None]
    heads = hidden.unflatten(-1, (4, 4)).transpose(1, 2)
    assert regard.plan(heads, heads, heads, pattern=pattern, lengths=lengths).kernel.name == kernel
    hidden_pairs = ~within(4, 0)(*grid(size, size))
    expected, _ = theirs(hidden, hidden, hidden, key_padding_mask=padding, attn_mask=hidden_pairs)
    assert_same(ours(hidden, lengths=lengths).context, expected, [hidden])
