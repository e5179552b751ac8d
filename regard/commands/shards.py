"""`regard translate --shards`: translate a large file in shards, and join them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from typer import Option

from regard.commands.groups import given
from regard.commands.options import DeviceOptions, TextOptions, check_distinct, refuse_idle
from regard.commands.screen import Terminal, complain
from regard.commands.streams import open_results
from regard.commands.translate_options import ContentOptions, SearchOptions

Shards = Annotated[
    Path | None,
    Option(
        "--shards",
        metavar="DIR",
        help="Translate --input in shards, which are written to this folder. The same command on several machines that "
        "share the folder divides the work; started again, it does what is missing.",
    ),
]
ShardLines = Annotated[int | None, Option(min=1, help="With --shards: the lines of a shard. Default: 2000.")]
Workers = Annotated[
    int | None,
    Option(min=1, max=1000, help="With --shards: the processes on this machine. Default: one for each GPU, else 1."),
]
Join = Annotated[
    bool, Option("--join", help="With --shards: write the translations of all shards as one text, to -o or stdout.")
]


@dataclass(frozen=True)
class ShardingOptions:
    """The options of `translate` that are about shards."""

    shards: Shards = None
    shard_lines: ShardLines = None
    workers: Workers = None
    join: Join = False

    def __post_init__(self) -> None:
        others = {"--shard-lines": self.shard_lines, "--workers": self.workers, "--join": self.join}
        if self.shards is None:
            refuse_idle(others, "expected --shards with it")
        elif self.join:
            refuse_idle(others | {"--join": None}, "expected no --join with it")


def run_sharded(
    sharding: ShardingOptions,
    models: Sequence[Path],
    texts: TextOptions,
    search: SearchOptions,
    content: ContentOptions,
    on: DeviceOptions,
    as_json: bool,
    quiet: bool,
) -> None:
    """Translate the input in shards, or with --join write what is translated."""
    from regard.text.formats.registry import is_document

    if sharding.join:
        idle = given(search) | given(content) | given(on) | {"--json": as_json}
        refuse_idle(idle, "expected no --join with it")
        _join(sharding, models, texts.input_, texts.output)
        return
    if texts.input_ is None:
        raise ValueError("--shards: expected --input with it, a file that can be read again")
    if is_document(texts.input_):
        name = texts.input_.name
        raise ValueError(f"--shards: expected a file of lines, got {name}, which is translated as a whole")
    refuse_idle({"--output": texts.output}, "expected --join with it")
    _translate(sharding, models, texts.input_, search, content, on, as_json, quiet)


def _translate(
    sharding: ShardingOptions,
    models: Sequence[Path],
    file: Path,
    options: SearchOptions,
    content: ContentOptions,
    on: DeviceOptions,
    as_json: bool,
    quiet: bool,
) -> None:
    from regard.batch.run import translate_file
    from regard.config.folder import read_recipe
    from regard.tasks.registry import TRANSLATION, require_task
    from regard.tasks.translation.search_options import search_of

    assert sharding.shards is not None
    require_task(TRANSLATION, models[0])
    search = options.applied(search_of(read_recipe(models[0])))
    if options.seed is not None:
        search = replace(search, seed=options.seed)
    report = translate_file(
        models[0],
        file,
        sharding.shards,
        workers=sharding.workers,
        threads=on.threads,
        ensemble=models[1:],
        search=search,
        prefix=options.prefix,
        glossary=content.terms(),
        keep=content.keep or (),
        as_json=as_json,
        shard_lines=sharding.shard_lines,
        device=on.device,
        precision=on.precision,  # type: ignore[arg-type]
        screen=Terminal(quiet),
    )
    if not quiet:
        if report.notices:
            complain(f"{report.notices:,} notices about lines: {sharding.shards / 'notices'}")
        complain(f"{report.lines:,} lines are translated, in {report.shards:,} shards; --join writes them as one text")


def _join(sharding: ShardingOptions, models: Sequence[Path], file: Path | None, output: Path | None) -> None:
    from regard.batch.folder import ShardFolder
    from regard.batch.join import joined_texts
    from regard.batch.manifest import check_input, check_models

    assert sharding.shards is not None
    folder = ShardFolder(sharding.shards)
    check_distinct({"--input": file, "--output": output})
    check_models(folder, models)
    if file is not None:
        check_input(folder, file)
    texts = joined_texts(folder)
    with open_results(output) as out:
        for text in texts:
            out.write(text.decode())
