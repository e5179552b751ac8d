"""Attention gives what the attention layers of Keras 3 (on torch) give, gradients included."""

import inspect
import os

import pytest
import torch

import regard

os.environ["KERAS_BACKEND"] = "torch"
os.environ.setdefault("KERAS_TORCH_DEVICE", "cpu")
keras = pytest.importorskip("keras", minversion="3.0")
if keras.backend.backend() != "torch":
    pytest.skip("Keras runs on another backend", allow_module_level=True)

SINGLE = 1e-5
"""On torch, Keras multiplies matrices in float32, whatever the layer's dtype."""
SHAPES = pytest.mark.parametrize(("queries", "keys"), [(5, 7), (9, 4), (150, 170)])
CAUSAL = pytest.mark.parametrize("causal", [False, True])
MASKED = pytest.mark.parametrize("masked", [False, True])


def random(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def states(queries, keys, dim=6, value_dim=None):
    """query, key and value [2, T or S, D], to be differentiated."""
    shapes = ((queries, dim), (keys, dim), (keys, dim if value_dim is None else value_dim))
    return [random(2, *shape, seed=seed).requires_grad_() for seed, shape in enumerate(shapes, start=1)]


def randomize(layer):
    """Random numbers for all weights: Keras starts scales at 1 and biases at 0."""
    for seed, variable in enumerate(layer.weights):
        variable.assign(random(*variable.shape, seed=100 + seed))


def assert_same(ours, theirs, inputs, tolerance=1e-10):
    """The same outputs, and the same gradients of all inputs."""
    theirs = theirs.double()
    close = {"rtol": tolerance, "atol": tolerance}
    torch.testing.assert_close(ours, theirs, **close)
    upstream = random(*theirs.shape, seed=99)
    gradients = torch.autograd.grad(ours, inputs, upstream, retain_graph=True)
    expected = torch.autograd.grad(theirs, inputs, upstream, retain_graph=True)
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, **close)


def some_mask(positions, seed=7):
    """[2, positions]: some of them, the first always: Keras looks at everything where there is nothing to look at."""
    mask = random(2, positions, seed=seed) > -0.5
    mask[:, 0] = True
    return mask


def built(kind, inputs, **options):
    """A Keras layer in float64 with random weights."""
    layer = kind(dtype="float64", **options)
    layer.build([tuple(x.shape) for x in inputs])
    randomize(layer)
    return layer


def call(layer, query, key, value, value_mask=None, causal=False, query_mask=None):
    """(context, weights) of a Keras layer, which takes its inputs in the order query, value, key."""
    mask = None if value_mask is None and query_mask is None else [query_mask, value_mask]
    return layer([query, value, key], mask=mask, use_causal_mask=causal, return_attention_scores=True)


def pattern_for(causal):
    return regard.Causal() if causal else regard.Full()


@SHAPES
@CAUSAL
@MASKED
@pytest.mark.parametrize("value_dim", [6, 3])
def test_dot(queries, keys, causal, masked, value_dim):
    query, key, value = inputs = states(queries, keys, value_dim=value_dim)
    layer = built(keras.layers.Attention, inputs)
    mask = some_mask(keys) if masked else None
    expected, expected_weights = call(layer, query, key, value, mask, causal)
    allowed = mask[:, None, :] if masked else None
    result = regard.attention(
        query, key, value, score="dot", pattern=pattern_for(causal), allowed=allowed, weights=True
    )
    assert_same(result.context, expected, inputs, SINGLE)
    assert_same(result.weights, expected_weights, [query, key], SINGLE)


@SHAPES
@CAUSAL
def test_learned_scale(queries, keys, causal):
    query, key, value = inputs = states(queries, keys)
    layer = built(keras.layers.Attention, inputs, use_scale=True)
    scale = layer.scale.value
    expected, expected_weights = call(layer, query, key, value, causal=causal)
    result = regard.attention(query * scale, key, value, score="dot", pattern=pattern_for(causal), weights=True)
    assert_same(result.context, expected, [*inputs, scale], SINGLE)
    assert_same(result.weights, expected_weights, [query, key, scale], SINGLE)


