"""`regard doctor`: what is installed, what can run here, and a self-test."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from typer import Option

from regard.commands.options import Threads, set_threads
from regard.commands.screen import Terminal


def doctor(
    no_test: Annotated[bool, Option("--no-test", help="Skip the self-test.")] = False,
    json_: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    threads: Threads = None,
) -> None:
    """Print versions, devices, which kernels can run here and why others cannot, and test them for a few seconds.

    Paste the output into a bug report: it has no names of users, no paths and no secrets. The exit code is 1 if a check
    fails.
    """
    from regard.doctor.report import as_text, diagnose, has_passed

    set_threads(threads)
    screen = Terminal(quiet=no_test)
    try:
        screen.status("testing")
        report = diagnose(test=not no_test)
    finally:
        screen.close()
    typer.echo(json.dumps(report, ensure_ascii=False, indent=2) if json_ else as_text(report))
    if not has_passed(report):
        raise typer.Exit(1)
