"""The fields of a request, from JSON, a form or the query string."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException

from regard.serving.errors import RequestError
from regard.text.pairs import has_lone_surrogate

MAX_FIELDS = 1000
YES, NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off", "")


@dataclass(frozen=True)
class RequestFields:
    """The fields of a request by name. JSON has values of all types, forms and query strings have texts."""

    values: Mapping[str, Any]
    file: tuple[str, bytes] | None = None  # the name and content of an uploaded file

    @classmethod
    async def of(cls, request: Request) -> RequestFields:
        """Read the fields; raise a RequestError for a body that is not what its Content-Type says."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        query = _pairs(request.scope["query_string"])
        if kind == "application/json" or kind.endswith("+json"):
            return cls(_json_object(await request.body()))
        if kind == "multipart/form-data":
            return await _multipart(request, query)
        body = await request.body()
        if body and kind not in ("application/x-www-form-urlencoded", ""):
            raise RequestError(400, f"Content-Type: expected JSON or a form, got {kind!r}")
        return cls(_merged([*query, *_pairs(body)]))

    def text(self, name: str, default: str = "") -> str:
        """Return a text; raise a RequestError if it is something else."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, str) or has_lone_surrogate(value):
            raise RequestError(400, f"{name}: expected a text, got {_shown(value)}")
        return value

    def required(self, name: str) -> str:
        """Return a text that must be there."""
        value = self.text(name)
        if not value:
            raise missing(name)
        return value

    def texts(self, name: str) -> tuple[list[str], bool]:
        """Return one or several texts, which must be there, and whether they came as a list."""
        value = self.values.get(name)
        if isinstance(value, str):
            return [self.required(name)], False
        if not value:
            raise missing(name)
        if not isinstance(value, list):
            raise RequestError(400, f"{name}: expected a text or a list of texts, got {_shown(value)}")
        for number, each in enumerate(value, 1):
            if not isinstance(each, str) or has_lone_surrogate(each):
                raise RequestError(400, f"{name}: expected texts, got {_shown(each)} as number {number}")
        return value, True

    def flag(self, name: str) -> bool:
        """Return whether something is asked for."""
        value = self.values.get(name)
        if isinstance(value, str) and value.lower() in (*YES, *NO):
            return value.lower() in YES
        if value is None or isinstance(value, bool):
            return bool(value)
        raise RequestError(400, f"{name}: expected true or false, got {_shown(value)}")

    def whole(self, name: str, default: int | None, low: int, high: int) -> int | None:
        """Return a whole number between two others."""
        value = self.values.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, str) and value.isascii() and value.lstrip("-").isdigit() and len(value) < 10:
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise RequestError(400, f"{name}: expected a whole number, got {_shown(value)}")
        if not low <= value <= high:
            raise RequestError(400, f"{name}: expected a number from {low} to {high}, got {_shown(value)}")
        return value


def missing(name: str) -> RequestError:
    """Return the error for a field that is not there."""
    return RequestError(400, f"{name}: it is missing")


def parsed_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; raise a RequestError if it is none."""
    try:
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise RequestError(400, f"expected UTF-8, and byte {error.start:,} is not") from None
    except RecursionError:
        raise RequestError(400, "expected JSON that is nested less deeply") from None
    except ValueError as error:
        raise RequestError(400, f"expected JSON: {error}") from None


def _json_object(body: bytes) -> Mapping[str, Any]:
    value = parsed_json(body)
    if not isinstance(value, dict):
        raise RequestError(400, f"expected a JSON object, got {_shown(value)}")
    return value


def _pairs(encoded: bytes) -> list[tuple[str, str]]:
    if not encoded:
        return []
    try:
        text = encoded.decode("utf-8")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError:
        raise RequestError(400, "expected fields in UTF-8") from None
    except ValueError as error:
        raise RequestError(400, f"expected fields of a form: {error}") from None


def _merged(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the fields; `q` is a list if it occurs several times, of others the first counts."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        fields.setdefault(name, value)
    texts = [value for name, value in pairs if name == "q"]
    return fields | ({"q": texts} if len(texts) > 1 else {})


async def _multipart(request: Request, query: list[tuple[str, str]]) -> RequestFields:
    limit = request.app.state.server.settings.limits.body
    pairs, file = list(query), None
    try:
        async with request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=limit) as form:
            for name, value in form.multi_items():
                if not isinstance(value, UploadFile):
                    pairs.append((name, value))
                elif name == "file":
                    file = value.filename or "", await value.read()
    except (MultiPartException, UnicodeDecodeError, KeyError) as error:
        raise RequestError(400, f"expected multipart/form-data: {error}") from None
    return RequestFields(_merged(pairs), file)


def _shown(value: Any) -> str:
    """Return a value as an error names it."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    return repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "…"
