"""Frames of being: who someone is, what something is like, whose it is."""

from collections.abc import Iterator
from itertools import product

from tools.sample.agreement import THAT, THIS, Form, a, inflect, is_, is_not, was
from tools.sample.people import BOY, NAMES, OWNERS, RELATIVES, ROLES, THIRD, WORKERS, Person, Role
from tools.sample.sentences import Pair, question, statement
from tools.sample.verbs import PLACES
from tools.sample.vocabulary import QUALITIES, Adjective, Noun, adjectives, of_kind

_MOVED = "text tale food goods tool flower animal"
_OWNED = "text tale goods tool animal"


def _described(kinds: str) -> list[tuple[Noun, Adjective]]:
    return [(noun, quality) for noun in of_kind(kinds) for quality in QUALITIES[noun.kind]]


def _someone(person: Person, role: Role, quality: Adjective) -> tuple[str, str]:
    """What the person is, in both languages: a good boy, चांगला मुलगा."""
    english, marathi = role.of(person.form)
    return a(f"{quality.english} {english}"), f"{quality.agreeing(person.form)} {marathi}"


def boy_or_girl() -> Iterator[Pair]:
    """Amit is a good boy."""
    for person, quality in product(THIRD, BOY.qualities):
        english, marathi = _someone(person, BOY, quality)
        yield statement(f"{person.english} is {english}", f"{person.marathi} {marathi} आहे")


def what_someone_is() -> Iterator[Pair]:
    """Meena is a famous singer: adjective and noun follow her gender."""
    for person, role in product(THIRD, ROLES):
        for quality in role.qualities:
            english, marathi = _someone(person, role, quality)
            yield statement(f"{person.english} is {english}", f"{person.marathi} {marathi} आहे")


def what_someone_is_not() -> Iterator[Pair]:
    """Amit is not a lazy student."""
    for person, role in product(THIRD, [BOY, *ROLES]):
        for quality in role.qualities:
            english, marathi = _someone(person, role, quality)
            yield statement(f"{person.english} is not {english}", f"{person.marathi} {marathi} नाही")


def is_someone() -> Iterator[Pair]:
    """Is Asha a good doctor?"""
    for person, role in product(THIRD, [BOY, *ROLES]):
        for quality in role.qualities:
            english, marathi = _someone(person, role, quality)
            yield question(f"is {person.english} {english}", f"{person.marathi} {marathi} आहे का")


def very() -> Iterator[Pair]:
    """Meena is very wise."""
    for person, quality in product(NAMES, adjectives("good wise simple clever tall lazy honest kind poor")):
        yield statement(
            f"{person.english} is very {quality.english}", f"{person.marathi} खूप {quality.agreeing(person.form)} आहे"
        )


def more_than() -> Iterator[Pair]:
    """Rahul is taller than Amit."""
    for person, other, quality in product(NAMES, NAMES, adjectives("taller cleverer kinder older younger")):
        if person is not other:
            marathi = f"{person.marathi} {other.marathi}पेक्षा {quality.agreeing(person.form)} आहे"
            yield statement(f"{person.english} is {quality.english} than {other.english}", marathi)


def this_is() -> Iterator[Pair]:
    """This is a big house; that is a red flower."""
    for noun, quality in _described(_MOVED + " place"):
        thing = noun.one(quality)
        for english, marathi in (("this", THIS), ("that", THAT)):
            yield statement(f"{english} is {thing.english}", f"{marathi[thing.form]} {thing.marathi} आहे")


def these_are() -> Iterator[Pair]:
    """These are new books."""
    for noun, quality in _described(_MOVED):
        things = noun.many(quality)
        for english, marathi in (("these", THIS), ("those", THAT)):
            yield statement(f"{english} are {things.english}", f"{marathi[things.form]} {things.marathi} आहेत")


def _owned(owner: Person, noun: Noun, form: Form) -> tuple[str, str]:
    """What is owned, in both languages: my house, माझं घर."""
    plural = form.many
    english = f"{owner.english_owner} {noun.plural if plural else noun.english}"
    return english, f"{inflect(owner.owner, form)} {noun.many_marathi if plural else noun.marathi}"


def mine_is() -> Iterator[Pair]:
    """My cat is white."""
    for owner, (noun, quality) in product(OWNERS, _described(_OWNED)):
        english, marathi = _owned(owner, noun, noun.form)
        yield statement(f"{english} is {quality.english}", f"{marathi} {quality.agreeing(noun.form)} आहे")


def mine_are() -> Iterator[Pair]:
    """Her caps are green."""
    for owner, (noun, quality) in product(OWNERS, _described(_OWNED)):
        form = noun.form.plural
        english, marathi = _owned(owner, noun, form)
        yield statement(f"{english} are {quality.english}", f"{marathi} {quality.agreeing(form)} आहेत")


def mine_is_not() -> Iterator[Pair]:
    """His car is not new; his cars are not new."""
    for owner, (noun, quality) in product(OWNERS, _described(_OWNED)):
        for form in (noun.form, noun.form.plural):
            english, marathi = _owned(owner, noun, form)
            be = "are" if form.many else "is"
            yield statement(
                f"{english} {be} not {quality.english}", f"{marathi} {quality.agreeing(form)} {is_not(form)}"
            )


def is_yours() -> Iterator[Pair]:
    """Is your house big? Are your shirts green?"""
    for owner, (noun, quality) in product(OWNERS, _described(_OWNED)):
        for form in (noun.form, noun.form.plural):
            english, marathi = _owned(owner, noun, form)
            be = "are" if form.many else "is"
            yield question(f"{be} {english} {quality.english}", f"{marathi} {quality.agreeing(form)} {is_(form)} का")


def family() -> Iterator[Pair]:
    """Sita's brother is a teacher; elders take the plural of respect."""
    for owner, relative, role in product(OWNERS, RELATIVES, WORKERS):
        english, marathi = role.of(relative.form)
        whose = inflect(owner.owner, relative.form)
        yield statement(
            f"{owner.english_owner} {relative.english} is {a(english)}",
            f"{whose} {relative.marathi} {marathi} {is_(relative.form)}",
        )


def family_was() -> Iterator[Pair]:
    """My aunt was in the temple yesterday."""
    for owner, relative, (place, inside) in product(OWNERS, RELATIVES, PLACES.items()):
        whose = inflect(owner.owner, relative.form)
        yield statement(
            f"{owner.english_owner} {relative.english} was in the {place} yesterday",
            f"{whose} {relative.marathi} काल {inside} {was(relative.form)}",
        )
