"""eflomal 2.0: links of both directions, by its own code with its own settings (model 3, three samplers).

    PYTHONPATH=benchmarks benchmarks/.peers/eflomal/bin/python -m peers.eflomal_peer \\
        --source S --target T --forward F --backward B

Files hold a sentence a line, tokens between blanks. Links are written source first in both directions. It draws at
random and takes no seed: another run gives other links.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

from eflomal import Aligner  # type: ignore[import-not-found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("source", "target", "forward", "backward"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    began = time.perf_counter()
    with options.source.open(encoding="utf-8") as source, options.target.open(encoding="utf-8") as target:
        Aligner().align(
            source, target, links_filename_fwd=str(options.forward), links_filename_rev=str(options.backward)
        )
    seconds = time.perf_counter() - began
    # eflomal's samplers are a program of their own.
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({"seconds": seconds, "peak_bytes": peak * 1024}))


if __name__ == "__main__":
    main()
