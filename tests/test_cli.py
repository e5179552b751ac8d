"""The commands as a user runs them."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import regard as package
from regard.cli import main
from tests.training import toy

SETTINGS = [part for key, value in toy.TINY.items() for part in ("--set", f"{key}={value}")]
SOURCES = [source for source, _ in toy.PAIRS]


def regard(
    *arguments: str | Path, stdin: bytes | None = None, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "regard", *map(str, arguments)],
        capture_output=True,
        input=stdin if stdin is not None else b"",
        timeout=120,
        env={**os.environ, **(environment or {})},
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


class Inside:
    """The same without a new process, which takes two seconds to start; an error that gets out is a traceback."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capture = patch, capture

    def __call__(self, *arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        given = ["regard", *map(str, arguments)]
        self._patch.setattr(sys, "argv", given)
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main()
        told = self._capture.readouterr()
        return subprocess.CompletedProcess(given, int(ended.value.code or 0), told.out, told.err)


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    return Inside(monkeypatch, capsys)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """A user's mistake: one line on standard error, exit code 2, no traceback."""
    assert done.returncode == 2, done.stderr[-2000:]
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert done.stderr.startswith("regard: ") and done.stderr.count("\n") == 1
    return done.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """pairs.tsv, and a model trained on it by the command."""
    here = tmp_path_factory.mktemp("commands")
    pairs = toy.write_tsv(here / "pairs.tsv")
    done = regard("train", pairs, "--out", here / "model", *SETTINGS, "--threads", "1", "--from", "en", "--to", "mr")
    assert done.returncode == 0 and done.stdout == "", done.stderr
    (here / "train.log").write_text(done.stderr, encoding="utf-8")
    return here


# pattern, help


def test_pattern_is_drawn(inside: Inside) -> None:
    done = inside("pattern", "window(1) & causal", "-n", "3")
    assert done.returncode == 0
    assert done.stdout == "■ · ·\n■ ■ ·\n· ■ ■\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pattern", "windw(4)"), "regard: pattern: unknown name 'windw'; did you mean 'window'?"),
        (("pattern", "window(4"), "expected ',' at column 9"),
        (("pattern", "full", "-n", "0"), "--queries"),
        (("patern", "full"), "patern"),
        (("pattern", "window(99999999999999999999)"), "below 2³¹"),
        (("pattern", "("), "expected a pattern"),
        (("pattern", "full", "--position", "99999999999999999999"), "--position"),
    ],
)
def test_a_users_mistake_is_one_message_and_no_traceback(arguments: tuple[str, ...], said: str, inside: Inside) -> None:
    done = inside(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr and "Traceback" not in done.stderr


def test_version_and_help(inside: Inside) -> None:
    assert inside("--version").stdout.startswith("regard 0.")
    said = inside("--help").stdout
    assert all(command in said for command in ("demo", "train", "translate", "evaluate", "align", "look", "pattern"))


# demo


def test_the_demo_trains_translates_and_shows(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    done = regard("demo", "--minutes", "0.2", "--out", out, "--threads", "1", environment={"LC_ALL": "C"})
    assert done.returncode == 0, done.stderr
    assert "Rahul is a good boy  →  " in done.stdout
    assert "Exact match on sentences it has not seen" in done.stdout
    head = next(line for line in done.stdout.split("\n") if line.split() == ["Rahul", "is", "a", "good", "boy", "⏹"])
    rows = done.stdout.split(head + "\n")[1].split("\n\n")[0].split("\n")
    assert rows and all(len(re.findall(r" \d\.\d\d", row)) == 6 for row in rows), "a grid of weights"
    assert "Next:" in done.stdout and f"regard translate {out}" in done.stdout and "regard train" in done.stdout
    assert "validations" in done.stderr and "Traceback" not in done.stderr
    assert package.load(out, "cpu").card["languages"] == ["en", "mr"]


# train


def test_train_tells_how_it_goes_on_standard_error(files: Path) -> None:
    said = (files / "train.log").read_text(encoding="utf-8")
    for part in (
        "64 pairs to train on, 16 to choose by",
        "plan: 8 updates",
        "update 8: chrF++",
        "done after 8 updates",
    ):
        assert part in said
    assert "BLEU" in said and "regard translate" in said and str(files / "model") in said.replace("\n", "")
    card = package.load(files / "model", "cpu").card
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
    ("arguments", "said"),
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
    ],
)
def test_a_mistake_in_train_is_one_line(
    arguments: list[str], said: str, files: Path, tmp_path: Path, inside: Inside
) -> None:
    (tmp_path / "folder").mkdir()
    names = {"PAIRS": files / "pairs.tsv", "OUT": tmp_path / "out", "FOLDER": tmp_path / "folder"}
    given = [str(names.get(each, each)).replace("PAIRS/", f"{names['PAIRS']}/") for each in arguments]
    assert said in refused(inside("train", "--quiet", *SETTINGS, *given))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder"], "nothing was begun"


