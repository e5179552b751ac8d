"""`python -m regard` is `regard`."""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
"""the exit code after Ctrl-C: 128 and the number of the signal"""
USE_TORCH = ("demo", "train", "translate", "classify", "evaluate", "align")


def main() -> None:
    """Run the command line. Ctrl-C is no reason for a traceback, even while modules are still being imported."""
    interrupts = _Interrupts()
    try:
        from regard.cli import main as run

        if sys.argv[1:2] and sys.argv[1] in USE_TORCH and "--help" not in sys.argv:
            import torch  # noqa: F401
        interrupts.may_end_at_once = False
        run()
    except SystemExit as end:
        if not interrupts.came or not end.code:
            raise
        sys.exit(INTERRUPTED)
    except BaseException:  # inside of an extension's import an interrupt may become any error
        if not interrupts.came:
            raise
        print("regard: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


class _Interrupts:
    """Remembers whether Ctrl-C came, unless whoever started the process has it ignored."""

    def __init__(self) -> None:
        self.came = False
        self.may_end_at_once = True
        """there is nothing to tidy up yet; and raised inside of an import, an interrupt may get lost"""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if self.may_end_at_once:
            os.write(2, b"regard: interrupted\n")
            os._exit(INTERRUPTED)
        raise KeyboardInterrupt


if __name__ == "__main__":
    main()
