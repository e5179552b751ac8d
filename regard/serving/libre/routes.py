"""LibreTranslate's API: its clients work unchanged. Errors are 400, 403, 404 and 429, as there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from regard.serving.batching import JobOptions, TranslationJob
from regard.serving.detection import DetectedLanguage
from regard.serving.errors import RequestError, described
from regard.serving.guard import AUTHORIZED, missing_key
from regard.serving.libre import schema
from regard.serving.libre.fields import RequestFields, missing
from regard.serving.libre.files import DownloadStore
from regard.serving.libre.languages import language_name
from regard.serving.libre.suggestions import SuggestionFile
from regard.serving.libre.translation import AUTO, TranslateRequest, check_size, keep_of, model_for
from regard.serving.server import Server, ServerState
from regard.serving.texts import check_marks, plain_text
from regard.tasks.translation.answer import Answer
from regard.text.formats.registry import FORMATS, PLAIN, TABLE, document_of
from regard.text.formats.segmented_file import SegmentedFile

FILE_ENDINGS = (PLAIN, *FORMATS, TABLE)
FRONTEND_TIMEOUT = 500  # milliseconds that LibreTranslate's page waits after the last key before it translates
SHOWN_PERCENT = 1.0  # of languages that `/detect` lists


class LibreRoute(APIRoute):
    """A route whose bad requests are answered with 400."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                raise RequestError(400, described(error.errors())) from None
            except ValueError as error:
                raise RequestError(400, str(error)) from None

        return answer


router = APIRouter(route_class=LibreRoute, tags=["LibreTranslate"])


def add_to(app: FastAPI, settings: ServerState) -> None:
    """Add the routes to a server."""
    limits, file = settings.settings.limits, settings.settings.suggestions
    app.state.downloads = DownloadStore(limits.files, limits.file_seconds)
    app.state.suggestions = None if file is None else SuggestionFile(file, limits.suggestions)
    app.include_router(router)


def json_response(value: Any) -> Response:
    """Return a value as JSON; text is UTF-8, not escapes."""
    return Response(json.dumps(value, ensure_ascii=False, separators=(",", ":")), media_type="application/json")


async def authorized_fields(request: Request, server: ServerState) -> RequestFields:
    """Return the fields of a request; raise a RequestError if it needs an API key and has none."""
    fields = await RequestFields.of(request)
    if not request.scope[AUTHORIZED] and not server.keys.is_valid(fields.values.get("api_key")):
        raise missing_key()
    return fields


@router.post("/translate", responses={200: {"model": schema.TranslateResponse}}, openapi_extra=schema.TRANSLATE)
async def translate(request: Request, server: Server) -> Response:
    """Translate one text or several. The fields are JSON, a form or the query string."""
    asked = TranslateRequest.of(await authorized_fields(request, server), server.settings.limits)
    texts = await asked.segmented()
    segments = [segment for text in texts for segment in text.segments]
    check_marks(segments)
    detected: DetectedLanguage | None = None
    if asked.source == AUTO:
        detected = await detected_language(server, plain_text(segments))
        asked = replace(asked, source=detected.language)
    if asked.source == asked.target and asked.source in server.store.languages and asked.model is None:
        result = asked.untranslated()
    else:
        model = model_for(server.store, asked.model, asked.source, asked.target)
        job = TranslationJob(
            model,
            segments,
            asked.options,
            lambda answers: asked.response(texts, answers),
            asked.glossary,
            request.is_disconnected,
        )
        result = await server.batcher.run(job)
    if detected is not None:
        entry = _detection(detected)
        result["detectedLanguage"] = [entry] * len(asked.texts) if asked.is_list else entry
    return json_response(result)


async def detected_language(server: ServerState, text: str) -> DetectedLanguage:
    """Return the most probable language of a text; raise a RequestError if no model names its languages."""
    languages = await asyncio.to_thread(server.detector.detect, text)
    if not languages:
        raise RequestError(400, "source: no model of this server names its languages")
    return languages[0]


def _detection(detected: DetectedLanguage) -> dict[str, Any]:
    return {"confidence": round(100 * detected.probability, 1), "language": detected.language}


@router.post("/detect", responses={200: {"model": list[schema.Detection]}}, openapi_extra=schema.DETECT)
async def detect(request: Request, server: Server) -> Response:
    """Return the languages that a text may be in, among those of the models, the most probable first."""
    fields = await authorized_fields(request, server)
    texts, _ = fields.texts("q")
    check_size(texts, server.settings.limits)
    first = await detected_language(server, texts[0])
    languages = await asyncio.to_thread(server.detector.detect, "\n".join(texts))
    shown = [each for each in languages if 100 * each.probability >= SHOWN_PERCENT] or [first]
    return json_response([_detection(each) for each in shown])