def interrupted(arguments: list[Any], out: Path, validations: int = 2) -> tuple[int, str]:
    run = subprocess.Popen(
        [sys.executable, "-m", "regard", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    log = out / "log.jsonl"
    began = time.monotonic()
    while not log.exists() or log.read_bytes().count(b'"validation"') < validations:
        time.sleep(0.02)
        assert run.poll() is None and time.monotonic() - began < 100
    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=60)
    assert stdout == b""
    return run.returncode, stderr.decode()


def test_control_c_keeps_what_was_learned(files: Path, tmp_path: Path, inside: Inside) -> None:
    out = tmp_path / "model"
    command = ["train", files / "pairs.tsv", "--out", out, *SETTINGS, "--set", "training.epochs=500"]
    code, said = interrupted([*command, "--set", "training.validations=400", "--threads", "1"], out)
    assert code == 130, "128 + SIGINT, as shells have it"
    assert "Traceback" not in said and "what was learned so far is kept; go on with --resume" in said
    assert [file.name for file in tmp_path.iterdir()] == ["model"] and not list(tmp_path.rglob("*.new"))
    done = inside("translate", out, SOURCES[0])
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1
    (notice,) = done.stderr.splitlines()
    assert notice.startswith(f"regard: {out}: its training has not ended") and "--resume" in notice


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc how far the process is")
@pytest.mark.parametrize("during", ["imports", "vocabulary"])
def test_control_c_before_training_begins_leaves_nothing(during: str, tmp_path: Path) -> None:
    """One line, no traceback, no file."""
    texts = [(f"{source} {number}", target) for number in range(400) for source, target in toy.PAIRS]
    data, lock = toy.write_tsv(tmp_path / "pairs.tsv", texts), tmp_path / ".model.lock"
    command = [sys.executable, "-m", "regard", "train", str(data), "--out", str(tmp_path / "model"), *SETTINGS]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    maps, began = Path(f"/proc/{run.pid}/maps"), time.monotonic()
    while not (lock.exists() if during == "vocabulary" else "torch" in maps.read_text()):
        time.sleep(0.01)
        assert run.poll() is None and time.monotonic() - began < 100
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=60)
    assert (run.returncode, stdout) == (130, b"")
    assert stderr.decode().splitlines()[-1] == "regard: interrupted" and b"Traceback" not in stderr
    assert [file.name for file in tmp_path.iterdir()] == ["pairs.tsv"]


