"""Is anything lost when a run is killed (-9) at a random moment?

    python benchmarks/kills.py --kills 50 [--seed 1] [--scenario train best compare shards]

Each scenario runs a command to its end, undisturbed. Then it runs the same again in a new folder and kills it at random
moments: the process alone, which its workers must notice, or all its processes at once. After every kill, a model that
was validated must load and translate; the command is then started again, with --resume if the run had begun, and is
killed again. In the end it must come to the same results, byte for byte, as the run that was never killed, and leave no
files behind. A new scenario is an entry of `SCENARIOS`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzing.world import PAIRS, recipe_settings

EPOCHS = {"train": 60, "best": 12, "compare": 20}
KILLS_PER_RUN = 4  # after so many kills, a run may end
SHARD_KILLS = (
    2  # the same for shards: one whose worker is killed three times is given up, until the command starts again
)
SHARD_LINES, LINES = 20, 1200
TIMEOUT = 300.0  # seconds that a run may take
COMPARE = """
import sys
from pathlib import Path
import regard
here, out = Path(sys.argv[1]), Path(sys.argv[2])
regard.compare(here / "pairs.tsv", out, recipes=[here / "compare.toml", here / "other.toml"], seeds=1, minutes=None,
               device="cpu", precision="fp32", jobs=2, resume="--resume" in sys.argv)
"""
BEST = """
import sys
from pathlib import Path
import regard
here, out = Path(sys.argv[1]), Path(sys.argv[2])
regard.train_best(here / "pairs.tsv", out, recipe=here / "best.toml", members=2, jobs=int(sys.argv[3]),
                  device="cpu", precision="fp32", threads=1, resume="--resume" in sys.argv)
"""


@dataclass(frozen=True)
class Scenario:
    """A command that can be killed and started again."""

    name: str
    command: Callable[[Path, Path], Sequence[str | Path]]  # of the folder with the data, and of the folder of results
    has_begun: Callable[[Path], bool]  # whether --resume is needed
    results: Callable[[Path], dict[str, Any]]  # what must be the same as without kills
    models: Callable[[Path], list[Path]]  # folders of models that must load once they are validated
    kills: int = KILLS_PER_RUN


def _train(here: Path, out: Path) -> Sequence[str | Path]:
    fixed: list[str | Path] = ["--recipe", here / "train.toml", "--device", "cpu", "--threads", "1", "--quiet"]
    return [sys.executable, "-m", "regard", "train", here / "pairs.tsv", "--out", out, *fixed]


def _python(script: str, *more: str) -> Callable[[Path, Path], Sequence[str | Path]]:
    return lambda here, out: [sys.executable, "-c", script, here, out, *more]


def _model(folder: Path) -> dict[str, Any]:
    """Return what a model's folder holds of results; times and the size of the log differ from run to run."""
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    kept = {name: card.get(name) for name in ("scores", "ended", "search", "data")}
    files = {name: (folder / name).read_bytes() for name in ("model.safetensors", "recipe.toml")}
    return kept | files | {"vocabulary": sorted(file.read_bytes() for file in folder.glob("*r*e*.json"))}


def _compared(folder: Path) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for run in sorted(folder.glob("runs/*/seed-*")):
        result = json.loads((run / "result.json").read_text(encoding="utf-8"))
        results[f"{run.parent.name} scores"] = result["scores"], result["hypotheses"]
        results |= {f"{run.parent.name} {name}": value for name, value in _model(run / "model").items()}
    return results


def _shards(here: Path, out: Path) -> Sequence[str | Path]:
    fixed: list[str | Path] = ["--workers", "2", "--threads", "1", "--shard-lines", str(SHARD_LINES), "--quiet"]
    return [sys.executable, "-m", "regard", "translate", here / "model", "-i", here / "lines", "--shards", out, *fixed]


def _joined(folder: Path) -> dict[str, Any]:
    from regard.batch.join import join_shards

    with tempfile.TemporaryDirectory() as name:
        join_shards(folder, Path(name) / "joined")
        return {"translations": (Path(name) / "joined").read_bytes()}


SCENARIOS = [
    Scenario("train", _train, Path.exists, _model, lambda out: [out]),
    Scenario(
        "best",
        _python(BEST, "1"),
        lambda out: out.exists() or (out.with_name(f"{out.name}.parts") / "plan.json").exists(),
        _model,
        lambda out: sorted(out.with_name(f"{out.name}.parts").glob("*-[0-9]")),
    ),
    Scenario("compare", _python(COMPARE), Path.exists, _compared, lambda out: sorted(out.glob("runs/*/seed-*/model"))),
    Scenario("shards", _shards, lambda _: False, _joined, lambda _: [], SHARD_KILLS),
]


