"""Verbs with every stem written out, and what they can be done to."""

from dataclasses import dataclass

from tools.sample.agreement import Form, inflect, is_, is_not, present, was
from tools.sample.people import Person
from tools.sample.vocabulary import NOUNS, Noun, Phrase, nouns


@dataclass(frozen=True)
class Verb:
    """English base, third person, past and -ing form; the Marathi stems, after an optional first word (विकत घे-)."""

    base: str
    third: str
    past: str
    doing: str
    first: str
    habit: str  # वाचत-ो
    going: str  # वाचत आहे
    done: str  # वाचल-ा
    will: tuple[str, str, str, str]  # he, I, you, we
    able: str  # वाचू शकतो, वाचू नकोस
    wish: str  # वाचायच-ा आहे
    order: tuple[str, str]  # to one familiar person; polite or to many
    shall: str  # वाचणार नाही

    def _say(self, *words: str) -> str:
        return " ".join(word for word in (self.first, *words) if word)

    def habitual(self, form: Form) -> str:
        return self._say(present(self.habit, form))

    def never(self, form: Form) -> str:
        return self._say(self.going, is_not(form))

    def now(self, auxiliary: str) -> str:
        return self._say(self.going, auxiliary)

    def then(self, form: Form) -> str:
        return self._say(self.going, was(form))

    def was_done(self, form: Form) -> str:
        """Past: agrees with the object when transitive, with the subject otherwise."""
        return self._say(inflect(self.done, form))

    def future(self, form: Form, person: int = 3) -> str:
        if person == 3:
            return self._say(self.habit + "ील" if form.many else self.will[0])
        return self._say(self.will[3 if form.many else person])

    def will_not(self, form: Form) -> str:
        return self._say(self.shall, is_not(form))

    def to_be_done(self, form: Form) -> str:
        return self._say(inflect(self.wish, form), is_(form))

    def command(self, polite: bool = False) -> str:
        return self._say(self.order[polite])

    def forbidden(self) -> str:
        return self._say(self.able, "नकोस")


def auxiliary(person: Person) -> str:
    """आहे of the progressive: मी आहे, तू आहेस, आम्ही आहोत."""
    if person.number == 1:
        return "आहोत" if person.form.many else "आहे"
    return "आहेस" if person.number == 2 else is_(person.form)


# English forms / first word or - / habit, going, done / future of he, I, you, we / able, wish, orders, shall
_VERBS = """
read reads read reading / - / वाचत वाचत वाचल / वाचेल वाचेन वाचशील वाचू / वाचू वाचायच वाच वाचा वाचणार
write writes wrote writing / - / लिहित लिहीत लिहिल / लिहील लिहीन लिहिशील लिहू / लिहू लिहायच लिही लिहा लिहिणार
eat eats ate eating / - / खात खात खाल्ल / खाईल खाईन खाशील खाऊ / खाऊ खायच खा खा खाणार
drink drinks drank drinking / - / पित पीत प्यायल / पिईल पिईन पिशील पिऊ / पिऊ प्यायच पी प्या पिणार
bring brings brought bringing / - / आणत आणत आणल / आणेल आणेन आणशील आणू / आणू आणायच आण आणा आणणार
buy buys bought buying / विकत / घेत घेत घेतल / घेईल घेईन घेशील घेऊ / घेऊ घ्यायच घे घ्या घेणार
sell sells sold selling / - / विकत विकत विकल / विकेल विकेन विकशील विकू / विकू विकायच विक विका विकणार
see sees saw seeing / - / पाहत पाहत पाहिल / पाहील पाहीन पाहशील पाहू / पाहू पाहायच पाहा पाहा पाहणार
wash washes washed washing / - / धुत धूत धुतल / धुईल धुईन धुशील धुऊ / धुऊ धुवायच धू धुवा धुणार
open opens opened opening / - / उघडत उघडत उघडल / उघडेल उघडेन उघडशील उघडू / उघडू उघडायच उघड उघडा उघडणार
close closes closed closing / बंद / करत करत केल / करेल करेन करशील करू / करू करायच कर करा करणार
look_for looks_for looked_for looking_for / - / शोधत शोधत शोधल / शोधेल शोधेन शोधशील शोधू / शोधू शोधायच शोध शोधा शोधणार
give gives gave giving / - / देत देत दिल / देईल देईन देशील देऊ / देऊ द्यायच दे द्या देणार
go goes went going / - / जात जात गेल / जाईल जाईन जाशील जाऊ / जाऊ जायच जा जा जाणार
come comes came coming / - / येत येत आल / येईल येईन येशील येऊ / येऊ यायच ये या येणार
play plays played playing / - / खेळत खेळत खेळल / खेळेल खेळेन खेळशील खेळू / खेळू खेळायच खेळ खेळा खेळणार
sleep sleeps slept sleeping / - / झोपत झोपत झोपल / झोपेल झोपेन झोपशील झोपू / झोपू झोपायच झोप झोपा झोपणार
sit sits sat sitting / - / बसत बसत बसल / बसेल बसेन बसशील बसू / बसू बसायच बस बसा बसणार
"""


