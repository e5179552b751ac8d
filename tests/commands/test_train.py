"""`regard train`."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest

import regard
from tests.commands.run import SETTINGS, Inside, refused


def test_train_tells_how_it_goes_on_standard_error(files: Path) -> None:
    message = (files / "train.log").read_text(encoding="utf-8")
    for part in (
        "64 pairs for training, 16 for validation",
        "plan: 8 updates",
        "update 8: chrF++",
        "done after 8 updates",
    ):
        assert part in message
    assert "BLEU" in message and "regard translate" in message and str(files / "model") in message.replace("\n", "")
    card = regard.load(files / "model", "cpu").card
    assert card["languages"] == ["en", "mr"] and "train" in card["command"]


def test_train_again_is_refused_and_resume_returns_at_once(files: Path, inside: Inside) -> None:
    again = ("train", files / "pairs.tsv", "--out", files / "model", *SETTINGS)
    assert "there already" in refused(inside(*again))
    before = (files / "model" / "model.safetensors").read_bytes()
    done = inside(*again, "--resume", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (files / "model" / "model.safetensors").read_bytes() == before
    assert "seed" in refused(inside(*again, "--resume", "--seed", "7", "--quiet"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.tsv", "--out", "OUT"], "nowhere.tsv"),
        (["PAIRS", "--out", "OUT", "--dev", "nowhere.tsv"], "nowhere.tsv"),
        (["PAIRS", "PAIRS", "PAIRS", "--out", "OUT"], "3 files"),
        (["PAIRS", "--out", "OUT", "--recipe", "rn"], "rnn"),
        (["PAIRS", "--out", "OUT", "--recipe", "nowhere.toml"], "nowhere.toml"),
        (["PAIRS", "--out", "OUT", "--set", "training.epoch=3"], "did you mean 'training.epochs'?"),
        (["PAIRS", "--out", "OUT", "--set", "training.epochs"], "KEY=VALUE"),
        (["PAIRS", "--out", "OUT", "--set", "training.epochs=many"], "expected a whole number, got 'many'"),
        (["PAIRS", "--out", "OUT", "--set", "model.embedding=0"], "embedding"),
        (["PAIRS", "--out", "OUT", "--set", "search.beam=0"], "beam"),
        (["PAIRS", "--out", "OUT", "--precision", "fp8"], "precision: expected auto, fp32 or bf16"),
        (["PAIRS", "--out", "OUT", "--from", "en"], "--from and --to go together"),
        (["PAIRS", "--out", "OUT", "--device", "foo"], "device"),
        (["PAIRS", "--out", "OUT", "--device", "cuda:99"], "device"),
        (["PAIRS", "--out", "PAIRS/model"], "pairs.tsv"),
        (["PAIRS", "--out", "/proc/model"], "/proc/model"),
        (["PAIRS", "--out", "OUT", "--resume", "--overwrite"], "contradict"),
        (["PAIRS", "--out", "OUT", "--minutes", "inf"], "minutes"),
        (["PAIRS", "--out", "OUT", "--minutes", "nan"], "minutes"),
        (["PAIRS", "--out", "FOLDER", "--overwrite"], "card.json"),
        (["PAIRS", "--out", "OUT", "--teacher", "nowhere"], "nowhere"),
        (["PAIRS", "--out", "OUT", "--teacher", "FOLDER"], "card.json"),
        (["PAIRS", "--out", "OUT", "--best", "--teacher", "MODEL"], "--teacher: no effect here; --best trains its own"),
        (["PAIRS", "--out", "OUT", "--task", "classify", "--teacher", "MODEL"], "teachers are for translating"),
    ],
)
def test_a_mistake_in_train_is_one_line(
    arguments: list[str], message: str, files: Path, tmp_path: Path, inside: Inside
) -> None:
    (tmp_path / "folder").mkdir()
    names = {"PAIRS": files / "pairs.tsv", "OUT": tmp_path / "out", "FOLDER": tmp_path / "folder"}
    names |= {"MODEL": files / "model"}
    given = [str(names.get(each, each)).replace("PAIRS/", f"{names['PAIRS']}/") for each in arguments]
    assert message in refused(inside("train", "--quiet", *SETTINGS, *given))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder"], "nothing was begun"


def test_a_training_is_repeated_from_its_card(files: Path, tmp_path: Path, inside: Inside) -> None:
    done = inside("train", "--from-card", files / "model", "--out", tmp_path / "again")
    assert done.returncode == 0 and done.stdout == "", done.stderr
    assert done.stderr.endswith("the weights are those of the card, bit for bit\n")
    first, second = ((folder / "model.safetensors").read_bytes() for folder in (files / "model", tmp_path / "again"))
    assert first == second


def test_a_student_and_its_repetition(files: Path, tmp_path: Path, inside: Inside) -> None:
    """--from-card finds the teacher by its path in the card, or where --teacher says."""
    teacher = copytree(files / "model", tmp_path / "teacher")
    done = inside("train", files / "pairs.tsv", "--out", tmp_path / "m", "--teacher", teacher, *SETTINGS)
    assert done.returncode == 0, done.stderr
    moved, again = teacher.rename(tmp_path / "moved"), ("train", "--from-card", tmp_path / "m", "--out", tmp_path / "n")
    assert f"{teacher}: there is no such file now; expected the same teachers as --teacher" in refused(inside(*again))
    done = inside(*again, "--teacher", moved)
    assert "bit for bit" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--seed", "1"], "--seed"),
        (["--precision", "auto", "--task", "translate"], "--task, --precision"),
        (["--set", "training.epochs=2"], "--set"),
        (["--reverse"], "--reverse"),
        (["--best"], "--best"),
        (["--minutes", "1"], "--minutes"),
        (["--deterministic"], "--deterministic"),
        (["--threads", "1", "--device", "cpu"], "--device, --threads"),
    ],
)
def test_options_that_a_card_decides_are_refused(
    options: list[str], named: str, files: Path, tmp_path: Path, inside: Inside
) -> None:
    message = refused(inside("train", "--from-card", files / "model", "--out", tmp_path / "again", *options))
    assert f"regard: {named}: no effect here; --from-card takes it from the card" in message
    assert not (tmp_path / "again").exists()


def test_pairs_or_a_card_are_needed(tmp_path: Path, inside: Inside) -> None:
    assert "PAIRS: expected a file of sentence pairs, or --from-card" in refused(
        inside("train", "--out", tmp_path / "m")
    )


def test_deterministic_with_best_is_refused(files: Path, tmp_path: Path, inside: Inside) -> None:
    given = ("train", files / "pairs.tsv", "--out", tmp_path / "m", "--best", "--deterministic")
    assert "--deterministic: no effect here" in refused(inside(*given))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "PAIRS: expected a file of sentence pairs"),
        (["--pairs", "nowhere.tsv:2"], "nowhere.tsv"),
        (["PAIRS", "--pairs", "PAIRS:0"], "weight: expected a number above 0, got 0"),
        (["PAIRS", "--pairs", "PAIRS:-1"], "weight: expected a number above 0, got -1"),
        (["PAIRS", "--pairs", "PAIRS", "--best"], "best: expected one source of data"),
        (["PAIRS", "--pairs", "PAIRS", "--task", "classify"], "data with weights are for translating"),
    ],
)
def test_a_mistake_in_weights_is_one_line(
    arguments: list[str], message: str, files: Path, tmp_path: Path, inside: Inside
) -> None:
    given = [each.replace("PAIRS", str(files / "pairs.tsv")) for each in arguments]
    settings = SETTINGS if "classify" not in arguments else []
    assert message in refused(inside("train", "--quiet", *given, "--out", tmp_path / "out", *settings))
    assert not list(tmp_path.iterdir())


def test_train_on_several_files(files: Path, tmp_path: Path, inside: Inside) -> None:
    more = tmp_path / "more.en", tmp_path / "more.mr"
    more[0].write_text("A dog.\nA cat.\n"), more[1].write_text("कुत्रा.\nमांजर.\n", encoding="utf-8")
    given = ("--pairs", f"{more[0]},{more[1]}:2.5", "--out", tmp_path / "m", *SETTINGS)
    done = inside("train", files / "pairs.tsv", *given)
    assert done.returncode == 0, done.stderr
    assert "66 pairs for training, 16 for validation" in done.stderr
    data = regard.load(tmp_path / "m", "cpu").card["data"]
    assert data["name"] == "pairs.tsv:1, more.en + more.mr:2.5" and data["lines"] == 82 and data["train_pairs"] == 66
