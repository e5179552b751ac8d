"""Whether Ctrl-C came. Inside of an extension module an interrupt may become any error; then the error is not told."""

from __future__ import annotations

import os
import signal
from types import FrameType

EXIT_CODE = 130
"""128 and the number of the signal, as of programs that the signal ends"""


class Interrupts:
    """Remembers whether Ctrl-C came, unless whoever started the process has it ignored."""

    def __init__(self) -> None:
        self.came = False
        self.may_end_at_once = False
        """there is nothing to tidy up yet; and raised inside of an import, an interrupt may get lost"""

    def watch(self) -> None:
        """From now on, remember; and until `may_end_at_once` is False again, end the process."""
        self.may_end_at_once = True
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if self.may_end_at_once:
            os.write(2, b"regard: interrupted\n")
            os._exit(EXIT_CODE)
        raise KeyboardInterrupt


INTERRUPTS = Interrupts()
"""of this process"""
