"""`regard translate --shards`: translate a large file in shards, and join them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from regard.commands.options import check_distinct, refuse_idle
from regard.commands.screen import Terminal, complain
from regard.commands.streams import open_results

if TYPE_CHECKING:
    from regard.tasks.translation.search_options import Search

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

    folder: Path | None
    shard_lines: int | None
    workers: int | None
    join: bool

    def __post_init__(self) -> None:
        others = {"--shard-lines": self.shard_lines, "--workers": self.workers, "--join": self.join}
        if self.folder is None:
            refuse_idle(others, "expected --shards with it")
        elif self.join:
            refuse_idle(others | {"--join": None}, "expected no --join with it")


def run_sharded(
    sharding: ShardingOptions,
    models: Sequence[Path],
    files: tuple[Path | None, Path | None],
    search_by: Callable[[Search], Search],
    given: Mapping[str, Any],
    quiet: bool,
) -> None:
    """Translate the input in shards, or with --join write what is translated. `files` are input and output; `given` the
    other options by name, None where they were not given."""
    from regard.text.formats.registry import is_document

    if sharding.join:
        refuse_idle(given, "expected no --join with it")
        _join(sharding, models, *files)
        return
    if files[0] is None:
        raise ValueError("--shards: expected --input with it, a file that can be read again")
    if is_document(files[0]):
        raise ValueError(f"--shards: expected a file of lines, got {files[0].name}, which is translated as a whole")
    refuse_idle({"--output": files[1]}, "expected --join with it")
    _translate(sharding, models, files[0], search_by, given, quiet)


def _translate(
    sharding: ShardingOptions,
    models: Sequence[Path],
    file: Path,
    search_by: Callable[[Search], Search],
    given: Mapping[str, Any],
    quiet: bool,
) -> None:
    from regard.batch.run import translate_file
    from regard.config.folder import read_recipe
    from regard.tasks.registry import TRANSLATION, require_task
    from regard.tasks.translation.search_options import search_of
    from regard.text.glossary import Glossary

    assert sharding.folder is not None
    require_task(TRANSLATION, models[0])
    search = search_by(search_of(read_recipe(models[0])))
    if given["--seed"] is not None:
        search = replace(search, seed=given["--seed"])
    report = translate_file(
        models[0],
        file,
        sharding.folder,
        workers=sharding.workers,
        threads=given["--threads"],
        ensemble=models[1:],
        search=search,
        prefix=given["--prefix"] or "",
        glossary=None if given["--glossary"] is None else Glossary.read(given["--glossary"]),
        keep=given["--keep"] or (),
        as_json=bool(given["--json"]),
        shard_lines=sharding.shard_lines,
        device=given["--device"],
        precision=given["--precision"] or "auto",
        screen=Terminal(quiet),
    )
    if not quiet:
        if report.notices:
            complain(f"{report.notices:,} notices about lines: {sharding.folder / 'notices'}")
        complain(f"{report.lines:,} lines are translated, in {report.shards:,} shards; --join writes them as one text")


def _join(sharding: ShardingOptions, models: Sequence[Path], file: Path | None, output: Path | None) -> None:
    from regard.batch.folder import ShardFolder
    from regard.batch.join import joined_texts
    from regard.batch.manifest import check_input, check_models

    assert sharding.folder is not None
    folder = ShardFolder(sharding.folder)
    check_distinct({"--input": file, "--output": output})
    check_models(folder, models)
    if file is not None:
        check_input(folder, file)
    texts = joined_texts(folder)
    with open_results(output) as out:
        for text in texts:
            out.write(text.decode())
