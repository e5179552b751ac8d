"""Frames of asking and telling: question words, commands, requests."""

from collections.abc import Iterator
from itertools import product

from tools.sample.agreement import THIS, Form, inflect, is_
from tools.sample.frames_placing import SPOTS
from tools.sample.people import ASKED, NAMES, OWNERS, RELATIVES, THIRD, I
from tools.sample.sentences import Pair, question, statement
from tools.sample.verbs import VERBS, doable
from tools.sample.vocabulary import NUMBERS, QUALITIES, nouns, of_kind

_KEPT = "text food goods tool flower animal"


def where_is() -> Iterator[Pair]:
    """Where is my book? Where are Meena's keys?"""
    for owner, noun in product(OWNERS, of_kind("text goods tool animal")):
        for form in (noun.form, noun.form.plural):
            word, marathi = (noun.plural, noun.many_marathi) if form.many else (noun.english, noun.marathi)
            whose = inflect(owner.owner, form)
            be = "are" if form.many else "is"
            yield question(f"where {be} {owner.english_owner} {word}", f"{whose} {marathi} कुठे {is_(form)}")


def where_is_family() -> Iterator[Pair]:
    """Where is your grandfather?"""
    for owner, relative in product(OWNERS, RELATIVES):
        marathi = f"{inflect(owner.owner, relative.form)} {relative.marathi} कुठे {is_(relative.form)}"
        yield question(f"where is {owner.english_owner} {relative.english}", marathi)


def whose() -> Iterator[Pair]:
    """Whose watch is this? Whose shirts are these?"""
    for noun in of_kind(_KEPT):
        one, many = noun.form, noun.form.plural
        yield question(f"whose {noun.english} is this", f"{THIS[one]} {noun.marathi} {inflect('कोणाच', one)} आहे")
        marathi = f"{THIS[many]} {noun.many_marathi} {inflect('कोणाच', many)} आहेत"
        yield question(f"whose {noun.plural} are these", marathi)


def what() -> Iterator[Pair]:
    """What is Sita reading? What did Mohan bring? A thing not yet known is neuter."""
    for person, word in product(THIRD, ("read", "write", "eat", "buy", "bring", "wash")):
        verb = VERBS[word]
        yield question(f"what is {person.english} {verb.doing}", f"{person.marathi} काय {verb.now('आहे')}")
        marathi = f"{person.ergative} काय {verb.was_done(Form.NS)}"
        yield question(f"what did {person.english} {verb.base}", marathi)


def how_many() -> Iterator[Pair]:
    """How many chairs does Amit have?"""
    for person, noun in product(ASKED, of_kind(_KEPT)):
        english = f"how many {noun.plural} {person.verb('do', 'does')} {person.english} have"
        yield question(english, f"{person.possessor} किती {noun.many_marathi} आहेत")


def when() -> Iterator[Pair]:
    """When will Asha come home?"""
    doings = (
        ("come home", "घरी {} येईल"),
        ("go to school", "शाळेत {} जाईल"),
        ("go to the market", "बाजारात {} जाईल"),
        ("go to the temple", "मंदिरात {} जाईल"),
        ("read the letter", "पत्र {} वाचेल"),
        ("buy a car", "गाडी {} विकत घेईल"),
    )
    for person, (english, marathi) in product(THIRD, doings):
        yield question(f"when will {person.english} {english}", f"{person.marathi} {marathi.format('कधी')}")


def why() -> Iterator[Pair]:
    """Why is Amit laughing?"""
    doings = (("laughing", "हसत"), ("crying", "रडत"), ("running", "धावत"), ("dancing", "नाचत"))
    for person, (english, marathi) in product(THIRD, doings):
        yield question(f"why is {person.english} {english}", f"{person.marathi} का {marathi} आहे")


def who() -> Iterator[Pair]:
    """Who wrote the letter?"""
    for verb, noun in doable("read write eat bring buy wash open close"):
        yield question(f"who {verb.past} the {noun.english}", f"{noun.marathi} कोणी {verb.was_done(noun.form)}")


def do_it() -> Iterator[Pair]:
    """Bring two red flowers; wash the green shirt."""
    for verb, noun in doable("read eat bring buy wash open close"):
        for quality in QUALITIES.get(noun.kind, []):
            if quality.english in ("good", "cheap", "beautiful"):
                continue
            thing = noun.one(quality, "the")
            yield statement(f"{verb.base} {thing.english}", f"{thing.marathi} {verb.command()}")
            if verb.base in ("bring", "buy"):
                for number in NUMBERS:
                    things = noun.many(quality, number)
                    yield statement(f"{verb.base} {things.english}", f"{things.marathi} {verb.command()}")


def put_it() -> Iterator[Pair]:
    """Put the near the window."""
    laid = nouns("book letter mango apple watch shirt cap bag key ball flower")
    for noun, (english, marathi) in product(laid, SPOTS):
        if noun.english not in english:
            yield statement(f"put the {noun.english} {english}", f"{noun.marathi} {marathi} ठेव")
            yield statement(f"please put the {noun.english} {english}", f"कृपया {noun.marathi} {marathi} ठेवा")


def do_not() -> Iterator[Pair]:
    """Do not eat my mango."""
    for owner, (verb, noun) in product(OWNERS, doable("read eat bring buy wash close")):
        thing = f"{inflect(owner.owner, noun.form)} {noun.marathi}"
        if noun.kind != "inside" and owner.english != "you":
            yield statement(f"do not {verb.base} {owner.english_owner} {noun.english}", f"{thing} {verb.forbidden()}")


def please() -> Iterator[Pair]:
    """Please close the window; please give Asha two books."""
    for verb, noun in doable("read eat bring buy wash open close"):
        yield statement(f"please {verb.base} the {noun.english}", f"कृपया {noun.marathi} {verb.command(polite=True)}")
    for person, noun in product([*NAMES, I], nouns("book apple watch key ball flower letter")):
        for number in NUMBERS:
            things = noun.many(number=number)
            marathi = f"कृपया {person.dative} {things.marathi} {VERBS['give'].command(polite=True)}"
            yield statement(f"please give {person.english_object} {things.english}", marathi)
