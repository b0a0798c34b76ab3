"""The written grammars that the trained presets learn from: pages of words, and where their figures are measured.

A page is what the model reads in training: as many words as it has positions, and one more to predict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random
from string import ascii_lowercase

LETTERS = tuple(ascii_lowercase)
BLOCK = range(4, 15)

# animal → plural, and where it does what
ANIMALS = {
    "cat": ("cats", {"sit": "mat", "hide": "bed", "jump": "wall"}),
    "dog": ("dogs", {"sleep": "bed", "go": "field", "jump": "log"}),
    "bird": ("birds", {"sit": "roof", "sleep": "nest", "hide": "bush"}),
    "frog": ("frogs", {"sit": "log", "hide": "rock", "go": "pond"}),
    "cow": ("cows", {"sleep": "barn", "go": "field", "jump": "rock"}),
    "duck": ("ducks", {"sit": "rock", "go": "pond", "hide": "bush"}),
    "bee": ("bees", {"sit": "flower", "go": "field", "hide": "roof"}),
    "fox": ("foxes", {"hide": "bush", "sleep": "cave", "jump": "wall"}),
    "horse": ("horses", {"sleep": "barn", "go": "river", "jump": "log"}),
    "bear": ("bears", {"sleep": "cave", "sit": "rock", "go": "river"}),
}
# verb of many → verb of one, and its preposition
VERBS = {
    "sit": ("sits", "on"), "sleep": ("sleeps", "in"), "hide": ("hides", "under"), "go": ("goes", "to"),
    "jump": ("jumps", "over"),
}
PLACES = {
    "mat": "mats", "bed": "beds", "wall": "walls", "roof": "roofs", "nest": "nests", "log": "logs", "rock": "rocks",
    "bush": "bushes", "barn": "barns", "field": "fields", "pond": "ponds", "river": "rivers", "flower": "flowers",
    "cave": "caves",
}
ADJECTIVES = ("big", "small", "old", "young")
LINKS = ("with", "near")
PEOPLE = ("tom", "mia", "leo", "eva", "ben", "amy")
THINGS = ("ball", "kite", "book", "drum", "hat", "boat", "key", "cup")
SOUNDS = ("la", "lo", "hey", "ho", "ding", "dong", "boom", "pop")
SHARE_OF_CHANTS, SHARE_OF_MEMORIES, SHARE_OF_ADJECTIVES = 0.15, 0.5, 0.25
OWNERS = range(2, 4)
VERSE = range(3, 8)
QUESTIONS = 3


@dataclass(frozen=True)
class Sentence:
    """One sentence about an animal, and the places [word] of its subject, its verb and its last noun."""

    words: tuple[str, ...]
    subject: int
    verb: int
    noun: int
    is_plural: bool
    # whether the nearer noun has the other number
    distracts: bool


@dataclass(frozen=True)
class Memory:
    """Who has what and who likes what; for each question the place before its answer, and where that stood before."""

    words: tuple[str, ...]
    questions: tuple[tuple[int, int], ...]


class CopyMachine:
    """A page is a block of letters, repeated to its end."""

    about = "blocks of 4 to 14 letters, none of them twice, each repeated over 32 positions"
    words = LETTERS

    def page(self, chance: Random, length: int) -> list[str]:
        return repeated(self.block(chance), length)

    def block(self, chance: Random) -> list[str]:
        return chance.sample(LETTERS, chance.choice(BLOCK))


class LittleWorld:
    """A page is a chant, or sentences about animals, or who has what and likes it with such sentences behind."""

    about = "sentences from a written grammar: animals and their places, who has what and likes it, chants"
    words = tuple(dict.fromkeys(chain(
        *((animal, plural) for animal, (plural, _) in ANIMALS.items()),
        *((deed, singular) for deed, (singular, _) in VERBS.items()),
        (preposition for _, preposition in VERBS.values()),
        *PLACES.items(), ADJECTIVES, LINKS, ("a", "the", "has", "likes", "."), PEOPLE, THINGS, SOUNDS,
    )))
    sung = (*SOUNDS, *THINGS, *PEOPLE, *ANIMALS, *(plural for plural, _ in ANIMALS.values()))

    def page(self, chance: Random, length: int) -> list[str]:
        kind = chance.random()
        if kind < SHARE_OF_CHANTS:
            return repeated(self.verse(chance), length)
        words = [*self.memory(chance).words] if kind < SHARE_OF_CHANTS + SHARE_OF_MEMORIES else []
        while len(words) < length:
            words += self.sentence(chance).words
        return words[:length]

    def verse(self, chance: Random) -> list[str]:
        """Three to seven words, none of them twice; every other verse is of sounds alone."""
        return chance.sample(SOUNDS if is_so(chance) else self.sung, chance.choice(VERSE))

    def sentence(self, chance: Random, animal: str | None = None, verb: str | None = None,
                 is_alone: bool | None = None) -> Sentence:
        """`the old cat near the dogs sits on the mat .`, or `cats sit on mats .`: verb and place follow the subject."""
        subject = animal or chance.choice([*ANIMALS])
        deeds = ANIMALS[subject][1]
        deed = verb or chance.choice([*deeds])
        is_plural = is_so(chance)
        is_bare = is_plural and is_so(chance)
        words = [*self._noun(chance, subject, is_plural, is_bare)]
        place, distracts = len(words) - 1, False
        if not (is_so(chance) if is_alone is None else is_alone):
            are_many = is_so(chance)
            distracts = are_many != is_plural
            other = chance.choice([name for name in ANIMALS if name != subject])
            words += [chance.choice(LINKS), *self._noun(chance, other, are_many, is_bare)]
        singular, preposition = VERBS[deed]
        verb_place = len(words)
        words += [deed if is_plural else singular, preposition, *(() if is_bare else ("the",))]
        goal = deeds[deed]
        ending = [PLACES[goal] if is_plural else goal, "."]
        return Sentence((*words, *ending), place, verb_place, len(words), is_plural, distracts)

    @staticmethod
    def _noun(chance: Random, animal: str, is_plural: bool, is_bare: bool) -> Iterator[str]:
        if not is_bare:
            yield "the"
        elif not is_plural:
            yield "a"
        if is_so(chance, SHARE_OF_ADJECTIVES):
            yield chance.choice(ADJECTIVES)
        yield ANIMALS[animal][0] if is_plural else animal

    def memory(self, chance: Random) -> Memory:
        """`tom has a ball . mia has a kite . mia likes the kite . …`, at times with another sentence between."""
        count = chance.choice(OWNERS)
        people, things = chance.sample(PEOPLE, count), chance.sample(THINGS, count)
        words = [word for pair in zip(people, things, strict=True) for word in (pair[0], "has", "a", pair[1], ".")]
        seen = {thing: words.index(thing) for thing in things}
        if count == OWNERS.start and is_so(chance):
            words += self.sentence(chance).words
        questions = []
        # asked at random, so that leaving out what was asked before is no way to the answer
        for number in chance.choices(range(count), k=QUESTIONS):
            words += [people[number], "likes", "the", things[number], "."]
            questions.append((len(words) - 3, seen[things[number]]))
        return Memory(tuple(words), tuple(questions))


def repeated(words: Sequence[str], length: int) -> list[str]:
    """The words again and again, cut at that length."""
    return [words[place % len(words)] for place in range(length)]


def is_so(chance: Random, share: float = 0.5) -> bool:
    """True in that share of all cases."""
    return chance.random() < share