def write_files(here: Path) -> None:
    """Write the data, the recipes, and a model with lines to translate."""
    import regard
    from regard.config.recipe_text import read_recipe, to_toml

    here.mkdir()
    (here / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), encoding="utf-8")
    for name, epochs in [*EPOCHS.items(), ("other", EPOCHS["compare"])]:
        more = {"training.epochs": epochs, "training.validations": 20, "training.average": 0.9}
        settings = recipe_settings("rnn") | more | ({"model.score": "general"} if name == "other" else {})
        (here / f"{name}.toml").write_text(to_toml(read_recipe("rnn", settings)), encoding="utf-8")
    regard.train(PAIRS, here / "model", recipe=here / "best.toml", device="cpu", threads=1)
    lines = [f"{PAIRS[number % len(PAIRS)][0]} {number}\n" for number in range(LINES)]
    (here / "lines").write_text("".join(lines), encoding="utf-8")


def start(scenario: Scenario, here: Path, out: Path) -> subprocess.Popen[str]:
    resume = ["--resume"] if scenario.has_begun(out) else []
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [str(part) for part in (*scenario.command(here, out), *resume)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)


def finish(scenario: Scenario, here: Path, out: Path) -> float:
    """Run to the end, and return how many seconds that took."""
    began = time.monotonic()
    run = start(scenario, here, out)
    _, errors = run.communicate(timeout=TIMEOUT)
    if run.returncode:
        raise SystemExit(f"{scenario.name}: {out}: exit code {run.returncode}: {errors[-2000:]}")
    return time.monotonic() - began


def descendants(process: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []
    return [each for child in children for each in (child, *descendants(child))]


def kill(run: subprocess.Popen[str], everything: bool) -> str:
    """Kill the process, or all of them; wait until all have ended; return what it wrote on standard error."""
    others = descendants(run.pid)
    run.send_signal(signal.SIGKILL)
    for process in others if everything else []:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    _, errors = run.communicate()
    deadline = time.monotonic() + 30
    while any(_is_running(process) for process in others):
        if time.monotonic() > deadline:
            raise SystemExit("a worker did not notice that its parent was killed")
        time.sleep(0.01)
    return errors


def _is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def check_models(scenario: Scenario, out: Path) -> int:
    """Load every model that was validated, and translate with it; return how many there are."""
    import regard

    validated = [folder for folder in scenario.models(out) if (folder / "model.safetensors").exists()]
    for folder in validated:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that its training has not ended
            model = regard.load(folder, "cpu")
        assert isinstance(model, regard.Translator) and isinstance(model.translate(PAIRS[0][0]), str)
    return len(validated)


def killed_run(
    scenario: Scenario, here: Path, out: Path, seconds: float, kills: int, draw: random.Random
) -> tuple[int, int]:
    """Kill a run up to `kills` times, then let it end; return how many kills came in time, and how many loads."""
    done = loads = 0
    for _ in range(kills):
        run = start(scenario, here, out)
        try:
            _, errors = run.communicate(timeout=draw.uniform(0.1, seconds))
        except subprocess.TimeoutExpired:
            kill(run, everything=draw.random() < 0.5)
            done += 1
            loads += check_models(scenario, out)
            continue
        if run.returncode:
            raise SystemExit(f"{scenario.name}: {out}: exit code {run.returncode}: {errors[-2000:]}")
        break
    else:
        finish(scenario, here, out)
    return done, loads


def run_scenario(scenario: Scenario, folder: Path, kills: int, draw: random.Random) -> list[str]:
    """Kill a scenario `kills` times in all, in as many runs as that takes; return what was wrong."""
    here, whole = folder / "data", folder / f"{scenario.name}-whole"
    seconds = finish(scenario, here, whole)
    expected, wrong, done, loads, runs = scenario.results(whole), [], 0, 0, 0
    while done < kills:
        place = folder / f"{scenario.name}-{runs}"
        place.mkdir()
        more, loaded = killed_run(scenario, here, place / "out", seconds, min(scenario.kills, kills - done), draw)
        results = scenario.results(place / "out")
        differing = [name for name in expected if results.get(name) != expected[name]]
        left = sorted(file.name for file in place.iterdir() if file.name != "out")
        left += sorted(str(file.relative_to(place)) for file in place.rglob("*.new"))
        wrong += [f"{place.name}: other {', '.join(differing)}"] if differing else []
        wrong += [f"{place.name}: left behind {', '.join(left)}"] if left else []
        done, loads, runs = done + more, loads + loaded, runs + 1
    verdict = "; ".join(wrong) or "all results as without kills"
    print(f"{scenario.name}: {done} kills in {runs} runs of {seconds:.0f} s, {loads} loads: {verdict}", flush=True)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=50, help="of all scenarios together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenario", nargs="+", choices=[each.name for each in SCENARIOS], help="default: all")
    options = parser.parse_args()
    chosen = [each for each in SCENARIOS if options.scenario is None or each.name in options.scenario]
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name) / "data")
        for number, scenario in enumerate(chosen):
            share = (options.kills + number) // len(chosen)  # shares that add up to all
            wrong += run_scenario(scenario, Path(name), share, random.Random(f"{scenario.name} {options.seed}"))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
