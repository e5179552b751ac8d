"""Every command over every kind of translator, on a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu.commands import regard, sentences, settings, some_pairs, works

RNN = {"model__embedding": 32, "model__encoder": 32, "model__decoder": 64, "model__attention": 32}
SHORT = {"training__epochs": 3, "training__validations": 2, "vocabulary__size": 300}
WIDE = {
    "model__width": 64,
    "model__heads": 4,
    "model__feedforward": 64,
    "model__encoder_layers": 2,
    "model__decoder_layers": 2,
}
KINDS: dict[str, tuple[str, dict[str, object]]] = {
    "gru additive": ("rnn", RNN),
    "lstm dot": ("rnn", RNN | {"model__cell": "lstm", "model__score": "dot"}),
    "two layers, general, entmax": (
        "rnn",
        RNN
        | {
            "model__encoder_layers": 2,
            "model__decoder_layers": 2,
            "model__score": "general",
            "model__normalizer": "entmax15",
        },
    ),
    "bahdanau, sparsemax": ("rnn", RNN | {"model__order": "bahdanau", "model__normalizer": "sparsemax"}),
    "cosine, local": ("rnn", RNN | {"model__score": "cosine", "model__pattern": "window(4)"}),
    "predictive": ("rnn", RNN | {"model__predictive": 3}),
    "hard, gumbel": ("rnn", RNN | {"model__normalizer": "hard", "model__estimator": "gumbel"}),
    "hard, reinforce": ("rnn", RNN | {"model__normalizer": "hard", "model__estimator": "reinforce"}),
    "guided, sampled": ("rnn", RNN | {"training__guided_attention": 0.1, "training__scheduled_sampling": 0.2}),
    "article": ("article", RNN),
    "consistent": ("rnn", RNN | {"training__consistency": 5.0}),
    "consistent, reinforce": (
        "rnn",
        RNN | {"training__consistency": 1.0, "model__normalizer": "hard", "model__estimator": "reinforce"},
    ),
    "consistent, guided, sampled": (
        "rnn",
        RNN | {"training__consistency": 1.0, "training__guided_attention": 0.1, "training__scheduled_sampling": 0.2},
    ),
    "consistent, masked": ("transformer", WIDE | {"training__consistency": 5.0, "training__masked": 0.05}),
    "transformer": ("transformer", WIDE),
    "post-norm, rotary, per head": (
        "transformer",
        WIDE
        | {
            "model__norm": "post",
            "model__positions": "rotary",
            "encoder__pattern": "per_head(full, window(4), strided(2), causal)",
        },
    ),
    "alibi, sparsemax, additive": (
        "transformer",
        WIDE | {"model__positions": "alibi", "cross__normalizer": "sparsemax", "encoder__score": "additive"},
    ),
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return some_pairs(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module", params=list(KINDS), ids=lambda name: name.replace(" ", "_"))
def model(request: pytest.FixtureRequest, pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe, values = KINDS[request.param]
    folder = tmp_path_factory.mktemp("model") / "model"
    works("train", pairs, "--out", folder, "--recipe", recipe, *settings(**SHORT | values), "--device", "cuda", "-q")
    return folder


@pytest.mark.parametrize("precision", ["auto", "fp32", "bf16"])
@pytest.mark.parametrize(
    "options",
    [
        ("--beam", 1),
        ("--beam", 5, "--n-best", 3),
        ("--sample", "--seed", 1),
        ("--mbr", 8),
        ("--prefix", "ती"),
        ("--beam", 20),
    ],
    ids=["greedy", "n-best", "sample", "minimum-risk", "prefix", "wide"],
)
def test_translate(model: Path, pairs: Path, options: tuple[object, ...], precision: str) -> None:
    texts = sentences(pairs)
    ended = works("translate", model, *texts, *options, "--device", "cuda", "--precision", precision, "--json")
    answers = [json.loads(line) for line in ended.out.splitlines()]
    assert [answer["source"] for answer in answers] == list(texts)
    for answer in answers:
        result = [each["text"] for each in answer["translations"]]
        assert len(set(result)) == len(result) >= 1


def test_one_gpu_translates_as_the_cpu(model: Path, pairs: Path) -> None:
    texts = sentences(pairs, count=40)
    result = [
        works("translate", model, *texts, "--beam", 1, "--precision", "fp32", "--device", device).out.splitlines()
        for device in ("cuda", "cpu")
    ]
    same = sum(a == b for a, b in zip(*result, strict=True))
    assert same >= 36, f"{same} of 40 alike"  # barely trained models have near ties


def test_look_and_evidence(model: Path, pairs: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"look.{kind}" for kind in ("html", "svg", "json")]
    looks = [word for file in files for word in ("--look", file)]
    works(
        "translate", model, *sentences(pairs, count=1), *looks, "--look", "terminal", "--evidence", "--device", "cuda"
    )
    assert all(file.stat().st_size > 500 for file in files)
    works("look", files[2])
    works("look", model, "--history", "-o", tmp_path / "history.html")


def test_align_and_evaluate(model: Path, pairs: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("\n".join(pairs.read_text(encoding="utf-8").splitlines()[:20]) + "\n", encoding="utf-8")
    assert len(works("align", few, "--model", model, "--device", "cuda").out.splitlines()) == 20
    assert "chrF" in works("evaluate", model, few, "--device", "cuda", "--diagnose", "missed").out


def test_a_device_that_is_not_there() -> None:
    ended = regard("translate", "nowhere", "text", "--device", "cuda:99")
    assert ended.code == 2 and len(ended.err.strip().splitlines()) == 1
