"""The view Train: the curves of a training, live; trainings are started, stopped and resumed."""

from __future__ import annotations

import asyncio
import re
import shutil
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Header, UploadFile
from fastapi.responses import StreamingResponse

from regard.config.folder import LOG
from regard.look.history import read_moments
from regard.look.page_data import of_moments
from regard.runtime.processes import available_cores
from regard.serving.access import is_loopback
from regard.serving.errors import RequestError
from regard.serving.server import Server, ServerState
from regard.serving.studio.log_events import LogTail, log_events
from regard.serving.studio.state import Studio, closing
from regard.serving.studio.training_job import StudioTraining, data_folder
from regard.serving.studio.uploads import save_uploads

MAX_HISTORY = 1 << 25  # bytes of a log whose traces are sent
MAX_SETTINGS = 40
RECIPES = {"translate": ("rnn", "transformer", "article"), "classify": ("classify",)}
NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"

router = APIRouter(tags=["training"], lifespan=closing)


def refusal(server: ServerState) -> str | None:
    """Return why this server starts no trainings, or None: a stranger must not run programs."""
    if is_loopback(server.settings.host) or server.settings.keys:
        return None
    return "trainings are started only by a server on 127.0.0.1, or with API keys"


def _check_allowed(server: ServerState) -> None:
    reason = refusal(server)
    if reason is not None:
        raise RequestError(403, f"training: {reason}")


@router.get("/training")
async def trainings(server: Server, studio: Studio) -> dict[str, Any]:
    """List the trainings whose logs can be looked at, and say whether new ones can be started."""
    active = studio.trainings.active
    return {
        "refusal": refusal(server),
        "active": None if active is None else active.name,
        "recipes": RECIPES,
        "runs": studio.trainings.describe_all(),
    }


@router.post("/training", status_code=202)
async def start_training(
    server: Server,
    studio: Studio,
    files: Annotated[list[UploadFile], File(description="a .tsv or .jsonl, or two parallel texts; also .gz")],
    name: Annotated[str, Form(pattern=f"^{NAME}$", description="of the new model")],
    dev: Annotated[list[UploadFile] | None, File(description="validation data, of the same form")] = None,
    task: Annotated[str, Form(pattern="^(translate|classify)$")] = "translate",
    recipe: Annotated[str, Form(description="rnn, transformer, article or classify; empty: the default")] = "",
    minutes: Annotated[float | None, Form(ge=0.05, le=10_000)] = None,
    source: Annotated[str, Form(pattern="^[A-Za-z]*(-[A-Za-z0-9]+)*$", max_length=20)] = "",
    target: Annotated[str, Form(pattern="^[A-Za-z]*(-[A-Za-z0-9]+)*$", max_length=20)] = "",
    reverse: Annotated[bool, Form(description="train from the second column to the first")] = False,
    seed: Annotated[int, Form(ge=0, lt=1 << 31)] = 1,
    settings: Annotated[str, Form(max_length=4_000, description="KEY=VALUE, one per line")] = "",
) -> dict[str, Any]:
    """Start a training on files, in a process of its own."""
    _check_allowed(server)
    studio.trainings.check_idle()
    if recipe and recipe not in RECIPES[task]:
        raise ValueError(f"recipe: expected {' or '.join(RECIPES[task])} for the task {task}, got {recipe!r}")
    if bool(source) != bool(target):
        raise ValueError("languages: expected the codes of both or of none")
    chosen = parsed_settings(settings)
    folder = studio.trainings.new_folder(name)
    data = data_folder(folder)
    try:
        for part in ("train", "dev"):
            (data / part).mkdir(parents=True)
        saved = await save_uploads(files, data / "train")
        validation = await save_uploads(dev, data / "dev") if dev else None
        job = StudioTraining(
            run=str(folder),
            data=[str(path) for path in saved],
            dev=None if validation is None else [str(path) for path in validation],
            task=task,
            recipe=recipe or None,
            settings=chosen,
            minutes=minutes,
            languages=[source, target] if source else None,
            reverse=reverse,
            seed=seed,
            threads=max(1, available_cores() - 1),  # the server goes on answering
            device=server.settings.device,
            precision=server.settings.precision,
        )
        studio.trainings.start(job)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, data, ignore_errors=True)
        raise
    return studio.trainings.describe(name)


def parsed_settings(text: str) -> dict[str, str]:
    """Return the settings of a recipe, given as KEY=VALUE on lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > MAX_SETTINGS:
        raise ValueError(f"settings: expected at most {MAX_SETTINGS}, got {len(lines)}")
    values = {}
    for line in lines:
        matched = re.fullmatch(r"([a-z_]+(?:\.[a-z_]+)+)\s*=\s*(\S.*)", line)
        if matched is None:
            raise ValueError(f"settings: expected KEY=VALUE, such as training.epochs=5, got {line!r}")
        values[matched[1]] = matched[2]
    return values


@router.post("/training/{name}/stop", status_code=202)
async def stop_training(server: Server, studio: Studio, name: str) -> dict[str, Any]:
    """Let the running training write a checkpoint and end."""
    _check_allowed(server)
    studio.trainings.stop(name)
    return studio.trainings.describe(name)


@router.post("/training/{name}/resume", status_code=202)
async def resume_training(server: Server, studio: Studio, name: str) -> dict[str, Any]:
    """Go on with a training that was stopped."""
    _check_allowed(server)
    studio.trainings.resume(name)
    return studio.trainings.describe(name)


@router.get("/training/{name}/events")
async def training_events(
    server: Server, studio: Studio, name: str, last_event_id: Annotated[int, Header(ge=0)] = 0
) -> StreamingResponse:
    """Stream the log of a training as server-sent events."""
    tail = LogTail(studio.trainings.folder_of(name) / LOG, last_event_id)
    events = log_events(tail, lambda: studio.trainings.describe(name), server.stopping.is_set)
    return StreamingResponse(events, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


@router.get("/training/{name}/history")
async def training_history(studio: Studio, name: str) -> dict[str, Any]:
    """Return the attention at each validation of a training, as the content of an explorer; null before the first."""
    log = studio.trainings.folder_of(name) / LOG

    def content() -> dict[str, Any] | None:
        moments = read_moments(log, MAX_HISTORY, growing=True) if log.is_file() else []
        return of_moments(moments) if moments else None

    return {"content": await asyncio.to_thread(content)}
