"""`regard pattern`: draw an attention pattern."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option


def pattern(
    text: Annotated[
        str, Argument(help="A pattern, such as 'window(4) | global(0)' or 'per_head(causal, strided(4))'.")
    ],
    queries: Annotated[int, Option("--queries", "-n", min=1, max=4096, help="The number of queries.")] = 32,
    keys: Annotated[
        int | None, Option(min=1, max=4096, help="The number of keys. Default: as many as queries.")
    ] = None,
    position: Annotated[int, Option(min=0, max=2**31 - 5000, help="The position of the first query.")] = 0,
) -> None:
    """Draw which query may attend to which key: one row per query, one column per key, ■ where it may.

    Beyond 64 positions a cell stands for several, and its shade (· ░ ▒ ▓ █) for the fraction of allowed pairs.

    Names: full, causal, window, strided, dilated, global, random, blocks, longformer, bigbird, per_head, combined by &
    and |. Over an image of h × w patches: grid(h, w).window(reach), .row, .column, .axial.
    """
    from regard.core.pattern_text import parse

    typer.echo(parse(text).draw(queries, keys, position))