def test_an_interrupt_that_an_import_turns_into_another_error_is_still_one() -> None:
    """As extension modules do."""
    script = (
        "import os, signal, sys, types, regard.__main__ as entry\n"
        "def run():\n"
        "    try: os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt: raise ImportError('initialization failed') from None\n"
        "sys.modules['regard.cli'] = types.SimpleNamespace(main=run)\n"
        "entry.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "regard: interrupted\n")


@pytest.mark.parametrize("command", ["translate", "evaluate", "align"])
def test_a_model_without_validated_weights_is_refused(
    command: str, files: Path, tmp_path: Path, inside: Inside
) -> None:
    shutil.copytree(files / "model", tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    card = json.loads((tmp_path / "model" / "card.json").read_text(encoding="utf-8"))
    begun = {key: value for key, value in card.items() if key not in ("ended", "scores")}
    (tmp_path / "model" / "card.json").write_text(json.dumps(begun), encoding="utf-8")
    done = inside(command, tmp_path / "model", "text" if command == "translate" else files / "pairs.tsv")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "no model yet" in line and "--resume" in line


# translate


def test_arguments_a_file_and_standard_input_give_the_same(files: Path, tmp_path: Path, inside: Inside) -> None:
    texts = [SOURCES[0], "", SOURCES[1], "   ", "unseen: 漢字 😀", SOURCES[2]]
    expected = package.load(files / "model", "cpu").translate(texts)
    assert expected[1] == expected[3] == ""
    lines = "".join(text + "\n" for text in expected)
    data = "".join(text + "\n" for text in texts).encode()
    (tmp_path / "in.txt").write_bytes(data)
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(data))
    first = inside("translate", files / "model", "--quiet", *texts)
    assert (first.returncode, first.stdout, first.stderr) == (0, lines, "")
    assert regard("translate", files / "model", stdin=data).stdout == lines
    assert inside("translate", files / "model", "-i", tmp_path / "in.txt").stdout == lines
    done = inside("translate", files / "model", "-i", tmp_path / "in.txt.gz", "-o", tmp_path / "out.txt")
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == lines
    assert not list(tmp_path.glob("*.new"))


def test_exactly_one_line_for_each_line_in_utf_8_everywhere(files: Path) -> None:
    locale = {"LC_ALL": "C", "LANG": "C", "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    texts = ["a\u2028b", "a\x85b", "a\rb", "राहुल\x0bx", "", "\ufeffx", "last, without an end"]
    data = "\n".join(texts).encode()
    done = regard("translate", files / "model", "--quiet", stdin=data, environment=locale)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.count("\n") == len(texts) and done.stdout.endswith("\n")
    assert done.stdout.split("\n")[4] == ""


def test_sampled_bytes_make_no_lines(files: Path, inside: Inside) -> None:
    """A model that has learned little says any bytes, line ends among them."""
    data = "".join(source + "\n" for source in SOURCES).encode()
    done = inside("translate", files / "model", "--sample", "--temperature", "50", "--seed", "1", "-q", stdin=data)
    assert done.returncode == 0 and done.stdout.count("\n") == len(SOURCES)


def test_windows_line_ends_and_no_input(files: Path, inside: Inside) -> None:
    (one,) = package.load(files / "model", "cpu").translate([SOURCES[0]])
    assert inside("translate", files / "model", stdin=f"{SOURCES[0]}\r\n".encode()).stdout == one + "\n"
    done = inside("translate", files / "model", stdin=b"")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_json_is_one_object_a_line(files: Path, inside: Inside) -> None:
    done = inside("translate", files / "model", "--json", "--n-best", "3", SOURCES[0], "", " ".join(SOURCES[:5]))
    first, empty, long = (json.loads(line) for line in done.stdout.splitlines())
    assert first["source"] == SOURCES[0] and len(first["translations"]) == 3
    assert first["translations"][0].keys() == {"text", "score", "log_probability"}
    assert empty["source"] == "" and empty["translations"][0]["text"] == ""
    assert "in 5 parts" in long["notices"][0] and "in 5 parts" in done.stderr
    scores = [each["score"] for each in first["translations"]]
    assert scores == sorted(scores, reverse=True)


def test_n_best_is_rank_score_text(files: Path, inside: Inside) -> None:
    done = inside("translate", files / "model", "--n-best", "3", "--beam", "4", *SOURCES[:2])
    rows = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
    assert [row[0] for row in rows] == ["1", "2", "3"] * 2 and all(len(row) == 3 for row in rows)
    assert all(float(row[1]) <= 0 for row in rows)


def test_notices_go_to_standard_error_and_quiet_leaves_them_out(files: Path, inside: Inside) -> None:
    text = " ".join(SOURCES[:5])
    done = inside("translate", files / "model", text)
    assert done.stdout.count("\n") == 1 and done.stderr.startswith("regard: ") and done.stderr.count("\n") == 1
    assert inside("translate", files / "model", "--quiet", text).stderr == ""


def test_sampling_follows_its_seed(files: Path, inside: Inside) -> None:
    drawn = [inside("translate", files / "model", "--sample", "--seed", seed, *SOURCES[:5]).stdout for seed in "112"]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["NOWHERE", "text"], "nowhere"),
        (["PAIRS", "text"], "found a file"),
        (["MODEL", "text", "-i", "PAIRS"], "texts or --input"),
        (["MODEL", "-i", "NOWHERE"], "nowhere"),
        (["MODEL", "-i", "BYTES"], "bytes.txt, line 2 is not UTF-8"),
        (["MODEL", "text", "-o", "PAIRS/out.txt"], "pairs.tsv"),
        (["MODEL", "text", "-o", "/proc/out.txt"], "/proc/out.txt"),
        (["MODEL", "text", "--precision", "fp8"], "precision: expected auto, fp32 or bf16"),
        (["MODEL", "text", "--device", "foo"], "device"),
        (["MODEL", "text", "--device", "cuda:99"], "device"),
        (["MODEL", "text", "--beam", "2", "--n-best", "3"], "n_best"),
        (["MODEL", "text", "--look", "telescope"], "look: expected terminal or a file"),
        (["MODEL", "text", "--look", "NOWHERE/a.svg"], "expected a folder that is there"),
        (["MODEL", "text", "--look", "a.png", "--view", "sky"], "got 'sky'"),
        (["MODEL", "text", "--evidence"], "expected --look"),
        (["MODEL", "text", "--sample", "--temperature", "0"], "temperature"),
        (["MODEL", "text", "--sample", "--temperature", "inf"], "temperature"),
        (["MODEL", "text", "--length-penalty", "nan"], "length"),
    ],
)
def test_a_mistake_in_translate_is_one_line(
    arguments: list[str], said: str, files: Path, tmp_path: Path, inside: Inside
) -> None:
    (tmp_path / "bytes.txt").write_bytes(b"good\n\xff\xfe\n")
    names = {"MODEL": files / "model", "PAIRS": files / "pairs.tsv", "NOWHERE": tmp_path / "nowhere"}
    names["BYTES"] = tmp_path / "bytes.txt"
    given = [str(names.get(each, each)).replace("PAIRS/", f"{names['PAIRS']}/") for each in arguments]
    assert said in refused(inside("translate", *given))


