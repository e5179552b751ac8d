"""Trainings of the studio: what is refused, what is written, and what is known of finished ones."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import httpx
import pytest

from regard.cli import app
from regard.serving.settings import ServerSettings
from regard.serving.studio.training import parsed_settings
from regard.serving.studio.training_job import StudioTraining
from tests.serving.live import running
from tests.serving.studio.asking import events, get, post, send


def job(folder: Path, **more: object) -> StudioTraining:
    given = {
        "run": str(folder),
        "data": ["a.en", "a.mr"],
        "dev": ["dev.tsv"],
        "task": "translate",
        "recipe": "rnn",
        "settings": {"training.epochs": "5"},
        "minutes": 2.5,
        "languages": ["en", "mr"],
        "reverse": True,
        "seed": 3,
        "threads": 1,
        "device": None,
        "precision": "auto",
    }
    return StudioTraining(**(given | more))  # type: ignore[arg-type]


def test_the_command_trains_the_same_model(tmp_path: Path) -> None:
    import typer.main

    name, *arguments = job(tmp_path / "m").command
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    options = command.make_context(name, arguments).params
    assert [str(path) for path in options["pairs"]] == ["a.en", "a.mr"]
    assert (options["minutes"], options["recipe"], options["seed"], options["reverse"]) == (2.5, "rnn", 3, True)
    assert (options["from_"], options["to"], options["set_"]) == ("en", "mr", ["training.epochs=5"])


def test_a_job_is_written_and_read(tmp_path: Path) -> None:
    given = job(tmp_path / "m")
    (tmp_path / "m.data").mkdir()
    given.write()
    assert StudioTraining.read(tmp_path / "m") == given
    assert not given.has_begun and not given.is_done
    (tmp_path / "m.data" / "job.json").write_text("{}")
    with pytest.raises(ValueError, match="expected the options of a training of the studio"):
        StudioTraining.read(tmp_path / "m")


def test_settings() -> None:
    assert parsed_settings("training.epochs = 5\n\nmodel.score=general\n") == {
        "training.epochs": "5",
        "model.score": "general",
    }
    with pytest.raises(ValueError, match=r"settings: expected KEY=VALUE, such as training\.epochs=5, got '--out=x'"):
        parsed_settings("--out=x")


def test_finished_models_are_listed(work_address: str, translator_folder: Path) -> None:
    known = get(work_address, "/training")
    assert known["refusal"] is None and known["active"] is None
    runs = {run["name"]: run for run in known["runs"]}
    assert runs["toy"]["state"] == "finished" and not runs["toy"]["resumable"]
    stream = httpx.get(f"{work_address}/api/studio/training/toy/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    (status, entries, end) = events(stream.text)
    assert status[1]["state"] == "finished" and end[0] == "end"
    logged = [json.loads(line) for line in (translator_folder / "log.jsonl").read_text().splitlines()]
    assert [entry["kind"] for entry in entries[1]] == [entry["kind"] for entry in logged]
    later = httpx.get(f"{work_address}/api/studio/training/toy/events", headers={"Last-Event-ID": "999999"})
    assert [name for name, _ in events(later.text)] == ["status", "restart", "entries", "end"]
    content = get(work_address, "/training/toy/history")["content"]
    assert len(content["moments"]) == sum(entry["kind"] == "validation" for entry in logged)


def test_what_is_refused(work_address: str, tmp_path: Path) -> None:
    data = [("pairs.tsv", "a\tb\n")]
    assert send(work_address, "/training", data, name="../x")[0] == 422
    large = [("pairs.tsv", b"a\tb\n" * (1 << 21))]  # 8 MiB: more than other requests may have
    assert send(work_address, "/training", large, name="toy")[0] == 409
    assert send(work_address, "/training", data, name="toy") == (409, "name: 'toy' is taken; expected another one")
    wrong = send(work_address, "/training", data, name="new", recipe="classify")
    assert wrong == (422, "recipe: expected rnn or transformer or article for the task translate, got 'classify'")
    assert send(work_address, "/training", data, name="new", source="en")[0] == 422
    assert send(work_address, "/training", data, name="new", settings="x")[0] == 422
    assert send(work_address, "/training", data, name="new", minutes="0")[0] == 422
    assert post(work_address, "/training/none/stop")[0] == 409
    assert post(work_address, "/training/toy/resume")[0] == 404
    assert get(work_address, "/training/none/history")[0] == 404


def test_strangers_start_no_programs(tmp_path: Path) -> None:
    settings = ServerSettings([], host="0.0.0.0", studio=True, work=tmp_path / "work")
    with running(settings) as address:
        assert "only by a server on 127.0.0.1" in get(address, "/training")["refusal"]
        for answer in (
            send(address, "/training", [("a.tsv", "a\tb\n")], name="new"),
            post(address, "/training/new/stop"),
            post(address, "/training/new/resume"),
        ):
            assert answer[0] == 403
    assert not (tmp_path / "work").exists()


def test_a_training_that_fails_says_why(tmp_path: Path) -> None:
    """And what an earlier server trained is there again, with the command that trains it."""
    work = tmp_path / "work"
    with running(ServerSettings([], studio=True, work=work)) as address:
        started = send(address, "/training", [("pairs.tsv", "no tab here\n")], name="bad")
        assert started["state"] == "running"
        assert "bad is running" in send(address, "/training", [("pairs.tsv", "a\tb\n")], name="other")[1]
        with httpx.stream("GET", f"{address}/api/studio/training/bad/events", timeout=60) as stream:
            states = [data for name, data in events("".join(stream.iter_text())) if name == "status"]
        assert states[-1]["state"] == "failed"
        assert "no pair in" in states[-1]["failure"] and "no tab" in states[-1]["failure"]
        again = send(address, "/training", [("other.tsv", "still no tab\n")], name="bad")  # its name is free again
        assert again["state"] == "running" and "other.tsv" in again["command"]
        assert post(address, "/training/bad/stop")["state"] == "stopping"
    with running(ServerSettings([], studio=True, work=work)) as address:
        (run,) = get(address, "/training")["runs"]
        assert run["state"] == "stopped" and run["resumable"]
        assert shlex.split(run["command"])[:2] == ["regard", "train"]
