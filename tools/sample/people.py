"""People: names and pronouns with their cases, groups, relatives, and what people are."""

from dataclasses import dataclass

from tools.sample.agreement import Form
from tools.sample.vocabulary import Adjective, adjectives


@dataclass(frozen=True)
class Person:
    """Someone, with the cases spelled out: Rahul, by Rahul (ergative), to Rahul, Rahul's (stem), at Rahul's."""

    english: str
    english_object: str
    english_owner: str
    marathi: str
    ergative: str
    dative: str
    owner: str
    possessor: str
    form: Form
    number: int = 3  # grammatical person

    def verb(self, base: str, third: str) -> str:
        """English agreement: he reads, I read."""
        return third if self.number == 3 and not self.form.many else base


def _name(english: str, marathi: str, form: Form) -> Person:
    """Names keep their shape before case endings: सीताने, not सीतेने."""
    return Person(
        english,
        english,
        f"{english}'s",
        marathi,
        marathi + "ने",
        marathi + "ला",
        marathi + "च",
        marathi + "कडे",
        form,
    )


MEN = [
    _name(english, marathi, Form.MS)
    for english, marathi in (
        ("Rahul", "राहुल"),
        ("Amit", "अमित"),
        ("Mohan", "मोहन"),
    )
]
WOMEN = [
    _name(english, marathi, Form.FS)
    for english, marathi in (
        ("Sita", "सीता"),
        ("Meena", "मीना"),
        ("Asha", "आशा"),
    )
]
NAMES = MEN + WOMEN

HE = Person("he", "him", "his", "तो", "त्याने", "त्याला", "त्याच", "त्याच्याकडे", Form.MS)
SHE = Person("she", "her", "her", "ती", "तिने", "तिला", "तिच", "तिच्याकडे", Form.FS)
I = Person("I", "me", "my", "मी", "मी", "मला", "माझ", "माझ्याकडे", Form.MS, 1)  # noqa: E741
WE = Person("we", "us", "our", "आम्ही", "आम्ही", "आम्हाला", "आमच", "आमच्याकडे", Form.MP, 1)
YOU = Person("you", "you", "your", "तू", "तू", "तुला", "तुझ", "तुझ्याकडे", Form.MS, 2)
THEY = Person("they", "them", "their", "ते", "त्यांनी", "त्यांना", "त्यांच", "त्यांच्याकडे", Form.MP)

THIRD = [*NAMES, HE, SHE]
ANYONE = [*THIRD, I, WE, THEY]  # where gender does not show: ergative, dative, owner
ALL = [*ANYONE, YOU]
ASKED = [*THIRD, THEY, YOU]  # about whom one asks
OWNERS = [MEN[0], WOMEN[0], HE, SHE, I, WE, THEY, YOU]

# The boys, the girls, the children: one group for each plural class.
GROUPS = [
    ("the boys", "मुलगे", Form.MP),
    ("the girls", "मुली", Form.FP),
    ("the children", "मुलं", Form.NP),
]


@dataclass(frozen=True)
class Role:
    """What someone is; the word may differ for men and women."""

    english: tuple[str, str]
    marathi: tuple[str, str]
    qualities: list[Adjective]

    def of(self, form: Form) -> tuple[str, str]:
        return self.english[form.feminine], self.marathi[form.feminine]


_AT_WORK = adjectives("good new famous honest clever lazy bad kind simple")
BOY = Role(
    ("boy", "girl"),
    ("मुलगा", "मुलगी"),
    adjectives("good wise little simple clever tall lazy honest kind poor bad"),
)
WORKERS = [
    Role(("teacher", "teacher"), ("शिक्षक", "शिक्षिका"), _AT_WORK),
    Role(("doctor", "doctor"), ("डॉक्टर", "डॉक्टर"), _AT_WORK),
    Role(("singer", "singer"), ("गायक", "गायिका"), _AT_WORK),
    Role(("player", "player"), ("खेळाडू", "खेळाडू"), _AT_WORK),
]
FRIEND = Role(("friend", "friend"), ("मित्र", "मैत्रीण"), adjectives("good new old true kind honest"))
STUDENT = Role(("student", "student"), ("विद्यार्थी", "विद्यार्थिनी"), adjectives("good new clever lazy honest poor"))
ROLES = [*WORKERS, FRIEND, STUDENT]


@dataclass(frozen=True)
class Relative:
    """A relative; elders of the family stand in the plural of respect (माझे वडील ... आहेत)."""

    english: str
    marathi: str
    form: Form


RELATIVES = [
    Relative("mother", "आई", Form.FS),
    Relative("father", "वडील", Form.MP),
    Relative("brother", "भाऊ", Form.MS),
    Relative("sister", "बहीण", Form.FS),
    Relative("grandfather", "आजोबा", Form.MP),
    Relative("grandmother", "आजी", Form.FS),
]
