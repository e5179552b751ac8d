"""`regard pattern`."""

from __future__ import annotations

import pytest

from tests.commands.run import Inside


def test_pattern_is_drawn(inside: Inside) -> None:
    done = inside("pattern", "window(1) & causal", "-n", "3")
    assert done.returncode == 0
    assert done.stdout == "■ · ·\n■ ■ ·\n· ■ ■\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_a_users_mistake_is_one_message_and_no_traceback(
    arguments: tuple[str, ...], message: str, inside: Inside
) -> None:
    done = inside(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert message in done.stderr and "Traceback" not in done.stderr
