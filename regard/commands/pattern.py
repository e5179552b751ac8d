"""`regard pattern`: draw an attention pattern."""

from __future__ import annotations

from typing import Annotated

import typer


def pattern(
    text: Annotated[str, typer.Argument(help="Such as 'window(4) | global(0)' or 'per_head(causal, strided(4))'.")],
    queries: Annotated[int, typer.Option("--queries", "-n", min=1, max=4096, help="How many queries to draw.")] = 32,
    keys: Annotated[int | None, typer.Option(min=1, max=4096, help="How many keys (default: as many).")] = None,
    position: Annotated[int, typer.Option(min=0, max=2**31 - 5000, help="Where the first query stands.")] = 0,
) -> None:
    """Draw which query may look at which key: a row a query, a column a key, ■ where it may look.

    Beyond 64 positions a cell holds several, and its shade (· ░ ▒ ▓ █) is the fraction of pairs that may look.

    Names: full, causal, window, strided, dilated, global, random, blocks, longformer, bigbird, per_head; also & and |.
    Over a picture of h × w patches: grid(h, w).window(reach), .row, .column, .axial.
    """
    from regard.core.pattern_text import parse

    typer.echo(parse(text).draw(queries, keys, position))