@router.get("/languages", responses={200: {"model": list[schema.LanguageEntry]}})
async def languages(server: Server) -> Response:
    """List the languages of the models, and into which each can be translated."""
    pairs = [each.languages for each in server.store.translators if each.languages]
    return json_response(
        [
            {
                "code": code,
                "name": language_name(code),
                "targets": sorted({code, *(target for source, target in pairs if source == code)}),
            }
            for code in server.store.languages
        ]
    )


@router.post("/languages", responses={200: {"model": list[schema.LanguageEntry]}})
async def post_languages(server: Server) -> Response:
    """List the languages, for clients that ask by POST."""
    return await languages(server)


@router.post("/translate_file", responses={200: {"model": schema.FileResponse}}, openapi_extra=schema.TRANSLATE_FILE)
async def translate_file(request: Request, server: Server) -> Response:
    """Translate a file: .txt, .html, .md, .srt, .po, .json or .csv. What is not text stays."""
    fields = await authorized_fields(request, server)
    if fields.file is None:
        raise missing("file")
    name, content = fields.file
    source, target = fields.required("source"), fields.required("target")
    path = Path(name.replace("\\", "/").rpartition("/")[2])
    if path.suffix.lower() not in FILE_ENDINGS:
        raise RequestError(400, f"file: expected a name that ends in {', '.join(FILE_ENDINGS)}, got {name[-60:]!r}")
    columns = [each.strip() for each in fields.text("columns").split(",") if each.strip()]
    keep = keep_of(fields)
    file = await asyncio.to_thread(lambda: SegmentedFile(path, document_of(path, content, columns), columns, keep))
    check_marks(file.segments)
    text, limit = plain_text(file.segments), server.settings.limits.file_characters
    if len(text) > limit:
        raise RequestError(400, f"file: expected at most {limit:,} characters of text, got {len(text):,}")
    if source == AUTO:
        source = (await detected_language(server, text)).language
    if source != target or source not in server.store.languages:
        content = await _translated_file(
            request, server, file, model_for(server.store, fields.text("model") or None, source, target)
        )
    address = request.app.state.downloads.add(path.name, content)
    return json_response({"translatedFileUrl": f"{request.base_url}download_file/{quote(address)}"})


async def _translated_file(request: Request, server: ServerState, file: SegmentedFile, model: Any) -> bytes:
    def finish(answers: list[Answer]) -> bytes:
        return file.result([answer.translations[0].content for answer in answers])[0].encode()

    job = TranslationJob(model, file.segments, JobOptions(), finish, is_gone=request.is_disconnected)
    translated: bytes = await server.batcher.run(job)
    return translated


@router.get(
    "/download_file/{filename}",
    responses={200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}},
)
async def download_file(request: Request, filename: str) -> Response:
    """Return a translated file."""
    file = request.app.state.downloads.get(filename)
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name)}"}
    return Response(file.content, media_type="application/octet-stream", headers=headers)


@router.get("/frontend/settings", responses={200: {"model": schema.FrontendSettings}})
async def frontend_settings(request: Request, server: Server) -> Response:
    """Return what a page for this API needs to know."""
    codes = server.store.languages or ["en"]
    target = next((each.languages[1] for each in server.store.translators if each.languages), codes[-1])
    return json_response(
        {
            "charLimit": server.settings.limits.characters,
            "frontendTimeout": FRONTEND_TIMEOUT,
            "apiKeys": server.keys.required,
            "keyRequired": server.keys.required,
            "suggestions": request.app.state.suggestions is not None,
            "filesTranslation": True,
            "supportedFilesFormat": list(FILE_ENDINGS),
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": target, "name": language_name(target)},
            },
        }
    )


@router.post("/suggest", responses={200: {"model": schema.SuggestResponse}}, openapi_extra=schema.SUGGEST)
async def suggest(request: Request, server: Server) -> Response:
    """Save a better translation, if the server was started with a file for them."""
    fields = await authorized_fields(request, server)
    if request.app.state.suggestions is None:
        raise RequestError(403, "suggestions: this server saves none")
    source, target, languages = (
        fields.required("q"),
        fields.required("s"),
        (fields.required("source"), fields.required("target")),
    )
    check_size([source, target], server.settings.limits)
    model_for(server.store, None, *languages)
    several = len({each.languages for each in server.store.translators if each.languages}) > 1
    request.app.state.suggestions.add(source, target, languages, several)
    return json_response({"success": True})


@router.get("/health", responses={200: {"model": schema.HealthResponse}})
async def health() -> Response:
    """Return that the server answers."""
    return json_response({"status": "ok"})


@router.get("/spec", responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}})
async def spec(request: Request) -> Response:
    """Return the OpenAPI document."""
    return json_response(request.app.openapi())
