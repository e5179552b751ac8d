"""A user's mistake is one line on standard error, whatever the terminal, the locale and the streams are."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.commands.errors import describe, one_line
from tests.commands.run import SOURCES, Inside, refused, regard


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["train", "a.tsv", "--minuts", "3"],
            "regard: no option '--minuts'; did you mean --minutes? (see regard train",
        ),
        (["translate", "m", "--bem", "3"], "no option '--bem'; did you mean --beam?"),
        (["tarin"], "regard: no command 'tarin'; did you mean train? (see regard --help)"),
        (["--verson"], "did you mean --version?"),
        (["translate"], "regard: missing argument"),
        (["train", "a.tsv"], "regard: missing option '--out'"),
        (["pattern", "full", "-n", "0"], "--queries"),
        (["pattern", "full", "-n", "many"], "got 'many' (see regard pattern --help)"),
        (["pattern", "full", "--keys=few"], "got 'few' (see regard pattern --help)"),
        (["pattern", "full", "-n"], "requires an argument"),
        (["pattern", "full", "more"], "more"),
        (["evaluate", "m", "p", "--quiet=3"], "no option '--quiet'"),
        (["translate", "no\nmodel", "x"], "regard: no model: expected the folder of a model, found nothing"),
    ],
)
def test_usage_errors_are_one_line(given: list[str], message: str, inside: Inside) -> None:
    assert message in refused(inside(*given))


@pytest.mark.parametrize("columns", ["60", "80", "120"])
@pytest.mark.parametrize("command", ["", "train", "translate", "classify", "evaluate", "align", "look", "pattern"])
def test_help_fits_the_terminal(
    command: str,
    columns: str,
    inside: Inside,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    done = inside(*([command] if command else []), "--help")
    assert done.returncode == 0 and "\x1b" not in done.stdout
    lines = done.stdout.split("\n")
    assert max(map(len, lines)) <= int(columns)
    assert not [line for line in lines if re.fullmatch(r"\s+\S{1,2}", line)], "words in pieces"


def test_a_message_is_one_line_of_what_can_be_printed() -> None:
    assert one_line("  a\n  b\tc\x1b[2J\u2028d\x85e ") == "a b\\tc\\x1b[2J\\u2028d\\x85e"
    assert describe(FileNotFoundError(2, "No such file or directory", "a.txt")) == "a.txt: No such file or directory"
    assert describe(OSError(28, "No space left on device")) == "No space left on device"
    assert describe(MemoryError()) == "out of memory"


ODD = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "TERM": "dumb"}


def test_help_and_errors_are_utf_8_everywhere() -> None:
    done = regard("pattern", "—é", environment=ODD)
    assert done.returncode == 2 and done.stderr.startswith("regard: ") and done.stderr.count("\n") == 1
    assert "■" in regard("pattern", "full", environment=ODD).stdout


def shell(command: str, model: Path) -> subprocess.CompletedProcess[bytes]:
    script = command.replace("REGARD", f"{sys.executable} -m regard").replace("MODEL", str(model))
    return subprocess.run(["bash", "-c", script], capture_output=True, timeout=120)


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("REGARD translate MODEL x >&-", 2, b"regard: standard output is closed"),
        ("REGARD translate MODEL <&-", 2, b"regard: standard input is closed"),
        ("REGARD pattern full > /dev/full", 2, b"regard: No space left on device"),
        ("REGARD pattern nothing 2>&-", 2, b""),
    ],
)
def test_closed_and_full_streams(command: str, code: int, message: bytes, files: Path) -> None:
    done = shell(command, files / "model")
    assert done.returncode == code and done.stderr.startswith(message), done.stderr[-500:]
    assert done.stderr.count(b"\n") == (1 if message else 0)


def test_output_into_a_pipe_of_the_shell(files: Path) -> None:
    done = shell(f"REGARD translate MODEL -q -o >(tr a-z A-Z) '{SOURCES[0]}' '{SOURCES[1]}' | cat", files / "model")
    assert done.returncode == 0 and done.stdout.count(b"\n") == 2 and done.stderr == b""


def test_names_that_are_not_utf_8(files: Path, tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff\xe9.txt"
    command = [sys.executable.encode(), b"-m", b"regard", b"translate", os.fsencode(files / "model"), b"-i", odd]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith(b"regard: ") and b"there is none" in done.stderr
    with open(odd, "wb") as file:
        file.write(SOURCES[0].encode())
    assert subprocess.run([*command, b"-o", odd + b"2"], timeout=60).returncode == 0
    assert os.path.exists(odd + b"2")


def test_an_interrupt_leaves_nothing_behind(files: Path, tmp_path: Path) -> None:
    """While it waits for standard input."""
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "translate", str(files / "model"), "-o", str(tmp_path / "out.txt")],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    began, there = time.monotonic(), 0
    while there < 10:  # it is there for good, not just to see whether it can be written
        assert time.monotonic() - began < 60
        time.sleep(0.05)
        there = there + 1 if list(tmp_path.iterdir()) else 0
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130 and message == b"regard: interrupted\n" and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "line 1: damaged"),
        (b"7", "expected an object, got 7"),
        (b"\xff", "line 1: damaged"),
        (b'{"kind": "validation", "probes": 7}', "probes: expected a list, got 7"),
        (b'{"kind": "validation", "probes": [7]}', "expected a trace"),
        (b"", "expected validations"),
    ],
)
def test_a_damaged_log_is_named(line: bytes, message: str, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "log.jsonl").write_bytes(line + b"\n")
    report = refused(inside("look", tmp_path / "model", "--history", "-o", tmp_path / "a.html"))
    assert message in report and "log.jsonl" in report
    assert not (tmp_path / "a.html").exists()


def test_a_damaged_trace_is_named(files: Path, tmp_path: Path, inside: Inside) -> None:
    inside("translate", files / "model", "--look", tmp_path / "t.json", SOURCES[0])
    report = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    (tmp_path / "t.json").write_text(json.dumps(report | {"attentions": 3}))
    message = refused(inside("look", tmp_path / "t.json"))
    assert message == f"regard: {tmp_path / 't.json'}, trace 1: attentions: expected a list, got 3\n"


def test_out_that_is_a_file_offers_nothing_that_would_replace_it(files: Path, inside: Inside) -> None:
    for more in ([], ["--overwrite"]):
        message = refused(inside("train", files / "pairs.tsv", "--out", files / "pairs.tsv", *more))
        assert "pairs.tsv: expected a folder for the model, got a file" in message and "--overwrite" not in message


def test_out_that_cannot_be_made_is_refused_before_the_pairs_are_read(tmp_path: Path, inside: Inside) -> None:
    message = refused(inside("train", tmp_path / "nowhere.tsv", "--out", "/proc/model"))
    assert "/proc/model: cannot be made" in message
    message = refused(inside("train", tmp_path / "nowhere.tsv", "--out", tmp_path / "m", "--set", "model.heads=3"))
    assert "heads: expected a divisor of dim = 256, got 3" in message


def test_a_message_of_a_million_letters_is_shortened() -> None:
    shown = one_line("expected this, got " + "x" * 10**6 + " at the end")
    assert len(shown) < 5_000 and shown.startswith("expected this, got x") and shown.endswith("x at the end")
