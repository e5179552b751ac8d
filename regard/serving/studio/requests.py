"""What requests of the page's views have in common: their types, and limits on texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, Field

from regard.serving.errors import RequestError
from regard.serving.settings import Limits
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.text.glossary import MAX_TERM_CHARACTERS, Glossary
from regard.text.keep import Keep, Kind

ModelName = Annotated[str | None, Field(description="The name of a model; none: the first that can do it.")]
TermText = Annotated[str, Field(min_length=1, max_length=MAX_TERM_CHARACTERS)]
Glossaries = Annotated[
    list[tuple[TermText, TermText]],
    Field(max_length=Limits.terms, description="Source term and target term; several target forms are separated by |."),
]


class InteractiveOptions(BaseModel):
    """How texts are translated."""

    model: ModelName = None
    glossary: Glossaries = []
    keep: Annotated[list[Kind], Field(max_length=4, description="Kinds of things that are not translated.")] = []

    @property
    def terms(self) -> Glossary | None:
        """the glossary, or None if it has no terms"""
        if not self.glossary:
            return None
        split = [
            (source, [each for form in target.split("|") if (each := form.strip())]) for source, target in self.glossary
        ]
        return Glossary.of(split)

    @property
    def kept(self) -> Keep | None:
        """the kinds that are kept, or None if there are none"""
        return Keep.parse(",".join(self.keep)) if self.keep else None

    def search(self, translator: Translator) -> Search:
        """Return the options of the search: the model's own, without the samples that no glossary can have."""
        return replace(translator.search, mbr=0) if self.glossary else translator.search


def check_length(name: str, text: str, limits: Limits) -> None:
    """Raise a RequestError for a text with more characters than the server allows."""
    if len(text) > limits.characters:
        message = f"{name}: expected at most {limits.characters:,} characters, got {len(text):,}"
        raise RequestError(413, message)
