"""ctl_runs: reactorctl as it is run, and what it says."""

from support.admin_mock import session
from support.case import check, check_equal

ID = "0123456789abcdef0123456789abcdef"


def ask(t, mock, command, **how):
    return t.reactorctl("-s", mock.address, *command.split(), **how)


def done(t, mock, command, **how):
    """What a command prints that goes well."""
    finished = ask(t, mock, command, **how)
    check_equal((finished.code, finished.err), (0, ""), f"exit code and stderr of {command}")
    return finished.out


def refused(t, mock, command, code, *words, **how):
    """What is said by a command that does not go well."""
    finished = ask(t, mock, command, **how)
    check_equal((finished.code, finished.out), (code, ""), f"exit code and stdout of {command} ({finished.err!r})")
    for word in words:
        check(word in finished.err, f"{command} does not say {word!r}, but {finished.err!r}")
    return finished.err


def pages(total):
    """GET /v1/sessions of a daemon with that many."""
    def page(request):
        arguments = request.arguments()
        first = int(arguments.get("after", 0))
        last = min(first + int(arguments["limit"]), total)
        return {"sessions": [session(i) for i in range(first, last)], "matched": total,
                "next": str(last) if last < total else None}
    return {("GET", "/v1/sessions"): page}
