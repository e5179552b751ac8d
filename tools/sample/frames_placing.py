"""Frames of place, time and weather: postpositions on oblique stems."""

from collections.abc import Iterator
from itertools import product

from tools.sample.agreement import is_, present, was
from tools.sample.people import GROUPS, NAMES, THIRD
from tools.sample.sentences import Pair, question, statement
from tools.sample.verbs import PLACES, VERBS
from tools.sample.vocabulary import HOURS, NUMBERS, QUALITIES, Noun, nouns, of_kind

_SPOTS = (
    ("on", "वर", "table chair"),
    ("under", "खाली", "table chair tree"),
    ("in", "त", "bag room car"),
    ("near", "जवळ", "door window house"),
)
SPOTS = [
    (f"{english} the {noun.english}", noun.oblique + ending)
    for english, ending, names in _SPOTS
    for noun in nouns(names)
]
_LAID = nouns("book letter mango apple watch shirt cap bag key ball flower")
_ROAMING = ("under the table", "under the chair", "under the tree", "in the room", "near the door", "near the house")


def _lying() -> Iterator[tuple[Noun, str, str]]:
    """What is where: things anywhere but in themselves, animals where animals are."""
    for noun, (english, marathi) in product([*_LAID, *nouns("cat dog")], SPOTS):
        if noun.english not in english and (noun.kind != "animal" or english in _ROAMING):
            yield noun, english, marathi


def lies() -> Iterator[Pair]:
    """The book is on the table; the keys are in the bag."""
    for noun, english, marathi in _lying():
        yield statement(f"the {noun.english} is {english}", f"{noun.marathi} {marathi} आहे")
        yield statement(f"the {noun.plural} are {english}", f"{noun.many_marathi} {marathi} आहेत")


def lay() -> Iterator[Pair]:
    """The cap was under the chair."""
    for noun, english, marathi in _lying():
        for word, be, form in ((noun.english, "was", noun.form), (noun.plural, "were", noun.form.plural)):
            name = noun.many_marathi if form.many else noun.marathi
            yield statement(f"the {word} {be} {english}", f"{name} {marathi} {was(form)}")


_SIDES = (("near", "जवळ"), ("behind", "मागे"), ("in front of", "समोर"))


def there_is() -> Iterator[Pair]:
    """There is a big tree near the school."""
    for (english, ending), at, seen in product(_SIDES, nouns("house school temple"), of_kind("place nature")):
        if at is seen or seen.english == "room":
            continue
        for quality in QUALITIES[seen.kind]:
            thing = seen.one(quality)
            marathi = f"{at.oblique}{ending} {thing.marathi} आहे"
            yield statement(f"there is {thing.english} {english} the {at.english}", marathi)


def there_are() -> Iterator[Pair]:
    """There are three chairs in the room."""
    for noun, at, number in product(_LAID + nouns("chair table cat"), nouns("room house school"), NUMBERS):
        things = noun.many(number=number)
        yield statement(f"there are {things.english} in the {at.english}", f"{at.oblique}त {things.marathi} आहेत")


_SIDE = ("garden", "school", "house", "temple")


def stays() -> Iterator[Pair]:
    """The children are playing in the garden; Mohan is sitting in the temple.

    Sitting and sleeping are states: Marathi says "has sat down", and the verb follows the sitter.
    """
    people = [(person.english, person.marathi, person.form) for person in THIRD] + GROUPS
    for (english, marathi, form), word, place in product(people, ("play", "sleep", "sit"), _SIDE):
        verb = VERBS[word]
        doing = verb.now(is_(form)) if word == "play" else f"{verb.was_done(form)} {is_(form)}"
        be = "are" if form.many else "is"
        yield statement(f"{english} {be} {verb.doing} in the {place}", f"{marathi} {PLACES[place]} {doing}")


_AIMS = [("to school", "शाळेत"), ("home", "घरी")] + [
    (f"to the {place}", PLACES[place]) for place in ("garden", "market", "temple", "hospital")
]


