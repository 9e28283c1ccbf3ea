"""What is asked: built-in English prompts of about a wished length, or a file's. Of the load generator.

Real sentences: how well a draft model guesses random ids says nothing about real use. The seed decides
everything but the nonce, which begins each prompt, so that no cache of an earlier run can help.
"""

import importlib.util
import json
import os
import random

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

USUAL = 1.3
"""Tokens of an English word, until the server has counted some."""
MOST_FILE = 256 << 20

TASKS = """Explain to a new colleague what happened here, and why it matters.
Summarise the text above in five sentences.
Write a short story that begins where the text ends.
List the three most important facts, with a reason for each.
Write a Python function that would have helped the people in the text, with a docstring.
What would you ask the author, and what would a good answer be?
Turn the text into a dialogue between two friends.
Plan the next week for everyone who is mentioned, day by day.
Translate the text into plain words for a child of ten.
Argue against what the text says, politely and with examples.
Write a letter to the editor about it.
Work out step by step how long all of this might have taken.
Give the text a title, a teaser and a conclusion.
Describe the place in the text so that a painter could paint it.
Which laws of nature are at work here? Explain each with an example.
Write a SQL schema for the things that are counted in the text.""".splitlines()

WHO = """the baker|a young engineer|the old captain|our neighbour|the night nurse|a travelling musician
the village teacher|a tired driver|the gardener|an honest lawyer|the youngest sister|a visiting professor
the postman|a careful doctor|the farmer|a retired pilot|the librarian|a small committee""".replace(
    "\n", "|"
).split("|")
DID = """repaired|counted|painted|carried|measured|forgot|described|bought|lost|found|opened|cleaned|moved
borrowed|returned|watched|copied|sold|weighed|photographed""".replace("\n", "|").split("|")
WHAT = """the broken clock|twelve wooden boxes|a letter from the north|the green bicycle|an unfinished map
the kitchen table|forty sacks of flour|a box of old photographs|the radio mast|two silver coins
the bridge across the river|a heavy book about birds|the station's signal lamp|a pair of red boots
the water pump|seven jars of honey|the ship's bell|a note in an unknown hand""".replace("\n", "|").split("|")
WHERE = """behind the market|near the harbour|in the quiet library|on the way to the mill
at the edge of the wood|under the railway arch
in the courtyard|beside the frozen lake|in front of the town hall|on the third floor
by the open window|at the end of the valley""".replace("\n", "|").split("|")
WHEN = """early on Monday|before the rain came|in the second week of May|after a long dinner|at noon
during the festival|a year later|just before midnight|when the snow had melted|as soon as it was light
on the shortest day|while everyone slept""".replace("\n", "|").split("|")
THEN = """and told nobody about it|because the day had been long|so that the others could go home
although nobody had asked for it|and it took longer than planned|which pleased the whole street
but the result was not what anyone expected|and wrote down every detail""".replace("\n", "|").split("|")


class BadPrompts(Exception):
    """The file holds nothing that can be asked."""


def nonce_of(words: random.Random) -> str:
    """A number and four common words: as good as new each time, and about as long each time."""
    parts = [words.choice(some).split()[-1] for some in (WHAT, WHERE, WHAT, WHERE)]
    return "%d %s" % (words.randrange(100000, 999999), " ".join(parts))


class BuiltIn(object):
    """Prompts of ``tokens`` tokens, as near as the words of a text can be counted."""

    def __init__(self, seed: int, tokens: int) -> None:
        self._seed = seed
        self._tokens = tokens
        self.words = max(1, int(tokens / USUAL))
        """Words of each prompt, nonce included."""

    def learn(self, tokens_per_word: float, extra: float) -> None:
        """Set the length by what the server counted; in coarse steps, so that it is the same each time."""
        ratio = round(tokens_per_word * 20) / 20.0
        self.words = max(1, int((self._tokens - extra) / max(0.5, ratio)))

    def text(self, number: int, nonce: str, phase: str) -> str:
        """The prompt of this number."""
        chance = random.Random("%d %s %d" % (self._seed, phase, number))
        task = chance.choice(TASKS)
        head = "Case %s." % nonce
        room = self.words - len(task.split())
        sentences = head.split() if room >= 6 or self.words < 6 else head.split()[:2]
        while len(sentences) < room:
            sentences += _sentence(chance).split()
        whole = sentences[: max(0, room)] + task.split() if room > 0 else sentences[:1] + task.split()
        return " ".join(whole[: max(1, self.words)])

    def hash(self, count: int) -> str:
        """One name for all of them, the nonce left out."""
        return _hash("builtin 1 %d %d %d" % (self._seed, self._tokens, count))

    def message(self, number: int, nonce: str, phase: str) -> "tuple[Any, int | None]":
        """What is asked (a text), and a length of answer of its own (none)."""
        return self.text(number, nonce, phase), None


