r"""What a parallel sweep of LDA costs: memory of a device, bytes that it sends, seconds.

Sizes: T tokens, D documents, V words, K topics (as many as are stored), C chains, S devices that
share the documents of each chain. Every device has 1/S of what belongs to tokens and documents, and
all of what belongs to words. The numbers of copies are those of XLA's programs on a CPU.
"""

from typing import NamedTuple

__all__ = ["Rates", "Size", "bytes_moved", "bytes_sent", "memory", "rates_of", "seconds"]

WORD = 4  # bytes of a number
PER_TOKEN_SHARED = 4  # its document and word, in corpus order and in lanes
PER_TOKEN_OF_CHAIN = 1  # its topic
PER_TOKEN_OF_SWEEP = 10  # new topics on their way, for one chain after the other
PER_DOC_TOPIC, PER_DOC_TOPIC_OF_SWEEP = 1, 2  # the counts; as floats, and those of the next sweep
PER_WORD_TOPIC, PER_WORD_TOPIC_OF_SWEEP = 1, 4  # the counts; topics drawn, on their way, and new


class Size(NamedTuple):
    """What the costs depend on."""

    tokens: float
    docs: float
    words: int
    topics: int
    chains: int = 1
    devices: float = 1


class Rates(NamedTuple):
    """Seconds of one core, for a token and for a topic of a word."""

    per_token: float
    per_word_topic: float


def memory(s: Size) -> float:
    """Return the bytes of a device while it sweeps: data, states and what the sweep needs."""
    tokens = PER_TOKEN_SHARED + PER_TOKEN_OF_SWEEP + s.chains * PER_TOKEN_OF_CHAIN
    doc_topic = PER_DOC_TOPIC_OF_SWEEP + s.chains * PER_DOC_TOPIC
    word_topic = PER_WORD_TOPIC_OF_SWEEP + s.chains * PER_WORD_TOPIC
    own = s.tokens * tokens + s.docs * s.topics * doc_topic
    return WORD * (own / s.devices + s.words * s.topics * word_topic)


def bytes_sent(s: Size) -> float:
    """Return the bytes that a device sends in a sweep of all chains.

    Counts by word and topic are added up over a ring of devices, each of which sends all counts
    but its share twice. Topics are drawn by each device for its share of the words, and sent on.
    """
    share = (s.devices - 1) / s.devices
    return 3 * share * s.chains * s.words * s.topics * WORD


def seconds(s: Size, rates: Rates, cores: int, link: float) -> float:
    """Return the seconds of a sweep of all chains, of devices that share some cores.

    `link` is in bytes per second. Topics are drawn by all devices, and counts added up by each.
    """
    at_once = min(s.devices, cores)
    busy = s.chains * s.tokens * rates.per_token / at_once
    drawn = s.chains * s.words * s.topics * rates.per_word_topic / at_once
    return busy + drawn + bytes_sent(s) / link


def rates_of(small: Size, small_seconds: float, large: Size, large_seconds: float) -> Rates:
    """Return the rates at which two corpora with the same words and topics take these seconds."""
    per_token = (large_seconds - small_seconds) / (large.tokens - small.tokens)
    rest = small_seconds - small.tokens * per_token
    return Rates(per_token, rest / (small.words * small.topics))


def bytes_moved(s: Size) -> float:
    """Return the bytes that a device reads and writes in a sweep, where no cache helps.

    A token reads the row of its word, one number for each topic; its document's counts stay on
    the chip. Where topics are drawn, each number is read and written once.
    """
    of_tokens = s.tokens / s.devices * (s.topics + PER_TOKEN_SHARED + 2 * PER_TOKEN_OF_CHAIN)
    of_docs = 2 * s.docs / s.devices * s.topics
    of_words = 2 * s.words * s.topics * PER_WORD_TOPIC_OF_SWEEP
    return WORD * s.chains * (of_tokens + of_docs + of_words)
