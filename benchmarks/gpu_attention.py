"""Attention on a GPU: Regard beside torch's own, FlexAttention and compiled code, and beside what the chip could do.

    python benchmarks/gpu_attention.py [--only WORK ...] [--runs 20] [--json FILE]

- additive: from q', k', B = 64, T = S = 128, H = 512, D = 512; forward alone, in tanh a second, and forward + backward
  beside torch.compile of the definition. Regard computes tanh in
  float32 whatever torch's float32 precision is, and products with values as pairs of bfloat16 ("high") or exactly
  ("highest"); the peer's products are in TF32 or not.
- strided, dilated, window, longformer, longformer with a stride, bigbird, dense: bf16, 16 heads of 64 features; forward
  + backward beside FlexAttention, of dense beside the best of torch's own.
- hard: hard attention by three estimators over the window, beside the softmax over it.
- million: Longformer over 1,048,576 positions, 4 heads, beside the same code over 65,536.
- roofs: what the chip does of products in bf16, of copying, and of tanh by its special-function unit. Beside each work
  stands what it makes of them: products of pairs that the pattern keeps, or tanh.

Every result is checked first against the definition in float64, from the same rounded inputs: ‖x − right‖ / ‖right‖ of
the context and of each gradient. Times are medians of event timings of alternating runs; before each, the device is
kept busy so that it never waits for Python.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from gpu_timing import Look, apart, both_ways, introduced, peak, timed
from spin_device import spin
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from regard import Additive, Dilated, Full, Hard, Pattern, Strided, Window, attention, bigbird, longformer, plan
from regard.core.reference import reference

SHAPE = {"batch": 64, "queries": 128, "keys": 128, "hidden": 512, "features": 512}
WINDOW, GLOBALS, RANDOM, BLOCK, STRIDE, REACH, GAP = 256, 64, 3, 128, 64, 64, 8
PATTERNS: dict[str, tuple[Pattern, int, float]] = {
    "strided": (Strided(STRIDE), 16384, 20.0),
    "dilated": (Dilated(REACH, GAP), 16384, 0.0),
    "window": (Window(WINDOW), 65536, 0.98),
    "longformer": (longformer(2 * WINDOW, range(GLOBALS)), 65536, 2.0),
    "longformer with a stride": (longformer(2 * WINDOW, range(GLOBALS), STRIDE), 16384, 0.0),
    "bigbird": (bigbird(2 * WINDOW, range(GLOBALS), RANDOM, BLOCK), 65536, 4.0),
}
"""pattern, positions, how many times FlexAttention's speed it should have; 0: nothing is asked"""


@dataclass
class Line:
    """One line of the table."""

    work: str
    ours_ms: float
    peer: str
    peer_ms: float
    bar: str
    met: bool
    errors: dict[str, float]
    more: str = ""

    def __str__(self) -> str:
        errors = ", ".join(f"{name} {error:.1e}" for name, error in self.errors.items())
        ratio = f": {self.peer_ms / self.ours_ms:.2f}× as fast" if self.peer else ""
        peer = f", {self.peer} {self.peer_ms:.3f} ms" if self.peer else ""
        verdict = "met" if self.met else "NOT MET"
        message = f" ({self.bar}: {verdict}; errors {errors})" if self.bar else ""
        return f"{self.work:34} {self.ours_ms:.3f} ms{peer}{ratio}{self.more}{message}"


# Roofs


