"""`python -m regard` is `regard`."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C is no reason for a traceback, even while it is still being imported."""
    try:
        from regard.cli import main as run

        run()
    except KeyboardInterrupt:
        print("regard: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
