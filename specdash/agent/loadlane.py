"""The short way for what comes most: many chunks, each one event like the last but for its text.

Of the load generator. It reads frame, event and text in one go, and leaves everything that is not exactly as
expected to those who read with care (``loadhttp``, ``loadanswer``): what comes out is the same.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from specdash.agent.loadanswer import Answer

LONGEST_SIZE = 18
"""Bytes in which a plain size and its line end lie."""
MOST_KNOWN = 4096
_sizes: "dict[bytes, int]" = {}
"""Size lines that were read, for the same few come again and again."""


def skim(buf: bytes, answer: "Answer", when: float) -> int:
    """Take whole chunks from the beginning on; returns where the first one lies that is not of this kind."""
    assert answer.frame is not None
    prefix, suffix = answer.frame
    ahead, behind = len(prefix), len(suffix)
    find, starts, ends = buf.find, buf.startswith, buf.endswith
    texts: "list[bytes]" = []
    at = 0
    while True:
        line_end = find(b"\r\n", at, at + LONGEST_SIZE)
        if line_end < 0:
            break
        line = buf[at:line_end]
        size = _sizes.get(line) or _learn(line)
        start = line_end + 2
        stop = start + size
        if size <= ahead + behind or not starts(b"\r\n", stop):
            break
        if not (starts(prefix, start) and ends(suffix, start, stop)):
            break
        text = buf[start + ahead : stop - behind]
        if b'"' in text or b"\\" in text or b"\n" in text or b"\r" in text:
            break
        texts.append(text)
        at = stop + 2
    if texts:
        answer.took(b"".join(texts), len(texts), when)
    return at


def _learn(line: bytes) -> int:
    """0 for a line that is no plain size: an extension, a sign, nonsense."""
    if not line.isalnum():
        return 0
    try:
        size = int(line, 16)
    except ValueError:
        return 0
    if len(_sizes) < MOST_KNOWN:
        _sizes[line] = size
    return size
