"""The folder of a comparison."""

from pathlib import Path

from regard.experiments.compare import folder as layout


def test_what_killed_processes_wrote_is_removed(tmp_path: Path) -> None:
    runs = tmp_path / "runs" / "rnn"
    (runs / "seed-1").mkdir(parents=True)
    for name in ("seed-1-stderr.txt", "seed-1/log.jsonl"):
        (runs / name).touch()
    layout.remove_error_files(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["log.jsonl"]
