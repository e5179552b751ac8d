"""Agreement in Marathi: which endings a word takes beside a noun, and how a verb follows its subject.

Six classes exist: masculine, feminine and neuter, each singular or plural. A word that varies is kept as its stem, the
ending is added here and nowhere else:

    class       MS        FS       NS       MP       FP         NP
    चांगल-      चांगला    चांगली   चांगलं    चांगले    चांगल्या     चांगली
    होत-        होता      होती     होतं      होते      होत्या       होती
    present     वाचतो     वाचते    वाचतं     वाचतात   वाचतात     वाचतात
"""

from enum import Enum


class Form(Enum):
    """Gender (masculine, feminine, neuter) and number (singular, plural)."""

    MS = "ms"
    FS = "fs"
    NS = "ns"
    MP = "mp"
    FP = "fp"
    NP = "np"

    @property
    def many(self) -> bool:
        return self.value.endswith("p")

    @property
    def feminine(self) -> bool:
        return self.value.startswith("f")

    @property
    def plural(self) -> "Form":
        return Form(self.value[0] + "p")


ENDINGS = {Form.MS: "ा", Form.FS: "ी", Form.NS: "ं", Form.MP: "े", Form.FP: "्या", Form.NP: "ी"}


def inflect(stem: str, form: Form) -> str:
    """The stem with the ending of its class; र before ्या is written ऱ (पांढऱ्या)."""
    if form is Form.FP and stem.endswith("र"):
        stem = stem[:-1] + "ऱ"
    return stem + ENDINGS[form]


def adjective(word: str, form: Form) -> str:
    """An adjective given as its masculine singular: those in -ा vary, the others (लाल, सुंदर) do not."""
    return inflect(word.removesuffix("ा"), form) if word.endswith("ा") else word


def present(stem: str, form: Form) -> str:
    """Habitual present of a third person; stem as in वाचत-."""
    if form.many:
        return stem + "ात"
    return stem + {Form.MS: "ो", Form.FS: "े", Form.NS: "ं"}[form]


def is_(form: Form) -> str:
    return "आहेत" if form.many else "आहे"


def is_not(form: Form) -> str:
    return "नाहीत" if form.many else "नाही"


def was(form: Form) -> str:
    return inflect("होत", form)


THIS = {Form.MS: "हा", Form.FS: "ही", Form.NS: "हे", Form.MP: "हे", Form.FP: "या", Form.NP: "ही"}
THAT = {Form.MS: "तो", Form.FS: "ती", Form.NS: "ते", Form.MP: "ते", Form.FP: "त्या", Form.NP: "ती"}


def a(english: str) -> str:
    """The English word with its indefinite article."""
    return ("an " if english[0] in "aeio" or english.startswith("honest") else "a ") + english
