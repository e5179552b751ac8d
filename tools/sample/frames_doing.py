"""Frames of doing: present, progressive, past with its ergative, future."""

from collections.abc import Iterator
from itertools import product

from tools.sample.agreement import Form, inflect, is_, present
from tools.sample.people import ANYONE, GROUPS, HE, NAMES, SHE, THEY, THIRD, WE, YOU, I
from tools.sample.sentences import Pair, question, statement
from tools.sample.verbs import MASSES, VERBS, Verb, auxiliary, bare, doable, habits
from tools.sample.vocabulary import NUMBERS, QUALITIES, Phrase

_DAILY = "read write eat drink buy sell"
_MAKING = "read write eat bring buy wash open close"
_MADE = _MAKING + " see"


def does() -> Iterator[Pair]:
    """Rahul drinks tea every day."""
    for person, (verb, thing) in product(THIRD, habits(_DAILY)):
        english = f"{person.english} {verb.third} {thing.english}"
        marathi = f"{thing.marathi} {verb.habitual(person.form)}"
        yield statement(english, f"{person.marathi} {marathi}")
        yield statement(f"{english} every day", f"{person.marathi} रोज {marathi}")


def does_not() -> Iterator[Pair]:
    """Asha does not eat apples."""
    for person, (verb, thing) in product(THIRD, habits(_DAILY)):
        marathi = f"{person.marathi} {thing.marathi} {verb.never(person.form)}"
        yield statement(f"{person.english} does not {verb.base} {thing.english}", marathi)


def does_it() -> Iterator[Pair]:
    """Does Amit sell flowers?"""
    for person, (verb, thing) in product(THIRD, habits(_DAILY)):
        marathi = f"{person.marathi} {thing.marathi} {verb.habitual(person.form)} का"
        yield question(f"does {person.english} {verb.base} {thing.english}", marathi)


def i_do() -> Iterator[Pair]:
    """I drink tea every day: English hides the gender, so both references stand."""
    for verb, thing in habits(_DAILY):
        for form in (Form.MS, Form.FS):
            english = f"I {verb.base} {thing.english} every day"
            yield statement(english, f"मी रोज {thing.marathi} {verb.habitual(form)}")


def they_do() -> Iterator[Pair]:
    """They are reading a book: ते of men, त्या of women."""
    for verb, noun in doable("read write eat buy wash look_for"):
        for they in ("ते", "त्या"):
            english = f"They are {verb.doing} {noun.one().english}"
            yield statement(english, f"{they} {noun.marathi} {verb.now('आहेत')}")


def _happening() -> list[tuple[Verb, Phrase]]:
    singles = [(verb, noun.one()) for verb, noun in doable(_MAKING + " look_for")]
    return singles + [(VERBS["drink"], bare(noun)) for noun in MASSES["drink"]]


def is_doing() -> Iterator[Pair]:
    """Sita is reading a book."""
    for person, (verb, thing) in product(THIRD, _happening()):
        marathi = f"{person.marathi} {thing.marathi} {verb.now('आहे')}"
        yield statement(f"{person.english} is {verb.doing} {thing.english}", marathi)


def are_doing() -> Iterator[Pair]:
    """I am opening a bag; you are; we are."""
    for (person, be), (verb, thing) in product(((I, "am"), (YOU, "are"), (WE, "are")), _happening()):
        marathi = f"{person.marathi} {thing.marathi} {verb.now(auxiliary(person))}"
        yield statement(f"{person.english} {be} {verb.doing} {thing.english}", marathi)


def was_doing() -> Iterator[Pair]:
    """Asha was washing a shirt; the girls were drinking milk."""
    people = [(person.english, person.marathi, person.form) for person in THIRD] + GROUPS
    for (english, marathi, form), (verb, thing) in product(people, _happening()):
        be = "were" if form.many else "was"
        yield statement(f"{english} {be} {verb.doing} {thing.english}", f"{marathi} {thing.marathi} {verb.then(form)}")


def did() -> Iterator[Pair]:
    """Rahul bought a car: ergative doer, the verb follows the thing."""
    for person, (verb, noun) in product([*THIRD, I, WE], doable(_MADE)):
        if verb.base == "read" and person in (I, WE):
            continue  # "I read" does not show its tense
        marathi = f"{person.ergative} {noun.marathi} {verb.was_done(noun.form)}"
        yield statement(f"{person.english} {verb.past} {noun.one().english}", marathi)