def roofs(runs: int) -> list[Line]:
    side = 8192
    one, two = (torch.randn(side, side, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    long = torch.empty(1 << 30, device="cuda", dtype=torch.int8)
    copied = torch.empty_like(long)
    drawn = torch.rand(1 << 19, device="cuda")
    result = timed(
        {
            "bf16 product": lambda: one @ two,
            "copy": lambda: copied.copy_(long),
            "tanh": lambda: spin[(len(drawn) // 128,)](drawn, drawn, 1000, 128),
        },
        runs,
    )
    rates = {
        "bf16 product": f"{2 * side**3 / result['bf16 product'] / 1e9:.0f} TFLOP/s",
        "copy": f"{2 * len(long) / result['copy'] / 1e9:.2f} TB/s",
        "tanh": f"{4000 * len(drawn) / result['tanh'] / 1e9:.2f} T tanh/s",
    }
    return [Line(f"roof: {name}", ms, "", 0.0, "", True, {}, f", {rates[name]}") for name, ms in result.items()]


# Additive


def defined(query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> Tensor:
    """softmax(vᵀ tanh(q + k)) value, as it is written"""
    energies = (torch.tanh(query[:, :, None] + key[:, None]) * vector).sum(-1)
    return torch.softmax(energies, -1) @ value


def ours_additive(query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> Tensor:
    score = Additive(None, None, query.shape[-1])
    del score.vector
    score.vector = vector  # type: ignore[assignment]
    return attention(query, key, value, score=score).context


def additive_inputs(
    batch: int, queries: int, keys: int, hidden: int, features: int, dtype: torch.dtype
) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = ((batch, queries, hidden), (batch, keys, hidden), (hidden,), (batch, keys, features))
    inputs = [torch.randn(shape, device="cuda").to(dtype) for shape in shapes]
    inputs[2] = inputs[2] / hidden**0.5
    return [x.requires_grad_() for x in inputs]


def right_additive(inputs: list[Tensor], given: Tensor) -> list[Tensor]:
    """In float64, a few rows of the batch at a time."""
    parts = []
    vector = inputs[2].detach().double()
    for row in range(len(inputs[0])):
        some = [x.detach()[row : row + 1].double().requires_grad_() for x in (inputs[0], inputs[1], inputs[3])]
        own = vector.clone().requires_grad_()
        context = defined(some[0], some[1], own, some[2])
        parts.append(
            (
                context.detach(),
                *torch.autograd.grad(context, [some[0], some[1], own, some[2]], given[row : row + 1].double()),
            )
        )
    contexts, queries, keys, vectors, values = zip(*parts, strict=True)
    return [torch.cat(contexts), torch.cat(queries), torch.cat(keys), torch.stack(vectors).sum(0), torch.cat(values)]


def additive(runs: int) -> list[Line]:
    lines = []
    tanhs = SHAPE["batch"] * SHAPE["queries"] * SHAPE["keys"] * SHAPE["hidden"]
    compiled = torch.compile(defined)
    cases = (
        ("fp32", torch.float32, "high", 1e-3, 2.5, 4.0),
        ("bf16", torch.bfloat16, "high", 5e-3, 3.0, 4.0),
        ("fp32, highest", torch.float32, "highest", 1e-5, 1.5, 2.5),
    )
    for name, dtype, precision, most, rate_bar, bar in cases:
        torch.set_float32_matmul_precision(precision)
        inputs = additive_inputs(**SHAPE, dtype=dtype)
        given = torch.randn_like(inputs[3][:, : SHAPE["queries"]])
        right = right_additive(inputs, given)
        ours, theirs = both_ways(ours_additive, inputs, given), both_ways(compiled, inputs, given)
        errors = apart(ours(), right, ("context", "q", "k", "v", "value"))
        with torch.no_grad():
            forward = timed({"ours": partial(ours_additive, *inputs), "peer": partial(compiled, *inputs)}, runs)
        rate = tanhs / forward["ours"] / 1e9
        lines.append(
            Line(
                f"additive forward, {name}",
                forward["ours"],
                "torch.compile",
                forward["peer"],
                f"≥ {rate_bar} T tanh/s, error ≤ {most}",
                rate >= rate_bar and errors["context"] <= most,
                errors,
                f", {rate:.2f} T tanh/s",
            )
        )
        result = timed({"ours": ours, "peer": theirs}, runs)
        used, allowed = peak(ours), 3 * sum(x.numel() * x.element_size() for x in (*inputs, given))
        lines.append(
            Line(
                f"additive both ways, {name}",
                result["ours"],
                "torch.compile",
                result["peer"],
                f"≥ {bar} × its speed, memory ≤ {allowed >> 20} MiB",
                result["peer"] >= bar * result["ours"] and used <= allowed and max(errors.values()) <= most,
                errors,
                f", {used >> 20} MiB (compiled {peak(theirs) >> 20} MiB)",
            )
        )
    torch.set_float32_matmul_precision("highest")
    return lines


def long_additive(runs: int) -> list[Line]:
    """8 rows, 1,024 queries and keys, 256 hidden features, float32, beside the definition as it is written."""
    inputs = additive_inputs(8, 1024, 1024, 256, 256, torch.float32)
    given = torch.randn_like(inputs[3])
    ours, theirs = both_ways(ours_additive, inputs, given), both_ways(defined, inputs, given)
    errors = apart(ours(), right_additive(inputs, given), ("context", "q", "k", "v", "value"))
    result = timed({"ours": ours, "peer": theirs}, max(3, runs // 4))
    more = f", {peak(ours) >> 20} MiB (as it is written {peak(theirs) >> 20} MiB)"
    return [Line("long additive both ways, fp32", result["ours"], "as written", result["peer"], "", True, errors, more)]


# Patterns


def heads(positions: int, count: int = 16, features: int = 64) -> list[Tensor]:
    torch.manual_seed(0)
    shape = (1, count, positions, features)
    return [torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]


def flex_look(name: str) -> Look:
    """FlexAttention of the same pattern; its mask is asked of ours, block by block where it is drawn at random."""
    pattern, positions, _ = PATTERNS[name]
    strides = name in ("strided", "dilated", "longformer with a stride")
    blocks = -(-positions // BLOCK)
    drawn = torch.zeros(blocks, blocks, dtype=torch.bool, device="cuda")
    random = [part for part in getattr(pattern, "patterns", ()) if type(part).__name__ == "RandomBlocks"]
    for part in random:
        at = torch.arange(blocks, device="cuda") * BLOCK
        for first in range(0, blocks, 64):
            drawn[first : first + 64] = part.allows(at[first : first + 64, None], at[None], positions)

    def mask(_batch: Tensor, _head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        far = (i - j).abs()
        if name == "strided":
            return far % STRIDE == 0
        if name == "dilated":
            return (far % GAP == 0) & (far <= REACH * GAP)
        if name == "window":
            return far <= WINDOW
        near = (far <= WINDOW) | (i < GLOBALS) | (j < GLOBALS)
        if name == "longformer with a stride":
            return near | (far % STRIDE == 0)
        return near | drawn[i // BLOCK, j // BLOCK] if random else near

    # Compiling the mask of a stride does not come to an end; at its length the mask can be made as it is.
    block_mask = create_block_mask(mask, None, None, positions, positions, device="cuda", _compile=not strides)
    torch.compiler.reset()  # or it would be compiled for any length, because it has met another, and be slower
    compiled = torch.compile(flex_attention)
    return lambda q, k, v: compiled(q, k, v, block_mask=block_mask)


def ours_look(pattern: Pattern) -> Look:
    return lambda q, k, v: attention(q, k, v, pattern=pattern).context


def pattern_errors(pattern: Pattern, positions: int) -> dict[str, float]:
    """At a length at which the definition in float64 fits: 4,096 positions, 2 heads."""
    inputs = [x[:, :2, :4096].detach().requires_grad_() for x in heads(positions)]
    given = torch.randn_like(inputs[0])
    exact = [x.detach().double().requires_grad_() for x in inputs]
    mask = pattern.mask(4096, 4096, 0, torch.device("cuda"))
    right = both_ways(lambda q, k, v: scaled_dot_product_attention(q, k, v, attn_mask=mask), exact, given.double())()
    return apart(both_ways(ours_look(pattern), inputs, given)(), right, ("context", "q", "k", "v"))


def visible_pairs(pattern: Pattern, positions: int) -> int:
    """Pairs that the pattern keeps."""
    j, total = torch.arange(positions, device="cuda"), 0
    for first in range(0, positions, 1024):
        i = torch.arange(first, min(first + 1024, positions), device="cuda")
        total += int(pattern.allows(i[:, None], j[None], positions).sum())
    return total


def patterns(name: str, runs: int) -> list[Line]:
    pattern, positions, bar = PATTERNS[name]
    errors = pattern_errors(pattern, positions)
    inputs = heads(positions)
    given = torch.randn_like(inputs[0])
    looks = {"ours": ours_look(pattern), "peer": flex_look(name)}
    with torch.no_grad():
        apart_here = apart([looks["ours"](*inputs)], [looks["peer"](*inputs).double()], ("FlexAttention",))
        forward = timed({side: partial(look, *inputs) for side, look in looks.items()}, runs)
    result = timed({side: both_ways(look, inputs, given) for side, look in looks.items()}, runs)
    work = 14 * visible_pairs(pattern, positions) * inputs[0].shape[1] * inputs[0].shape[-1]
    more = f"; forward {forward['ours']:.3f} and {forward['peer']:.3f} ms; {work / result['ours'] / 1e9:.0f} TFLOP/s"
    met = result["peer"] >= bar * result["ours"]
    return [
        Line(
            name,
            result["ours"],
            "FlexAttention",
            result["peer"],
            f"≥ {bar} × its speed" if bar else "",
            met,
            errors | apart_here,
            more,
        )
    ]


def hard(runs: int) -> list[Line]:
    """Hard attention over the window: argmax, a sample with a relaxed gradient, a sample that is rewarded."""
    pattern, positions, _ = PATTERNS["window"]
    inputs = heads(positions)
    given = torch.randn_like(inputs[0])
    soft, lines = both_ways(ours_look(pattern), inputs, given), []
    for estimator in ("straight_through", "gumbel", "reinforce"):
        normalizer = Hard(estimator, sample=estimator != "straight_through")  # type: ignore[arg-type]

        def run(normalizer: Hard = normalizer) -> Any:
            result = attention(*inputs, pattern=pattern, normalizer=normalizer)
            assert result.log_probability is not None
            return torch.autograd.grad((result.context * given).sum() + result.log_probability.sum(), inputs)

        result = timed({"ours": run, "soft": soft}, max(3, runs // 2))
        short = [x[:, :2, :4096].detach() for x in inputs]
        asked = plan(*short, pattern=pattern, normalizer=normalizer)
        chosen, right = asked.run().chosen, reference(asked.request).chosen
        assert chosen is not None and right is not None
        fraction = float((chosen == right).float().mean())
        more = f", softmax {result['soft']:.3f} ms; {fraction:.3%} of its choices are the reference's"
        lines.append(Line(f"hard, {estimator}", result["ours"], "", 0.0, "", True, {}, more))
    return lines


def dense(runs: int) -> list[Line]:
    lines = []
    for features in (64, 128):
        inputs = heads(16384, features=features)
        given = torch.randn_like(inputs[0])
        sides = {"ours": both_ways(ours_look(Full()), inputs, given)}
        for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):

            def look(q: Tensor, k: Tensor, v: Tensor, backend: SDPBackend = backend) -> Tensor:
                with sdpa_kernel(backend):
                    return scaled_dot_product_attention(q, k, v)

            sides[backend.name] = both_ways(look, inputs, given)
        result = timed(sides, runs)
        best = min((name for name in result if name != "ours"), key=result.__getitem__)
        met = result[best] >= 0.97 * result["ours"]
        more = f", {14 * 16384**2 * features * 16 / result['ours'] / 1e9:.0f} TFLOP/s"
        lines.append(
            Line(f"dense, {features} features", result["ours"], best, result[best], "≥ 0.97 × its speed", met, {}, more)
        )
    return lines


def million(runs: int) -> list[Line]:
    pattern = PATTERNS["longformer"][0]
    times = {}
    for positions in (65536, 1048576):
        inputs = heads(positions, count=4)
        run = both_ways(ours_look(pattern), inputs, torch.randn_like(inputs[0]))
        times[positions] = timed({"ours": run}, max(3, runs // 4))["ours"]
    ratio = times[1048576] / times[65536]
    more = f", {ratio:.1f} × the time of 65,536 ({times[65536]:.3f} ms)"
    return [Line("million positions", times[1048576], "", 0.0, "≤ 18 ×", ratio <= 18, {}, more)]


def main() -> None:
    works = ("roofs", "additive", "long additive", *PATTERNS, "hard", "dense", "million")
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--only", nargs="+", choices=works, default=list(works))
    reader.add_argument("--runs", type=int, default=20)
    reader.add_argument("--json", type=Path)
    arguments = reader.parse_args()
    print(introduced(), flush=True)
    lines: list[Line] = []
    for work in arguments.only:
        others = {"roofs": roofs, "additive": additive, "long additive": long_additive, "hard": hard}
        run = (others | {"dense": dense, "million": million}).get(work)
        for line in patterns(work, arguments.runs) if run is None else run(arguments.runs):
            print(line, flush=True)
            lines.append(line)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(line) for line in lines], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
