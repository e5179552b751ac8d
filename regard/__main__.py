"""The command line as `python -m regard`."""

import sys

from regard.runtime.interrupts import EXIT_CODE, interrupt_flag

COMMANDS_WITH_TORCH = ("demo", "train", "translate", "classify", "evaluate", "align", "compare", "doctor")


def main() -> None:
    """Run the command line. Ctrl-C prints no traceback, even while modules are still being imported."""
    interrupt_flag.watch()
    try:
        from regard.cli import main as run

        if sys.argv[1:2] and sys.argv[1] in COMMANDS_WITH_TORCH and "--help" not in sys.argv:
            import torch  # noqa: F401
        interrupt_flag.exit_at_once = False
        run()
    except (Exception, KeyboardInterrupt):
        if not interrupt_flag.received:
            raise
        print("regard: interrupted", file=sys.stderr)
        sys.exit(EXIT_CODE)


if __name__ == "__main__":
    main()
