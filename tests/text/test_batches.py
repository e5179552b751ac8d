"""Batches: every example once, within the limits, with little padding; the fields that models train on."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.batches import Batch, arrange, by_length, by_tokens, padded, rounded
from regard.text.examples import Example
from regard.text.vocabulary import END, PAD, START


def example(source: int, target: int) -> Example:
    return Example(list(range(3, 3 + source)), list(range(50, 50 + target)))


lengths = st.integers(0, 20)
drawn = st.lists(st.builds(example, lengths, lengths), min_size=1, max_size=60)


@settings(max_examples=200, deadline=None)
@given(drawn, st.integers(1, 12), st.integers(1, 120), st.integers(0, 9), st.integers(0, 9))
def test_every_example_once_within_the_limits(
    examples: list[Example], sentences: int, tokens: int, seed: int, epoch: int
) -> None:
    batches = arrange(examples, sentences, tokens, seed, epoch)
    assert sorted(index for batch in batches for index in batch) == list(range(len(examples)))
    for indices in batches:
        batch = Batch.of([examples[index] for index in indices])
        assert 1 <= len(indices) <= sentences
        assert len(indices) == 1 or max(batch.source.numel(), batch.target.numel()) <= tokens


def test_batches_are_as_full_as_the_limits_allow() -> None:
    examples = [example(4, 4)] * 100
    assert [len(batch) for batch in arrange(examples, 10, 10**9, 1, 1)] == [10] * 10
    assert sorted(len(batch) for batch in arrange(examples, 10**9, 5 * 30, 1, 1)) == [10, 30, 30, 30]


def test_a_long_one_is_by_itself() -> None:
    batches = arrange([example(2, 2), example(2, 2), example(40, 40)], 10, 20, 1, 1)
    assert [2] in batches and len(batches) == 2


def test_no_examples_are_no_batches() -> None:
    assert arrange([], 10, 100, 1, 1) == []


def _mixed(count: int = 600) -> list[Example]:
    numbers = torch.randint(1, 25, (count, 2)).tolist()
    return [example(source, source // 2 + target // 4 + 1) for source, target in numbers]


def test_seed_and_epoch_fix_them() -> None:
    examples = _mixed()
    first = arrange(examples, 16, 400, seed=1, epoch=1)
    assert arrange(examples, 16, 400, seed=1, epoch=1) == first
    for seed, epoch in ((1, 2), (2, 1)):
        other = arrange(examples, 16, 400, seed, epoch)
        assert other != first
        assert {frozenset(batch) for batch in other} != {frozenset(batch) for batch in first}  # others meet


def test_batches_come_in_no_order_of_length() -> None:
    examples = _mixed()
    longest = [max(len(examples[i].target) for i in batch) for batch in arrange(examples, 16, 10**9, 1, 1)]
    assert longest != sorted(longest) and longest != sorted(longest, reverse=True)


def test_there_is_little_padding() -> None:
    examples = _mixed()
    batches = [Batch.of([examples[i] for i in batch]) for batch in arrange(examples, 16, 10**9, 1, 1)]
    target = sum(batch.target.numel() for batch in batches)
    assert sum(batch.tokens for batch in batches) / target > 0.9
    source = sum(batch.source.numel() for batch in batches)
    assert sum(int(batch.lengths.sum()) for batch in batches) / source > 0.75


def test_the_fields_of_a_batch() -> None:
    batch = Batch.of([Example([5, 6, 7], [8]), Example([9], [10, 11, 12]), Example([], [])])
    assert batch.source.tolist() == [[5, 6, 7, END], [9, END, PAD, PAD], [END, PAD, PAD, PAD]]
    assert batch.lengths.tolist() == [4, 2, 1]
    assert batch.target.tolist() == [[START, 8, PAD, PAD], [START, 10, 11, 12], [START, PAD, PAD, PAD]]
    assert batch.expected.tolist() == [[8, END, PAD, PAD], [10, 11, 12, END], [END, PAD, PAD, PAD]]
    assert batch.token_indices.tolist() == [0, 1, 4, 5, 6, 7, 8]
    assert batch.tokens == 7
    assert batch.source.dtype == batch.target.dtype == batch.lengths.dtype == torch.int64


@settings(max_examples=50, deadline=None)
@given(drawn)
def test_real_places_hold_all_tokens(examples: list[Example]) -> None:
    batch = Batch.of(examples)
    wanted = [token for one in examples for token in (*one.target, END)]
    assert batch.expected.flatten()[batch.token_indices].tolist() == wanted
    assert batch.tokens == len(wanted)
    fed = [token for one in examples for token in (START, *one.target)]
    assert batch.target.flatten()[batch.token_indices].tolist() == fed
    for row, length, one in zip(batch.source, batch.lengths, examples, strict=True):
        assert row[:length].tolist() == [*one.source, END] and (row[length:] == PAD).all()


@pytest.mark.parametrize("rows", [[[1, 2], [3]], [[], [4]]])
def test_padded(rows: list[list[int]]) -> None:
    table = padded(rows).tolist()
    longest = max(map(len, rows))
    assert table == [row + [PAD] * (longest - len(row)) for row in rows]


def test_by_length_gives_every_row_once_the_shortest_first() -> None:
    rows = [[1] * size for size in (5, 1, 4, 1, 3, 2, 9)]
    result = list(by_length(rows, 3))
    assert [len(part) for part in result] == [3, 3, 1]
    assert sorted(index for part in result for index in part) == list(range(7))
    assert [len(rows[index]) for part in result for index in part] == [1, 1, 2, 3, 4, 5, 9]
    assert list(by_length([], 3)) == []


def test_by_tokens_fills_batches_up_to_a_number_of_tokens() -> None:
    rows = [[1] * size for size in (5, 1, 4, 1, 3, 2, 9)]
    result = [[len(rows[index]) for index in part] for part in by_tokens(rows, 8, 2)]
    assert result == [[1, 1, 2], [3, 4], [5, 9]], "at most 8 tokens with padding, but at least 2 rows"
    assert sorted(index for part in by_tokens(rows, 8, 2) for index in part) == list(range(7))
    assert list(by_tokens(rows, 0, 3)) == list(by_length(rows, 3)) and list(by_tokens([], 8, 2)) == []


def test_few_sizes() -> None:
    sizes = [rounded(size) for size in range(1, 513)]
    assert all(size <= up <= max(size + 3, size * 1.25) for size, up in zip(range(1, 513), sizes, strict=True))
    assert len(set(sizes)) < 32
    assert sizes[0] == 4 and rounded(33) == 40 and rounded(129) == 160 and rounded(64) == 64


@settings(max_examples=100, deadline=None)
@given(drawn)
def test_in_few_shapes_it_says_the_same(examples: list[Example]) -> None:
    plain, batch = Batch.of(examples), Batch.in_few_shapes(examples)
    rows, source, target = plain.shape
    assert batch.shape == (rounded(rows), rounded(source), rounded(target))
    assert batch.tokens == plain.tokens and batch.token_indices is None
    for few, one in ((batch.source, plain.source), (batch.target, plain.target), (batch.expected, plain.expected)):
        assert torch.equal(few[:rows, : one.shape[1]], one)
        assert not few[:rows, one.shape[1] :].any()
    assert torch.equal(batch.lengths[:rows], plain.lengths)
    assert not batch.expected[rows:].any() and not batch.target[rows:].any() and bool((batch.lengths[rows:] == 1).all())
    assert bool((batch.source[rows:, 0] == END).all()) and not batch.source[rows:, 1:].any()


def test_masked_tokens_are_padding_and_everything_else_stays() -> None:
    torch.manual_seed(1)
    batch = Batch.of([Example(list(range(3, 60)), list(range(3, 50))), Example([5, 6], [7])])
    masked = batch.masked(0.4)
    for name in ("source", "target"):
        before, after = getattr(batch, name), getattr(masked, name)
        assert ((after == before) | (after == PAD)).all()
        assert (after[before <= END] == before[before <= END]).all()
        assert 0.2 < (after != before)[before > END].float().mean() < 0.6
    assert masked.expected is batch.expected and masked.lengths is batch.lengths
    assert batch.masked(0.0) is batch


@pytest.mark.parametrize("make", [Batch.of, Batch.in_few_shapes])
def test_a_batch_followed_by_another_form_of_itself(make: Callable[..., Batch]) -> None:
    batch = make([Example([3, 4, 5], [6]), Example([7], [8, 9, 10])])
    other = batch.masked(0.5)
    both = batch.followed_by(other)
    for name in ("source", "lengths", "target", "expected"):
        assert torch.equal(getattr(both, name), torch.cat([getattr(batch, name), getattr(other, name)]))
    real = batch.real_tokens(batch.expected)
    assert torch.equal(both.real_tokens(both.expected), torch.cat([real, real]))


@settings(max_examples=50, deadline=None)
@given(drawn, st.integers(1, 200))
def test_the_parts_of_a_batch_are_batches_of_its_rows(examples: list[Example], tokens: int) -> None:
    whole = Batch.of(examples)
    alignment = torch.rand(*whole.target.shape, whole.source.shape[1]) < 0.5
    first = 0
    for part in replace(whole, alignment=alignment).parts(tokens):
        rows, sources, targets = part.shape
        assert rows == 1 or rows * max(sources, targets) <= tokens
        alone = Batch.of(examples[first : first + rows])
        for name in ("source", "lengths", "target", "expected", "token_indices"):
            assert torch.equal(getattr(part, name), getattr(alone, name)), name
        assert part.tokens == alone.tokens and part.alignment is not None
        assert torch.equal(part.alignment, alignment[first : first + rows, :targets, :sources])
        first += rows
    assert first == len(examples)
