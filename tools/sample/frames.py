"""The frame part of the sample: how many sources of each frame, and which.

A frame yields every sentence its vocabulary allows; the count beside it says how many distinct English sources are
kept, chosen so that its words come up evenly, by hash where that leaves it open. A source that hides the gender keeps
all its references.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from tools.sample import frames_asking as asking
from tools.sample import frames_being as being
from tools.sample import frames_doing as doing
from tools.sample import frames_having as having
from tools.sample import frames_placing as placing
from tools.sample.sentences import Pair, by_hash, words

HELD_OUT = "Rahul is a good boy"  # never in the sample: what the demonstration translates
# Never in the sample either: sentences so ordinary that other collections hold them too.
LEFT_OUT = """
Can he speak English?
Do you like cats?
Do you like coffee?
He cannot swim.
He does not drink coffee.
He has a white cat.
He has two sisters.
He is reading a book.
He wakes up at seven o'clock.
How many apples do you have?
How many books do you have?
I am eating an apple.
I bought a horse.
I gave him a book.
I have one brother.
I have two books.
I like coffee.
I like tea.
I like this book.
I like this room.
I like this school.
I like this shirt.
I want to drink milk.
My dog is white.
My father is a doctor.
My father is a teacher.
My sister is a teacher.
Please close the door.
Put the book on the table.
She does not drink coffee.
She has two sisters.
The cat is under the table.
The cat was on the table.
The key is on the table.
The keys are on the table.
These are beautiful flowers.
They are eating an apple.
They have two daughters.
This is a beautiful house.
This is a big house.
We like coffee.
We must go to school.
Where are my books?
Where are my watches?
Where is my bag?
Where is my cap?
Where is my dog?
Where is my mother?
Where is my sister?
Where is your brother?
Where is your cap?
Where is your father?
Where is your mother?
Where is your sister?
Who wrote the letter?
Whose book is this?
Whose cats are these?
Whose letter is this?
You have three cars.
"""
POOL = 8  # how many candidates a frame weighs for each source it keeps

COUNTS: tuple[tuple[Callable[[], Iterator[Pair]], int], ...] = (
    (being.boy_or_girl, 75),
    (being.what_someone_is, 65),
    (being.what_someone_is_not, 30),
    (being.is_someone, 35),
    (being.very, 25),
    (being.more_than, 35),
    (being.this_is, 90),
    (being.these_are, 95),
    (being.mine_is, 105),
    (being.mine_are, 90),
    (being.mine_is_not, 55),
    (being.is_yours, 55),
    (being.family, 35),
    (being.family_was, 25),
    (having.has_one, 95),
    (having.has_some, 45),
    (having.has_no, 25),
    (having.has_it, 40),
    (having.has_kin, 45),
    (having.wants, 80),
    (having.wants_to, 45),
    (having.likes, 60),
    (having.likes_not, 40),
    (having.likes_it, 40),
    (having.must, 30),
    (having.must_go, 15),
    (doing.does, 40),
    (doing.does_not, 30),
    (doing.does_it, 25),
    (doing.i_do, 18),
    (doing.they_do, 15),
    (doing.is_doing, 50),
    (doing.are_doing, 30),
    (doing.was_doing, 50),
    (doing.did, 70),
    (doing.did_to_some, 95),
    (doing.did_not, 30),
    (doing.did_it, 30),
    (doing.gave, 50),
    (doing.will_do, 50),
    (doing.we_will_do, 32),
    (doing.will_you, 16),
    (doing.will_not_do, 25),
    (doing.can, 35),
    (doing.group_is_doing, 20),
    (placing.lies, 55),
    (placing.lay, 50),
    (placing.there_is, 60),
    (placing.there_are, 30),
    (placing.stays, 55),
    (placing.went, 50),
    (placing.goes_with, 30),
    (placing.lives, 30),
    (placing.weather, 30),
    (placing.on_a_day, 40),
    (placing.at_an_hour, 30),
    (asking.where_is, 45),
    (asking.where_is_family, 15),
    (asking.whose, 25),
    (asking.what, 25),
    (asking.how_many, 25),
    (asking.when, 20),
    (asking.why, 20),
    (asking.who, 22),
    (asking.do_it, 60),
    (asking.put_it, 35),
    (asking.do_not, 45),
    (asking.please, 40),
)


def references(frame: Callable[[], Iterator[Pair]]) -> dict[str, list[str]]:
    """The frame's sources, each with its references; without those that must stay out."""
    out = [words(english) for english in (HELD_OUT, *LEFT_OUT.strip().splitlines())]
    references_by_source: dict[str, list[str]] = {}
    for english, marathi in frame():
        if words(english) not in out and marathi not in references_by_source.setdefault(english, []):
            references_by_source[english].append(marathi)
    return references_by_source


def chosen(frame: Callable[[], Iterator[Pair]], count: int, seen: Counter[str]) -> list[Pair]:
    """`count` sources of the frame, one at a time the one with the words used least, with all its references.

    Used least in this frame, so that it is spread over its whole vocabulary, and `seen` least in all frames so far.
    """
    references_by_source = references(frame)
    pool = {
        english: set(words(english) + words(references_by_source[english][0]))
        for english in by_hash(references_by_source)[: POOL * count]
    }
    here: Counter[str] = Counter()

    def rarity(source: str) -> int:
        """In whole numbers, so that the order of adding cannot matter."""
        return sum(10**6 // (1 + here[word]) + 10**6 // (1 + seen[word]) for word in pool[source])

    chosen_pairs = []
    for _ in range(min(count, len(pool))):
        best = max(pool, key=rarity)
        here.update(pool[best])
        seen.update(pool.pop(best))
        chosen_pairs += [(best, marathi) for marathi in references_by_source[best]]
    return chosen_pairs


def frame_pairs() -> dict[str, list[Pair]]:
    """The pairs of every frame, by the frame's name."""
    seen: Counter[str] = Counter()
    return {frame.__name__: chosen(frame, count, seen) for frame, count in COUNTS}
