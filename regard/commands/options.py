"""Options that several commands share, as annotated types for their signatures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[Path, typer.Argument(help="The folder of a model.")]

# Which texts, and where the results go

Texts = Annotated[list[str] | None, typer.Argument(help="Texts; none: lines of -i, or of standard input.")]
Input = Annotated[Path | None, typer.Option("--input", "-i", help="A text file (.gz too), a line each.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write here, not on standard output.")]
JsonLines = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notices.")]

# Which side of a file of pairs is the source

Reverse = Annotated[bool, typer.Option("--reverse", help="The second side is the source.")]
From = Annotated[str | None, typer.Option("--from", metavar="LANGUAGE", help="Which side of a `translation`.")]
To = Annotated[str | None, typer.Option(metavar="LANGUAGE")]

# Attention

Look = Annotated[
    list[str] | None,
    typer.Option(
        help="Show what each word looked at: terminal, or a .html, .svg, .png, .pdf or .json file. Several if wanted."
    ),
]
Evidence = Annotated[
    bool, typer.Option("--evidence", help="Of --look: test whether the weights mean anything. Slower.")
]

# The device

Device = Annotated[str | None, typer.Option(help="cpu or cuda.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads.")]
Precision = Annotated[str, typer.Option(help="auto, fp32 or bf16.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31)]


def set_threads(threads: int | None) -> None:
    """Let torch use that many CPU threads; None: as many as it chooses."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
