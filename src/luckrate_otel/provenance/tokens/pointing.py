"""What the user pointed at: the people and things a request names, and whether it hands over to what others wrote.

All of this only softens a finding, it never clears one: whoever writes the untrusted text can imitate the words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from luckrate_otel.provenance.tokens.fold import phrase, vocabulary, within, words

_CAPITAL = re.compile(r"(?<![\w@./-])[A-Z][a-zA-Z'-]{2,30}")
_QUOTED = re.compile(r"[\"“']([^\"”'\n]{3,80})[\"”']")
# Words that open requests or are capitalised for other reasons, and words too general to tell one record from another.
_COMMON = vocabulary("""
    the this that these those there then they them their please could would should can will may might must what when
    where which who whom whose why how have has had does did was were are and but for from with into onto over after
    before about you your yours our ours its his her hers she him not also all any each every some check find get
    give show tell send make create add read visit open download save upload post write reply buy order pay transfer
    move copy delete remove update change set look list book reserve cancel schedule invite share summarize
    summarise help let use using follow complete finish calculate hello dear thanks thank hey good morning yes sure
    okay just only first second last next new one two three monday tuesday wednesday thursday friday saturday sunday
    january february march april june july august september october november december today tomorrow yesterday
    however include included including following specific instructions request requests information account accounts
    email emails message messages website webpage number address through work task tasks
""")
# A request that hands over: the user asks for whatever that text says to be done.
MAX_REQUEST = 20_000  # characters of a turn that are read as a request; what is pasted behind it is data
_ENDING = re.compile(r"(?<=\w)\.\w{2,}(?=[.,;:!?)]?$)")  # the last label of a host says nothing of whose it is
_URL_PATH = re.compile(r"(?<![/:])/[^/].*")
_HANDS_OVER = re.compile(
    r"\b(?:instruct(?:ion|ed)|follow|fulfil|request|asked|asks|tasks?\b|to-?dos?\b|action items?"
    r"|steps (?:in|from|listed|described)|take care of (?:it|his|her|their)|on (?:his|her|their) behalf"
    r"|address (?:his|her|their|the|this|that) (?:issue|concern|point)s?"
    r"|(?:what|whatever|everything|as)\s+(?:\w+\s+){1,3}"
    r"(?:says?|said|needs?|wants?|described|listed|specified|writes|wrote))",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")
_OWN = re.compile(r"\b(?:my|our|mine|ours)\b", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w:/.])[~.]{0,2}/[\w./ -]{0,200}\w|[\w./-]{1,100}\.[a-z]{2,4}(?![\w/])")
_LONG = 5  # letters of a word that carries meaning of its own inside a value
_TOPIC = 4  # and in running text
_STEM = 6  # compared letters of long words: repository = repositories
_SHARED = 2  # shared words that tie a passage to a request


@dataclass(frozen=True, slots=True)
class Request:
    """What the user's turns mention.

    topics: stems of long words. hands_over: acting on others' words was asked for. own_files: phrases of the paths that
    the user speaks of as holding their own data.
    """

    names: frozenset[str]
    topics: frozenset[str]
    hands_over: bool
    own_files: frozenset[str] = frozenset()

    def names_value(self, text: str) -> bool:
        """The value itself carries a name or a topic of the request: a.chen@… for "Chen", homework@… for "homework"."""
        return any(
            word in self.names
            or (
                len(word) >= _LONG
                and (word[:_STEM] in self.topics or any(word.startswith(n) for n in self.names if len(n) >= _LONG))
            )
            for word in words(_ENDING.sub("", text))
        )

    def hands_over_to(self, record: str) -> bool:
        """The request asks to act on a text, and this record is the one it speaks of."""
        if not self.hands_over:
            return False
        if any(within(name, record) for name in self.names):
            return True
        shared = {word[:_STEM] for word in record.split() if len(word) >= _TOPIC} & self.topics
        return len(shared) >= _SHARED


def request(turns: Collection[str], tools: Iterable[str]) -> Request:
    """Read the user's turns. Words that are part of the run's tool names (`github`, `calendar`) tell nothing apart."""
    general = {word for tool in tools for word in words(tool)}
    names: set[str] = set()
    topics: set[str] = set()
    hands_over = False
    turns = [text[:MAX_REQUEST] for text in turns]
    for text in turns:
        found = {match[0].removesuffix("'s").lower() for match in _CAPITAL.finditer(text)} - _COMMON
        names.update(phrase(name) for name in found)
        names.update(phrase(match[1]) for match in _QUOTED.finditer(text))
        topics.update(
            word[:_STEM]
            for word in words(_without_references(text))
            if len(word) >= _TOPIC and word not in _COMMON and word not in general
        )
        hands_over = hands_over or _HANDS_OVER.search(text) is not None
    own = frozenset(path for text in turns for path in _own_paths(text))
    return Request(frozenset(name for name in names - general if name), frozenset(topics), hands_over, own)


def _without_references(text: str) -> str:
    """The text without addresses, paths and the paths and endings of URLs: their words are no topics."""
    return " ".join(_ENDING.sub("", _URL_PATH.sub("", piece)) for piece in text.split() if "@" not in piece)


def _own_paths(text: str) -> list[str]:
    sentences = [sentence for sentence in _SENTENCE.split(text) if _OWN.search(sentence)]
    return [phrase(match[0]) for sentence in sentences for match in _PATH.finditer(sentence)]
