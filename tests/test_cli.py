"""The commands as a user runs them."""

import subprocess
import sys

import pytest


def regard(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "regard.cli", *arguments], capture_output=True, text=True, encoding="utf-8", timeout=120
    )


def test_pattern_is_drawn() -> None:
    done = regard("pattern", "window(1) & causal", "-n", "3")
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
def test_a_users_mistake_is_one_message_and_no_traceback(arguments: tuple[str, ...], said: str) -> None:
    done = regard(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr and "Traceback" not in done.stderr


def test_demo_walks_through_the_three_stages() -> None:
    done = regard("demo")
    assert done.returncode == 0 and done.stderr == ""
    for part in ("1  Scores", "2  Weights", "3  Weighted sum", "राहुल", "sparsemax", "bigbird", "kernel   union"):
        assert part in done.stdout


def test_version_and_help() -> None:
    assert regard("--version").stdout.startswith("regard 0.")
    said = regard("--help").stdout
    assert "demo" in said and "pattern" in said