@SHAPES
@CAUSAL
def test_lengths(queries, keys, causal):
    query, key, value = inputs = states(queries, keys)
    lengths = torch.tensor([keys, keys // 2])
    layer = built(keras.layers.Attention, inputs)
    expected, _ = call(layer, query, key, value, torch.arange(keys) < lengths[:, None], causal)
    context = regard.attention(query, key, value, score="dot", pattern=pattern_for(causal), lengths=lengths).context
    assert_same(context, expected, inputs, SINGLE)


@SHAPES
@pytest.mark.parametrize("kind", [keras.layers.Attention, keras.layers.AdditiveAttention], ids=["dot", "additive"])
def test_masked_queries_get_nothing(queries, keys, kind):
    query, key, value = inputs = states(queries, keys)
    layer = built(kind, inputs)
    seen, looking = some_mask(keys), some_mask(queries, seed=8)
    expected, _ = call(layer, query, key, value, seen, query_mask=looking)
    score = additive_like(layer) if kind is keras.layers.AdditiveAttention else regard.Dot()
    allowed = looking[:, :, None] & seen[:, None, :]
    result = regard.attention(query, key, value, score=score, allowed=allowed)
    assert_same(result.context, expected, inputs, SINGLE)


def additive_like(layer):
    """Keras's additive attention has neither W nor U, and calls v its scale."""
    score = regard.Additive(None, None, layer.scale.shape[0]).double()
    with torch.no_grad():
        score.vector.copy_(layer.scale.value)
    return score


@SHAPES
@CAUSAL
@MASKED
@pytest.mark.parametrize("value_dim", [6, 3])
def test_additive(queries, keys, causal, masked, value_dim):
    query, key, value = inputs = states(queries, keys, value_dim=value_dim)
    layer = built(keras.layers.AdditiveAttention, inputs)
    score = additive_like(layer)
    mask = some_mask(keys) if masked else None
    expected, expected_weights = call(layer, query, key, value, mask, causal)
    allowed = mask[:, None, :] if masked else None
    result = regard.attention(
        query, key, value, score=score, pattern=pattern_for(causal), allowed=allowed, weights=True
    )
    assert_same(result.context, expected, inputs, SINGLE)
    assert_same(result.weights, expected_weights, [query, key], SINGLE)
    (gradient,) = torch.autograd.grad(result.context.square().sum(), score.vector)
    (expected_gradient,) = torch.autograd.grad(expected.square().sum(), layer.scale.value)
    torch.testing.assert_close(gradient, expected_gradient, rtol=SINGLE, atol=SINGLE)


def grouped_and_ours(kv_heads, sliding_window, pattern, query, value):
    """Keras's grouped-query attention with random weights, and MultiHead with the same."""
    dim, heads = query.shape[-1], 4
    options = {} if sliding_window is None else {"sliding_window": sliding_window}
    layer = keras.layers.GroupQueryAttention(dim // heads, heads, kv_heads, dtype="float64", **options)
    layer.build(tuple(query.shape), tuple(value.shape))
    randomize(layer)
    module = regard.MultiHead(dim, heads, kv_heads=kv_heads, pattern=pattern).double()
    kernels = {variable.path.split("/", 1)[1]: variable.value.detach() for variable in layer.weights}
    with torch.no_grad():
        for name, projection in (("query", module.query), ("key", module.key), ("value", module.value)):
            projection.weight.copy_(kernels[f"{name}/kernel"].flatten(1).mT)  # [dim, heads, width]
            projection.bias.copy_(kernels[f"{name}/bias"].flatten())
        module.output.weight.copy_(kernels["attention_output/kernel"].flatten(0, 1).mT)  # [heads, width, dim]
        module.output.bias.copy_(kernels["attention_output/bias"])
    return layer, module


GROUPED = pytest.mark.parametrize("kv_heads", [1, 2, 4])
WINDOWED = pytest.mark.skipif(
    "sliding_window" not in inspect.signature(keras.layers.GroupQueryAttention).parameters,
    reason="this Keras has no sliding_window",
)
SIZES = pytest.mark.parametrize(("queries", "keys"), [(9, 9), (12, 10), (180, 160)])


@SIZES
@GROUPED
@CAUSAL
@MASKED
def test_grouped_heads(queries, keys, kv_heads, causal, masked):
    query, value, _ = states(queries, keys, dim=8)
    layer, module = grouped_and_ours(kv_heads, None, pattern_for(causal), query, value)
    mask = some_mask(keys) if masked else None
    expected, expected_weights = layer(
        query, value, value_mask=mask, use_causal_mask=causal, return_attention_scores=True
    )
    result = module(query, value, allowed=mask[:, None, None, :] if masked else None, weights=True)
    assert_same(result.context, expected, [query, value])
    assert_same(result.weights, expected_weights, [query, value])


@WINDOWED
@SIZES
@GROUPED
@CAUSAL
@pytest.mark.parametrize("sliding_window", [3, 6, 40])
def test_sliding_window(queries, keys, kv_heads, causal, sliding_window):
    query, value, _ = states(queries, keys, dim=8)
    pattern = regard.Window.from_keras(sliding_window) & pattern_for(causal)
    layer, module = grouped_and_ours(kv_heads, sliding_window, pattern, query, value)
    expected, expected_weights = layer(query, value, use_causal_mask=causal, return_attention_scores=True)
    result = module(query, value, weights=True)
    seen = module.attention.pattern.mask(queries, keys).any(-1)  # elsewhere Keras looks at everything
    assert_same(result.context[:, seen], expected[:, seen], [query, value])
    assert_same(result.weights[:, :, seen], expected_weights[:, :, seen], [query, value])


@WINDOWED
@pytest.mark.parametrize("sliding_window", [1, 2, 5])
def test_sliding_window_by_weights(sliding_window):
    query, value, _ = states(11, 11, dim=8)
    layer, _ = grouped_and_ours(4, sliding_window, regard.Full(), query, value)
    _, weights = layer(query, value, return_attention_scores=True)
    assert torch.equal(weights[0, 0] > 0, regard.Window.from_keras(sliding_window).mask(11, 11))