def did_to_some() -> Iterator[Pair]:
    """I saw two black dogs."""
    for person, (verb, noun), number in product([*THIRD, I, WE], doable("bring buy see"), NUMBERS):
        for quality in QUALITIES[noun.kind]:
            things = noun.many(quality, number)
            marathi = f"{person.ergative} {things.marathi} {verb.was_done(things.form)}"
            yield statement(f"{person.english} {verb.past} {things.english}", marathi)


def did_not() -> Iterator[Pair]:
    """He did not open the window."""
    for person, (verb, noun) in product(ANYONE, doable(_MAKING)):
        marathi = f"{person.ergative} {noun.marathi} {verb.was_done(noun.form)} नाही"
        yield statement(f"{person.english} did not {verb.base} the {noun.english}", marathi)


def did_it() -> Iterator[Pair]:
    """Did Meena bring the key?"""
    for person, (verb, noun) in product([*THIRD, THEY], doable(_MAKING)):
        marathi = f"{person.ergative} {noun.marathi} {verb.was_done(noun.form)} का"
        yield question(f"did {person.english} {verb.base} the {noun.english}", marathi)


def gave() -> Iterator[Pair]:
    """Amit gave Meena a watch."""
    gifts = [noun for _, noun in doable("bring")]
    for person, other, noun in product([*THIRD, I], [*NAMES, I, HE, SHE], gifts):
        if person is other or {person, other} in ({HE}, {SHE}):
            continue
        marathi = f"{person.ergative} {other.dative} {noun.marathi} {inflect('दिल', noun.form)}"
        yield statement(f"{person.english} gave {other.english_object} {noun.one().english}", marathi)


def will_do() -> Iterator[Pair]:
    """Mohan will buy a table tomorrow."""
    for person, (verb, noun) in product(THIRD, doable(_MAKING)):
        marathi = f"{person.marathi} उद्या {noun.marathi} {verb.future(person.form)}"
        yield statement(f"{person.english} will {verb.base} {noun.one().english} tomorrow", marathi)


def we_will_do() -> Iterator[Pair]:
    """I will read a story tomorrow; we will buy a tomorrow."""
    for person, (verb, noun) in product((I, WE), doable("read eat bring buy")):
        marathi = f"{person.marathi} उद्या {noun.marathi} {verb.future(person.form, person.number)}"
        yield statement(f"{person.english} will {verb.base} {noun.one().english} tomorrow", marathi)


def will_you() -> Iterator[Pair]:
    """Will you bring the key?"""
    for verb, noun in doable("read eat bring buy"):
        marathi = f"{YOU.marathi} {noun.marathi} {verb.future(YOU.form, YOU.number)} का"
        yield question(f"will you {verb.base} the {noun.english}", marathi)


def will_not_do() -> Iterator[Pair]:
    """Asha will not open the window."""
    for person, (verb, noun) in product([*THIRD, I], doable(_MAKING)):
        marathi = f"{person.marathi} {noun.marathi} {verb.will_not(person.form)}"
        yield statement(f"{person.english} will not {verb.base} the {noun.english}", marathi)


_SKILLS = (
    ("drive a car", "गाडी चालवू"),
    ("swim", "पोहू"),
    ("sing", "गाऊ"),
    ("dance", "नाचू"),
    ("read Marathi", "मराठी वाचू"),
    ("write Marathi", "मराठी लिहू"),
    ("speak Marathi", "मराठी बोलू"),
    ("read English", "इंग्रजी वाचू"),
    ("write English", "इंग्रजी लिहू"),
    ("speak English", "इंग्रजी बोलू"),
)


def can() -> Iterator[Pair]:
    """Asha can drive a car; Mohan cannot swim."""
    for person, (english, marathi) in product(THIRD, _SKILLS):
        yield statement(f"{person.english} can {english}", f"{person.marathi} {marathi} {present('शकत', person.form)}")
        yield statement(f"{person.english} cannot {english}", f"{person.marathi} {marathi} शकत नाही")
        yield question(
            f"can {person.english} {english}", f"{person.marathi} {marathi} {present('शकत', person.form)} का"
        )


def group_is_doing() -> Iterator[Pair]:
    """The girls are eating mangoes."""
    for (english, marathi, form), (verb, thing) in product(GROUPS, habits(_DAILY)):
        yield statement(
            f"{english} are {verb.doing} {thing.english}", f"{marathi} {thing.marathi} {verb.now(is_(form))}"
        )