class FromFile(object):
    """Prompts of a file, in an order that the seed decides; begun again where more are wanted."""

    words = None

    def __init__(self, path: str, seed: int) -> None:
        self.entries = read(path)
        random.Random(seed).shuffle(self.entries)

    def hash(self, count: int) -> str:
        """One name for all of them, the nonce left out."""
        return _hash(json.dumps([self.entries[n % len(self.entries)] for n in range(count)], sort_keys=True))

    def message(self, number: int, nonce: str, phase: str) -> "tuple[Any, int | None]":
        """What is asked (a text or messages), and the length of its answer where the file says one.

        The warm-up takes from the end, so that no measured prompt is known already.
        """
        count = len(self.entries)
        asked, output = self.entries[number % count if phase == "run" else -1 - number % count]
        lap = "%s %s %d. " % (nonce, phase, number // count)
        if isinstance(asked, str):
            return lap + asked, output
        first = dict(asked[0])
        if isinstance(first.get("content"), str):
            first["content"] = lap + first["content"]
        return [first] + list(asked[1:]), output


def read(path: str) -> "list[tuple[Any, int | None]]":
    """Every prompt of a file: a JSON array (ShareGPT) or JSON lines. Raises ``BadPrompts``."""
    try:
        if os.stat(path).st_size > MOST_FILE:
            raise BadPrompts("%s: larger than %d MiB" % (path, MOST_FILE >> 20))
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise BadPrompts("%s: %s" % (path, error.strerror or error))
    except UnicodeDecodeError:
        raise BadPrompts("%s: not UTF-8" % path)
    rows = []
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except ValueError as error:
            raise BadPrompts("%s: not JSON: %s" % (path, error))
    else:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    rows.append(json.loads(line))
                except ValueError:
                    raise BadPrompts("%s: line %d is not JSON" % (path, number))
    found = [entry for entry in map(_entry, rows) if entry is not None]
    if not found:
        raise BadPrompts("%s: no line has prompt, messages, turns or conversations" % path)
    return found


def _entry(row: "Any") -> "tuple[Any, int | None] | None":
    if isinstance(row, str):
        return (row, None) if row else None
    if not isinstance(row, dict):
        return None
    output = row.get("output_tokens", row.get("max_tokens"))
    output = output if isinstance(output, int) and output > 0 else None
    messages = row.get("messages")
    if isinstance(messages, list) and messages and all(isinstance(one, dict) for one in messages):
        return messages, output
    for name in ("prompt", "text", "question", "turns"):
        value = row.get(name)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, str) and value:
            return value, output
    for turn in row.get("conversations") or ():
        if isinstance(turn, dict) and turn.get("from") in ("human", "user") and turn.get("value"):
            return str(turn["value"]), output
    return None


def as_text(asked: "Any") -> str:
    """Messages as one prompt, for the completions API."""
    if isinstance(asked, str):
        return asked
    return "\n".join(str(one.get("content", "")) for one in asked)


def _sentence(chance: random.Random) -> str:
    words = " ".join(chance.choice(some) for some in (WHEN, WHO, DID, WHAT, WHERE, THEN))
    return words[0].upper() + words[1:] + "."


def _hash(text: str) -> str:
    digest: str = _sha256()(text.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:16]


def _sha256() -> "Any":
    """Python's own, as ``random`` takes it, before OpenSSL's, which would be a tenth of a start."""
    name = next(name for name in ("_sha2", "_sha256", "hashlib") if importlib.util.find_spec(name))
    return importlib.import_module(name).sha256
