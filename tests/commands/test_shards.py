"""`regard translate --shards`."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.batch.lines import no_claims, owners, wait_until
from tests.commands.run import SOURCES, Inside, refused

LINES = [*SOURCES, "", " ".join(SOURCES[:5]), *SOURCES[:10]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in LINES).encode()))
    return path


def test_the_joined_text_is_that_of_the_plain_command(files: Path, file: Path, tmp_path: Path, inside: Inside) -> None:
    model, shards = files / "model", tmp_path / "shards"
    options = ["--precision", "fp32", "--beam", "2", "--n-best", "2", "--keep", "numbers", "--json"]
    plain = inside("translate", model, "-i", file, "-q", *options).stdout
    message = refused(inside("translate", model, "--shards", shards, "--join"))
    assert "expected the folder of a sharded translation" in message
    given = ["translate", model, "-i", file, "--shards", shards, "--shard-lines", "40", "--threads", "1", *options]
    done = inside(*given)
    assert (done.returncode, done.stdout) == (0, "")
    *_, notices, last = done.stderr.splitlines()
    assert notices == f"regard: 1 notices about lines: {shards / 'notices'}"
    assert last == "regard: 92 lines are translated, in 3 shards; --join writes them as one text"
    joined = inside("translate", model, "--shards", shards, "--join")
    same = [json.loads(one) for one in joined.stdout.splitlines()], [json.loads(one) for one in plain.splitlines()]
    assert [answer["source"] for answer in same[0]] == LINES
    texts = [[answer["translations"][0]["text"] for answer in answers] for answers in same]
    assert sum(one == two for one, two in zip(*texts, strict=True)) >= 0.98 * len(LINES)
    done = inside("translate", model, "-i", file, "--shards", shards, "--join", "-o", tmp_path / "out.txt")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == joined.stdout
    (shards / "target" / "0000" / "0000001.txt").unlink()
    message = refused(inside("translate", model, "--shards", shards, "--join", "-o", tmp_path / "out.txt"))
    assert "1 of 3 shards is missing; the same command without --join translates them" in message
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == joined.stdout
    message = refused(inside(*given[:-1], "--workers", "2"))
    assert "begun with other options (as_json True; now False)" in message


def test_control_c_ends_all_workers(files: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("".join(f"{source} {number}\n" for number in range(100) for source in SOURCES))
    shards = tmp_path / "shards"
    command = ["translate", files / "model", "-i", many, "--shards", shards, "--workers", "2", "--threads", "1"]
    run = subprocess.Popen([sys.executable, "-m", "regard", *map(str, command)], stderr=subprocess.PIPE)
    wait_until(lambda: bool(owners(shards)))
    workers = owners(shards)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 130 and errors.decode().splitlines()[-1] == "regard: interrupted"
    assert b"Traceback" not in errors and no_claims(shards)
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["text", "--workers", "2"], "--workers: no effect here; expected --shards with it"),
        (["text", "--join", "--shard-lines", "5"], "--shard-lines, --join: no effect here; expected --shards with it"),
        (["text", "--shards", "S"], "TEXT: no effect here; expected no --shards with it"),
        (["-i", "FILE", "--shards", "S", "--look", "terminal"], "--look: no effect here; expected no --shards with it"),
        (["--shards", "S"], "--shards: expected --input with it"),
        (["-i", "FILE", "--shards", "S", "-o", "out.txt"], "--output: no effect here; expected --join with it"),
        (["--shards", "S", "--join", "--beam", "3", "--threads", "1"], "--beam, --threads: no effect here"),
        (["--shards", "S", "--join", "--workers", "3"], "--workers: no effect here; expected no --join with it"),
        (["-i", "/dev/null", "--shards", "S"], "/dev/null: expected a file, got a pipe or device"),
        (["-i", "NOWHERE", "--shards", "S"], "expected a file, and there is none"),
        (["-i", "FILE", "--shards", "FILE"], "expected a folder for the shards, got a file"),
        (["-i", "FILE", "--shards", "/proc/shards"], "/proc/shards: cannot be written"),
        (["-i", "FILE", "--shards", "S", "--device", "cuda:99"], "device: got 'cuda:99'"),
        (["-i", "FILE", "--shards", "S", "--beam", "2", "--n-best", "3"], "n_best"),
        (["-i", "FILE", "--shards", "S", "--precision", "fp8"], "precision: expected auto, fp32 or bf16"),
    ],
)
def test_mistakes_are_one_line(
    given: list[str], message: str, files: Path, file: Path, tmp_path: Path, inside: Inside
) -> None:
    names = {"FILE": str(file), "S": str(tmp_path / "shards"), "NOWHERE": str(tmp_path / "nowhere")}
    assert message in refused(inside("translate", files / "model", *(names.get(each, each) for each in given)))
    assert not (tmp_path / "shards").exists()


def test_a_line_that_is_not_utf_8_ends_the_command(files: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "bytes.txt").write_bytes(b"good\n\xff\n")
    shards = tmp_path / "shards"
    message = refused(inside("translate", files / "model", "-i", tmp_path / "bytes.txt", "--shards", shards, "-q"))
    assert "bytes.txt, line 2 is not UTF-8" in message and no_claims(shards)