def went() -> Iterator[Pair]:
    """The girls went to the market; Asha came home: without an object the verb follows the doer."""
    people = [(person.english, person.marathi, person.form) for person in THIRD] + GROUPS
    for (english, marathi, form), verb, (aim, inside) in product(people, (VERBS["go"], VERBS["come"]), _AIMS):
        yield statement(f"{english} {verb.past} {aim}", f"{marathi} {inside} {verb.was_done(form)}")
        yield statement(f"{english} {verb.past} {aim} yesterday", f"{marathi} काल {inside} {verb.was_done(form)}")


def goes_with() -> Iterator[Pair]:
    """Sita went to the temple with Meena."""
    for person, other, (aim, inside) in product(NAMES, NAMES, _AIMS):
        if person is not other:
            english = f"{person.english} went {aim} with {other.english}"
            yield statement(
                english, f"{person.marathi} {other.marathi}बरोबर {inside} {VERBS['go'].was_done(person.form)}"
            )


# English, in the town, to the town
TOWNS = (
    ("Pune", "पुण्यात", "पुण्याला"),
    ("Mumbai", "मुंबईत", "मुंबईला"),
    ("Nagpur", "नागपुरात", "नागपूरला"),
    ("Satara", "साताऱ्यात", "साताऱ्याला"),
    ("Delhi", "दिल्लीत", "दिल्लीला"),
)
DAYS = (
    ("Monday", "सोमवारी"),
    ("Tuesday", "मंगळवारी"),
    ("Wednesday", "बुधवारी"),
    ("Thursday", "गुरुवारी"),
    ("Friday", "शुक्रवारी"),
    ("Saturday", "शनिवारी"),
    ("Sunday", "रविवारी"),
)


def lives() -> Iterator[Pair]:
    """Amit lives in Pune; does Asha live in Delhi?"""
    for person, (town, inside, _) in product(THIRD, TOWNS):
        lived = f"{person.marathi} {inside} {present('राहत', person.form)}"
        yield statement(f"{person.english} lives in {town}", lived)
        yield statement(f"{person.english} does not live in {town}", f"{person.marathi} {inside} राहत नाही")
        yield question(f"does {person.english} live in {town}", f"{lived} का")


_WEATHER = (
    ("it is raining in {} today", "आज {} पाऊस पडत आहे"),
    ("it is very hot in {} today", "आज {} खूप गरम आहे"),
    ("it is very cold in {} today", "आज {} खूप थंडी आहे"),
    ("it will rain in {} tomorrow", "उद्या {} पाऊस पडेल"),
    ("it will not rain in {} tomorrow", "उद्या {} पाऊस पडणार नाही"),
    ("it rained in {} yesterday", "काल {} पाऊस पडला"),
    ("it did not rain in {} yesterday", "काल {} पाऊस पडला नाही"),
    ("it was very hot in {} yesterday", "काल {} खूप गरम होतं"),
    ("it was very cold in {} yesterday", "काल {} खूप थंडी होती"),
)


def weather() -> Iterator[Pair]:
    """It will rain in Nagpur tomorrow."""
    for (english, marathi), (town, inside, _) in product(_WEATHER, TOWNS):
        yield statement(english.format(town), marathi.format(inside))


def on_a_day() -> Iterator[Pair]:
    """Asha will go to Mumbai on Friday; Amit went to Satara on Sunday."""
    for person, (town, _, to), (day, when) in product(THIRD, TOWNS, DAYS):
        go = VERBS["go"]
        yield statement(f"{person.english} will go to {town} on {day}", f"{person.marathi} {when} {to} {go.will[0]}")
        marathi = f"{person.marathi} {when} {to} {go.was_done(person.form)}"
        yield statement(f"{person.english} went to {town} on {day}", marathi)


def at_an_hour() -> Iterator[Pair]:
    """Rahul wakes up at six o'clock."""
    routines = (
        ("wakes up", "", "उठत"),
        ("goes to school", "शाळेत ", "जात"),
        ("comes home", "घरी ", "येत"),
        ("sleeps", "", "झोपत"),
    )
    for person, (english, where, stem), (hour, marathi) in product(THIRD, routines, HOURS.items()):
        yield statement(
            f"{person.english} {english} at {hour} o'clock",
            f"{person.marathi} {marathi} वाजता {where}{present(stem, person.form)}",
        )
