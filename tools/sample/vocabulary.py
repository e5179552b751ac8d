"""Nouns, adjectives and people, with gender, number and oblique stem spelled out."""

from dataclasses import dataclass

from tools.sample.agreement import Form, a, adjective


@dataclass(frozen=True)
class Phrase:
    """A noun phrase in both languages, and what agrees with it."""

    english: str
    marathi: str
    form: Form


@dataclass(frozen=True)
class Noun:
    """A thing; `oblique` is the stem that takes postpositions (टेबला-वर, शाळे-त)."""

    english: str
    plural: str
    form: Form
    marathi: str
    many_marathi: str
    oblique: str
    kind: str

    def one(self, quality: "Adjective | None" = None, article: str = "a") -> Phrase:
        english = f"{quality.english} {self.english}" if quality else self.english
        english = a(english) if article == "a" else f"{article} {english}".strip()
        return Phrase(english, _join(quality, self.form, self.marathi), self.form)

    def many(self, quality: "Adjective | None" = None, number: str = "") -> Phrase:
        form = self.form.plural
        english = " ".join(part for part in (number, quality.english if quality else "", self.plural) if part)
        marathi = _join(quality, form, self.many_marathi)
        return Phrase(english, f"{NUMBERS[number]} {marathi}" if number else marathi, form)


@dataclass(frozen=True)
class Adjective:
    english: str
    marathi: str  # masculine singular

    def agreeing(self, form: Form) -> str:
        return adjective(self.marathi, form)


def _join(quality: Adjective | None, form: Form, noun: str) -> str:
    return f"{quality.agreeing(form)} {noun}" if quality else noun


NUMBERS = {"two": "दोन", "three": "तीन", "four": "चार", "five": "पाच"}
HOURS = {"five": "पाच", "six": "सहा", "seven": "सात", "eight": "आठ", "nine": "नऊ", "ten": "दहा"}

_GENDERS = {"m": Form.MS, "f": Form.FS, "n": Form.NS}

# english, plural, gender, marathi, plural, oblique singular, kind
_NOUNS = """
book books n पुस्तक पुस्तकं पुस्तका text
letter letters n पत्र पत्रं पत्रा text
story stories f गोष्ट गोष्टी गोष्टी tale
mango mangoes m आंबा आंबे आंब्या food
apple apples n सफरचंद सफरचंदं सफरचंदा food
chair chairs f खुर्ची खुर्च्या खुर्ची goods
table tables n टेबल टेबलं टेबला goods
watch watches n घड्याळ घड्याळं घड्याळा goods
shirt shirts m सदरा सदरे सदऱ्या goods
cap caps f टोपी टोप्या टोपी goods
bag bags f पिशवी पिशव्या पिशवी goods
key keys f किल्ली किल्ल्या किल्ली tool
car cars f गाडी गाड्या गाडी goods
ball balls m चेंडू चेंडू चेंडू goods
flower flowers n फूल फुलं फुला flower
dog dogs m कुत्रा कुत्रे कुत्र्या animal
cat cats n मांजर मांजरं मांजरा animal
horse horses m घोडा घोडे घोड्या animal
cow cows f गाय गाई गाई animal
tree trees n झाड झाडं झाडा nature
house houses n घर घरं घरा place
room rooms f खोली खोल्या खोली place
garden gardens f बाग बागा बागे place
school schools f शाळा शाळा शाळे place
temple temples n मंदिर मंदिरं मंदिरा place
hospital hospitals m दवाखाना दवाखाने दवाखान्या place
market markets m बाजार बाजार बाजारा place
door doors n दार दारं दारा inside
window windows f खिडकी खिडक्या खिडकी inside
tea - m चहा - चहा drink
coffee - f कॉफी - कॉफी drink
milk - n दूध - दुधा drink
water - n पाणी - पाण्या drink
rice - m भात - भाता dish
"""


def _noun(line: str) -> Noun:
    english, plural, gender, marathi, many, oblique, kind = line.split()
    return Noun(english, plural, _GENDERS[gender], marathi, many, oblique, kind)


NOUNS = {noun.english: noun for noun in map(_noun, _NOUNS.strip().splitlines())}


def nouns(words: str) -> list[Noun]:
    """The named nouns: nouns("book letter")."""
    return [NOUNS[word] for word in words.split()]


def of_kind(kinds: str) -> list[Noun]:
    return [noun for noun in NOUNS.values() if noun.kind in kinds.split()]


_ADJECTIVES = """
good चांगला
new नवा
old जुना
big मोठा
small लहान
little छोटा
beautiful सुंदर
sweet गोड
cheap स्वस्त
red लाल
black काळा
white पांढरा
green हिरवा
wise शहाणा
simple साधा
true खरा
clever हुशार
tall उंच
honest प्रामाणिक
lazy आळशी
kind प्रेमळ
poor गरीब
famous प्रसिद्ध
bad वाईट
taller उंच
cleverer हुशार
kinder प्रेमळ
older मोठा
younger लहान
"""
ADJECTIVES = {
    english: Adjective(english, marathi) for english, marathi in map(str.split, _ADJECTIVES.strip().splitlines())
}


def adjectives(words: str) -> list[Adjective]:
    return [ADJECTIVES[word] for word in words.split()]


# What can sensibly be said of each kind of thing.
QUALITIES = {
    "tale": adjectives("good new old beautiful"),
    "tool": adjectives("good new old big small black"),
    "text": adjectives("good new old big beautiful"),
    "food": adjectives("good big small sweet cheap"),
    "goods": adjectives("good new old big small beautiful cheap red black white green"),
    "flower": adjectives("beautiful big small red white"),
    "animal": adjectives("big small black white beautiful good"),
    "nature": adjectives("big small beautiful"),
    "place": adjectives("big small old new"),
}
