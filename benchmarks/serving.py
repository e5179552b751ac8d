"""`regard serve` under load, for long, and with hostile requests. Everything is on this machine.

    python benchmarks/serving.py load MODEL [--seconds 60] [--clients 64] [--rounds 1]
    python benchmarks/serving.py soak MODEL [--requests 50000]
    python benchmarks/serving.py hostile MODEL [--requests 1000]

`load`: clients, in a process of their own, each send one sentence after the other; the server with batching and without
it take turns. `soak`: mixed requests, and the memory of the server. `hostile`: markup, control characters, texts of a
megabyte, broken UTF-8, nested JSON, slow bodies, foreign Host headers; each must get a clear 4xx or a right answer.
"""

from __future__ import annotations

import argparse
import sys

from serving_parts import hostile, load, soak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for name, module in (("load", load), ("soak", soak), ("hostile", hostile)):
        part = parts.add_parser(name)
        part.add_argument("model", help="the folder of a translator from English")
        module.add_options(part)
        part.set_defaults(run=module.run)
    given = parser.parse_args()
    return int(given.run(given))


if __name__ == "__main__":
    sys.exit(main())
