"""judge: whose fault each failed request was, and what the proxy sent to a server that was down."""

from bisect import bisect_left
from dataclasses import dataclass, field

from failover.contenders import CHECK_MS, FALL
from failover.server import NAMES

NS_PER_MS = 1_000_000
# A proxy may need so long to act on the check that failed, on a busy machine.
GRACE_MS = 100


@dataclass(frozen=True)
class Failure:
    """A request that failed. Instants in ns of the monotonic clock."""

    kind: str
    opened: int  # its connection
    begun: int
    ended: int
    server: int | None
    what: str


@dataclass
class Syn:
    """An attempt of the proxy to connect to a server."""

    at: int
    server: int
    is_check: bool
    has_request: bool


@dataclass
class Book:
    """What became of the requests of one kind of clients."""

    done: int
    slow: int
    longest_ns: int
    p99_ns: int
    in_flight: int = 0
    unsent: int = 0  # of these: the connection was made, the request not yet passed on
    otherwise: dict = field(default_factory=dict)  # by what the client saw


@dataclass
class Outcome:
    """Of one run of one contender."""

    books: dict
    outages: list
    attempts: int = 0               # to connect to a server that was down
    attempts_marked: int = 0        # when `fall` checks had failed
    marked_ns: int | None = None    # so long it was known to be down; None without checks
    blamed: list = field(default_factory=list)  # the failures that cannot be excused


def _server_of(letter, by_witness):
    """The clients know it from the answer before on that connection, the witness from the wire."""
    if by_witness != "-":
        return int(by_witness)
    return None if letter == "-" else NAMES.index(letter)


def read_trace(text):
    """What failover_load wrote: (books by kind, failures, SYNs)."""
    books, failures, syns = {}, [], []
    for line in text.splitlines():
        tag, *words = line.split()
        if tag == "kind":
            books[words[0]] = Book(*map(int, words[1:]))
        elif tag == "fail":
            kind, opened, begun, ended, letter, by_witness, what = words
            failures.append(Failure(kind, int(opened), int(begun), int(ended),
                                    _server_of(letter, by_witness), what))
        else:
            at, server, port, has_request = words
            syns.append(Syn(int(at), int(server), port == "check", has_request == "1"))
    return books, failures, syns


def _is_hit(failure, outage):
    """Whether the request was on a connection that the outage of its server took down."""
    if failure.server != outage.server or failure.ended < outage.began_ns:
        return False
    if outage.means == "kill":
        return failure.opened < outage.complete_ns
    return failure.begun < outage.over_ns


def _take_connection(failure, outage, bare):
    """
    The request went to no server. Still its connection may have been made to the one that failed,
    and the request not yet be sent there: if so, the wire has a connection without a request from
    that time. Each of them can excuse one failure.
    """
    until = outage.over_ns if outage.means == "hang" else outage.complete_ns
    if failure.ended < outage.began_ns:
        return False
    times = bare[outage.server]
    first = bisect_left(times, failure.opened)
    if first == len(times) or times[first] >= min(until, failure.ended):
        return False
    del times[first]
    return True


def _is_excused(failure, outages, bare):
    if failure.server is not None:
        return any(_is_hit(failure, outage) for outage in outages)
    return any(_take_connection(failure, outage, bare) for outage in outages)


def _count_attempts(outcome, outage, syns):
    """What went to the server while it was down."""
    here = [syn for syn in syns
            if syn.server == outage.server and outage.complete_ns <= syn.at < outage.ends_ns]
    requests = [syn.at for syn in here if not syn.is_check]
    checks = [syn.at for syn in here if syn.is_check]
    outcome.attempts += len(requests)
    if checks and outcome.marked_ns is None:
        outcome.marked_ns = 0
    if len(checks) >= FALL:
        takes_ms = 0 if outage.means == "kill" else CHECK_MS
        marked = checks[FALL - 1] + (takes_ms + GRACE_MS) * NS_PER_MS
        outcome.marked_ns += max(0, outage.ends_ns - marked)
        outcome.attempts_marked += sum(at >= marked for at in requests)


def judge(text, outages):
    """The outcome of a run."""
    books, failures, syns = read_trace(text)
    outcome = Outcome(books, outages)
    bare = [sorted(syn.at for syn in syns
                   if syn.server == server and not syn.is_check and not syn.has_request)
            for server in range(len(NAMES))]
    for failure in failures:
        book = books[failure.kind]
        if _is_excused(failure, outages, bare):
            book.in_flight += 1
            book.unsent += failure.server is None
        else:
            book.otherwise[failure.what] = book.otherwise.get(failure.what, 0) + 1
            outcome.blamed.append(failure)
    for outage in outages:
        _count_attempts(outcome, outage, syns)
    return outcome
