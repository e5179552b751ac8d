"""Remembering Ctrl-C. An interrupt inside an extension module can surface as any error, which is then not reported."""

from __future__ import annotations

import os
import signal
from types import FrameType

EXIT_CODE = 130  # 128 plus the number of SIGINT, as for programs that are terminated by the signal


class InterruptFlag:
    """Remembers whether Ctrl-C was pressed, unless SIGINT is ignored or handled otherwise."""

    def __init__(self) -> None:
        self.received = False
        self.exit_at_once = False
        """nothing needs to be cleaned up yet; also, a KeyboardInterrupt raised during an import may get lost"""

    def watch(self) -> None:
        """Install the signal handler; it ends the process until `exit_at_once` is set to False."""
        self.exit_at_once = True
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.received = True
        if self.exit_at_once:
            os.write(2, b"regard: interrupted\n")
            os._exit(EXIT_CODE)
        raise KeyboardInterrupt


interrupt_flag = InterruptFlag()  # whether this process was interrupted