def test_an_argument_that_is_no_utf_8_is_one_line_or_an_answer(files: Path) -> None:
    command = [sys.executable.encode(), b"-m", b"regard", b"translate", os.fsencode(files / "model"), b"a \xff b"]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0 or (done.returncode == 2 and done.stderr.startswith(b"regard: "))


def test_an_output_file_that_fails_keeps_the_old_one(files: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "bytes.txt").write_bytes(b"good\n\xff\xfe\n")
    (tmp_path / "out.txt").write_text("old")
    refused(inside("translate", files / "model", "-i", tmp_path / "bytes.txt", "-o", tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bytes.txt", "out.txt"]


def test_a_reader_that_goes_away_is_no_traceback(files: Path) -> None:
    command = f"yes 'The boy sees a mango.' | head -2000 | {sys.executable} -m regard translate {files / 'model'}"
    done = subprocess.run(["bash", "-c", f"{command} --beam 1 | head -1"], capture_output=True, timeout=120)
    assert done.stdout.count(b"\n") == 1 and done.stderr == b""


# evaluate


def test_evaluate_prints_scores_with_signatures(files: Path, inside: Inside) -> None:
    done = inside("evaluate", files / "model", files / "pairs.tsv")
    assert done.returncode == 0 and done.stderr == ""
    for part in ("BLEU", "chrF++", "TER", "exact", "tok:13a", "nw:2", "80 sources, 80 references"):
        assert part in done.stdout
    as_json = json.loads(inside("evaluate", files / "model", files / "pairs.tsv", "--json").stdout)
    assert as_json.keys() == {"bleu", "chrf", "ter", "exact", "sources", "references", "signatures"}
    assert f"{as_json['chrf']:6.2f}" in done.stdout and (as_json["sources"], as_json["references"]) == (80, 80)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["NOWHERE", "PAIRS"], "nowhere"),
        (["MODEL", "NOWHERE"], "nowhere"),
        (["MODEL", "BROKEN"], "line 2 is no pair"),
        (["MODEL", "EMPTY"], "empty"),
        (["MODEL", "PAIRS", "--from", "en"], "--from and --to go together"),
        (["MODEL", "PAIRS", "--precision", "fp8"], "precision"),
        (["MODEL", "PAIRS", "--device", "foo"], "device"),
    ],
)
def test_a_mistake_in_evaluate_is_one_line(
    arguments: list[str], said: str, files: Path, tmp_path: Path, inside: Inside
) -> None:
    (tmp_path / "broken.tsv").write_text("a\tb\nno tab\n")
    (tmp_path / "empty.tsv").write_text("")
    names = {"MODEL": files / "model", "PAIRS": files / "pairs.tsv", "NOWHERE": tmp_path / "nowhere"}
    names |= {"BROKEN": tmp_path / "broken.tsv", "EMPTY": tmp_path / "empty.tsv"}
    assert said in refused(inside("evaluate", *[names.get(each, each) for each in arguments]))
