"""The loss of a batch does not depend on how it is padded."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from regard.config.recipe_text import read_recipe
from regard.models.recurrent import encoder
from regard.models.transformer import model as transformer
from regard.tasks.translation.task import TranslationTask
from regard.text.batches import Batch
from regard.text.pairs import Pair
from regard.training.checkpoint import Progress
from regard.training.plan import Schedule
from tests.training import toy

TEXTS = [("a b c", "A B C D E"), ("b", "B"), ("c a c a c", "C A"), ("d", "D D D"), ("a d", "A D")]
PAIRS = [Pair(*texts, line) for line, texts in enumerate(TEXTS, 1)]


def task(name: str, **settings: object) -> TranslationTask:
    small = {"model.dropout": 0.0, "training.segmentation_dropout": 0.0}
    return TranslationTask.of(PAIRS, PAIRS[:1], read_recipe(name, {**small, **settings}), 1)


@pytest.mark.parametrize("name", ["rnn", "transformer", "article"])
def test_in_few_shapes_the_loss_is_the_same(name: str) -> None:
    given = task(name)
    results = []
    for make in (Batch.of, Batch.in_few_shapes):
        batch = make(given.examples.plain)
        loss, report = given.loss(batch, Progress())
        used = [each for each in given.model.parameters() if each.requires_grad]
        results.append((report, *torch.autograd.grad(loss, used)))
    assert Batch.in_few_shapes(given.examples.plain).shape != Batch.of(given.examples.plain).shape
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["rnn", "transformer"])
@pytest.mark.parametrize("make", [Batch.of, Batch.in_few_shapes])
def test_consistency_costs_nothing_where_both_readings_agree(name: str, make: Callable[..., Batch]) -> None:
    plain = task(name)
    batch = make(plain.examples.plain)
    consistent = task(name, **{"training.consistency": 5.0})
    for ours, theirs in zip(consistent.loss(batch, Progress()), plain.loss(batch, Progress()), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("settings", [{"model.dropout": 0.5}, {"training.masked": 0.5}])
def test_consistency_costs_something_where_readings_differ(settings: dict[str, float]) -> None:
    given = task("rnn", **{"training.consistency": 5.0}, **settings)
    with torch.no_grad():
        for parameter in given.model.parameters():
            parameter.mul_(4)  # an untrained model predicts nearly the same whatever it reads
    loss, cross_entropy = given.loss(Batch.of(given.examples.plain), Progress())
    assert loss > 1.001 * cross_entropy


@pytest.mark.parametrize(
    "settings",
    [
        {"model.normalizer": "hard", "model.estimator": "gumbel"},
        {"model.normalizer": "hard", "model.estimator": "reinforce"},
        {"model.normalizer": "entmax15", "model.score": "general"},
        {"model.score": "cosine", "model.pattern": "window(2)"},
        {"model.predictive": 3},
        {"training.guided_attention": 0.1, "training.scheduled_sampling": 0.5},
    ],
)
def test_every_kind_of_model_trains_with_consistency(settings: dict[str, object]) -> None:
    given = task("rnn", **{"training.consistency": 1.0, "model.dropout": 0.3}, **settings)
    (make,) = given.epoch(0)
    loss, cross_entropy = given.loss(make(torch.device("cpu")), Progress(update=2, plan=Schedule(2, (), 1)))
    loss.backward()
    gradients = [each.grad for each in given.model.parameters() if each.requires_grad]
    assert loss > 0 and cross_entropy > 0
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)


def test_what_a_gpu_may_record(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (encoder, transformer):
        monkeypatch.setattr(module, "why_no_triton", lambda device: None if device.type == "cuda" else "not on a GPU")
    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    for name in ("rnn", "transformer"):
        assert task(name).can_capture(cuda) and not task(name).can_capture(cpu)
    assert not task("article").can_capture(cuda)
    for key, value in {
        "training.scheduled_sampling": 0.2,
        "model.normalizer": "sparsemax",
        "model.score": "dot",
        "model.input_feeding": False,
        "model.order": "bahdanau",
        "model.pattern": "window(2)",
        "model.encoder_layers": 2,
        "model.cell": "lstm",
        "model.predictive": 2,
    }.items():
        assert not task("rnn", **{key: value}).can_capture(cuda)
    for key, value in {
        "model.attention_dropout": 0.1,
        "encoder.pattern": "window(2)",
        "cross.normalizer": "hard",
        "decoder.normalizer": "entmax15",
        "encoder.score": "additive",
        "model.positions": "alibi",
    }.items():
        assert not task("transformer", **{key: value}).can_capture(cuda)
    guided = task("rnn", **{"training.guided_attention": 0.1})
    assert not guided.can_capture(cuda) and replace(guided, guide=None).can_capture(cuda)


def test_batches_are_made_smaller_unless_their_size_was_set() -> None:
    many = [Pair(source, target, line) for line, (source, target) in enumerate(TEXTS * 1000, 1)]
    given = TranslationTask.of(many, PAIRS, read_recipe("transformer", {"training.word_pairs": 0}), 1)
    small = given.epoch(0, given.smallest_batch_fraction)
    sentences = given.size / len(small)
    assert 12 < sentences < 20 and len(given.epoch(0)) < len(small) / 3
    met = sorted(row for make in small for row in make.args[1])  # type: ignore[attr-defined]
    assert met == list(range(5000)), "an epoch is one, whatever the size of its batches"
    assert task("rnn", **{"training.batch_tokens": 999}).smallest_batch_fraction == 1


def test_a_validation_of_a_part_of_dev_is_spread_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are often sorted by length: the first sources of dev would be the shortest."""
    given, used = TranslationTask.of(PAIRS, PAIRS, read_recipe("rnn", {}), 1), list[str]()
    monkeypatch.setattr("regard.tasks.translation.task.validate", lambda inputs, *_: used.extend(inputs.sources))
    given.validate(0, torch.device("cpu"), 3)
    assert used == ["a b c", "c a c a c", "a d"]


def test_a_rehearsal_says_what_the_final_scoring_takes() -> None:
    given = task("rnn")
    seconds = given.rehearse(torch.device("cpu"), "fp32", trained=True, limit=60.0)
    assert seconds is not None and 1 < seconds < 30
    assert given.model.training
    assert given.rehearse(torch.device("cuda"), "fp32", trained=True, limit=60.0) is None


def test_single_words_follow_the_pairs_and_are_guided_too() -> None:
    train = [Pair(*texts, line) for line, texts in enumerate(toy.PAIRS, 1)]
    plain, given = (
        TranslationTask.of(
            train,
            PAIRS,
            read_recipe("rnn", toy.TINY | {"training.word_pairs": share, "training.guided_attention": 0.1}),
            1,
        )
        for share in (0.0, 0.1)
    )
    assert given.word_pairs == 8 and plain.word_pairs == 0
    assert given.size == plain.size == 80 and len(given.examples) == 88
    assert given.examples.plain[:80] == plain.examples.plain and given.limit == plain.limit
    assert given.facts["word_pairs"] == 8
    assert given.examples.epoch(3) == given.examples.epoch(3) and len(given.examples.epoch(3)) == 88
    last = Batch.of(given.examples.plain[80:])
    assert given.guide is not None and given.guide.alignment(range(80, 88), last).any((1, 2)).all()