def _verb(line: str) -> Verb:
    english, first, past, future, rest = (part.split() for part in line.split("/"))
    base, third, before, doing = (word.replace("_", " ") for word in english)
    habit, going, done = past
    able, wish, one, many, shall = rest
    will = (future[0], future[1], future[2], future[3])
    lead = "" if first == ["-"] else first[0]
    return Verb(base, third, before, doing, lead, habit, going, done, will, able, wish, (one, many), shall)


VERBS = {verb.base.replace(" ", "_"): verb for verb in map(_verb, _VERBS.strip().splitlines())}

# What is read, eaten, bought ...
OBJECTS: dict[str, list[Noun]] = {
    "read": nouns("book letter story"),
    "write": nouns("book letter story"),
    "eat": nouns("mango apple"),
    "bring": nouns("book mango apple chair watch shirt cap bag key ball flower"),
    "buy": nouns("book mango apple chair table watch shirt cap bag car ball flower horse"),
    "see": nouns("dog cat horse cow tree house garden temple car"),
    "wash": nouns("shirt cap bag car apple mango"),
    "open": nouns("door window bag letter"),
    "close": nouns("door window bag book"),
    "look_for": nouns("book letter watch cap bag key ball shirt dog cat"),
}
# What is done to it time and again.
HABITS: dict[str, list[Noun]] = {
    "read": nouns("book letter story"),
    "write": nouns("letter story"),
    "eat": nouns("mango apple"),
    "buy": nouns("mango apple flower"),
    "sell": nouns("mango apple flower book cap bag"),
}
MASSES = {"drink": nouns("tea coffee milk water"), "eat": nouns("rice"), "buy": nouns("milk"), "sell": nouns("milk")}


def bare(noun: Noun) -> Phrase:
    """A mass noun: no article, singular."""
    return Phrase(noun.english, noun.marathi, noun.form)


def doable(words: str) -> list[tuple[Verb, Noun]]:
    """Every verb named with each of its countable objects."""
    return [(VERBS[word], noun) for word in words.split() for noun in OBJECTS[word]]


def habits(words: str) -> list[tuple[Verb, Phrase]]:
    """What is done time and again: to many things (reads books) or a mass (drinks tea)."""
    many = [(VERBS[word], noun.many()) for word in words.split() for noun in HABITS.get(word, [])]
    masses = [(VERBS[word], bare(noun)) for word in words.split() for noun in MASSES.get(word, [])]
    return many + masses


# Where one goes, plays, is: English without preposition, Marathi "in".
PLACES = {word: NOUNS[word].oblique + "त" for word in ("garden", "school", "market", "temple", "hospital", "house")}
