"""The bodies of requests and responses, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean", "default": False}
_KEY: Schema = {"type": ["string", "null"], "description": "API key, where the server needs one"}
_FORM_KEY: Schema = _KEY | {"type": "string"}
_SOURCE: Schema = {"type": "string", "description": "code of the source language, or auto", "example": "en"}
_TARGET: Schema = {"type": "string", "description": "code of the target language", "example": "mr"}
_MODEL: Schema = {"type": "string", "description": "name of a model, if several translate between the languages"}
_KEEP: Schema = {"type": "string", "description": "what is not translated: numbers, addresses, markup, names"}
_TRANSLATE: Schema = {
    "q": {
        "oneOf": [_TEXT, {"type": "array", "items": _TEXT}],
        "description": "a text or several",
        "example": "A good boy.",
    },
    "source": _SOURCE,
    "target": _TARGET,
    "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
    "alternatives": {"type": "integer", "minimum": 0, "default": 0, "description": "further translations"},
    "api_key": _KEY,
    "model": _MODEL,
    "beam": {"type": "integer", "minimum": 1, "description": "beam size; by default the model's own"},
    "prefix": {"type": "string", "description": "text with which the translations begin"},
    "glossary": {
        "type": "object",
        "additionalProperties": {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]},
        "description": "source terms and how they must be translated",
    },
    "keep": _KEEP,
    "alignment": _FLAG | {"description": "return which words belong together"},
    "confidence": _FLAG | {"description": "return how probably each word is right"},
    "trace": _FLAG | {"description": "return the attention weights"},
}
_FORM = _TRANSLATE | {"q": _TEXT, "api_key": _FORM_KEY, "glossary": {"type": "string", "description": "a JSON object"}}


def _object(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


def _body(json_fields: Schema, form_fields: Schema, required: list[str]) -> Schema:
    """Return the body of a request that may be JSON, a form, or absent if everything is in the query string."""
    form = {"schema": _object(form_fields, required)}
    query = [{"name": name, "in": "query", "schema": schema} for name, schema in form_fields.items()]
    content = {"application/json": {"schema": _object(json_fields, required)}}
    content |= {"application/x-www-form-urlencoded": form, "multipart/form-data": form}
    return {"requestBody": {"content": content}, "parameters": query}


TRANSLATE = _body(_TRANSLATE, _FORM, ["q", "source", "target"])
_DETECT: Schema = {"q": _TEXT | {"description": "a text", "example": "A good boy."}, "api_key": _KEY}
DETECT = _body(_DETECT, _DETECT | {"api_key": _FORM_KEY}, ["q"])
_SUGGEST: Schema = {
    "q": _TEXT | {"description": "the source text"},
    "s": _TEXT | {"description": "the suggested translation"},
    "source": _SOURCE,
    "target": _TARGET,
    "api_key": _KEY,
}
SUGGEST = _body(_SUGGEST, _SUGGEST | {"api_key": _FORM_KEY}, ["q", "s", "source", "target"])
_FILE: Schema = {
    "file": {"type": "string", "format": "binary"},
    "source": _SOURCE,
    "target": _TARGET,
    "api_key": _FORM_KEY,
    "model": _MODEL,
    "keep": _KEEP,
    "columns": {"type": "string", "description": "of a .csv file: the columns to translate, separated by commas"},
}
_MULTIPART: Schema = {"multipart/form-data": {"schema": _object(_FILE, ["file", "source", "target"])}}
TRANSLATE_FILE: Schema = {"requestBody": {"content": _MULTIPART, "required": True}}


class LanguageEntry(BaseModel):
    """A language, and those into which it can be translated."""

    code: str
    name: str
    targets: list[str]


class Detection(BaseModel):
    """A language, and the probability in percent that a text is in it."""

    confidence: float
    language: str


class WordConfidence(BaseModel):
    """How probably a translation is right: as a whole, and word by word."""

    text: float
    words: list[tuple[str, float]]


class AlignedSide(BaseModel):
    """A text, and where its words begin and end."""

    text: str
    words: list[tuple[int, int]]


class AlignedText(BaseModel):
    """A part of a text and of its translation, and the words that belong together: [source word, target word]."""

    source: AlignedSide
    target: AlignedSide
    links: list[tuple[int, int]]


class TranslateResponse(BaseModel):
    """Translations. Where `q` was a list, each field has a list with an entry for each text."""

    translatedText: str | list[str]  # noqa: N815, the API's name
    detectedLanguage: Detection | list[Detection] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None
    confidence: WordConfidence | list[WordConfidence] | None = None
    alignment: list[AlignedText] | list[list[AlignedText]] | None = None
    trace: list[dict[str, Any]] | list[list[dict[str, Any]]] | None = None


class FileResponse(BaseModel):
    """Where a translated file can be downloaded."""

    translatedFileUrl: str  # noqa: N815


class SuggestResponse(BaseModel):
    """Whether a suggestion was saved."""

    success: bool


class HealthResponse(BaseModel):
    """Whether the server answers."""

    status: str


class NamedLanguage(BaseModel):
    """A language of a page's menu."""

    code: str
    name: str


class LanguageChoice(BaseModel):
    """The languages that a page shows first."""

    source: NamedLanguage
    target: NamedLanguage


class FrontendSettings(BaseModel):
    """What a page for the API needs to know."""

    charLimit: int  # noqa: N815
    frontendTimeout: int  # noqa: N815
    apiKeys: bool  # noqa: N815
    keyRequired: bool  # noqa: N815
    suggestions: bool
    filesTranslation: bool  # noqa: N815
    supportedFilesFormat: list[str]  # noqa: N815
    language: LanguageChoice
