"""defaults: options that sections share, in the file and in what it includes, as a running daemon has them."""

from support import net
from support.case import check, check_equal, test


def listeners(t, *names):
    return {name: t.address() for name in names}


@test()
def shared_by_included_files(t):
    """a changed default is a change of each section that uses it, and of no other"""
    at = listeners(t, "own", "main", "included")
    t.write("more.ini", f"[listen included]\naddress = {at['included']}\n")
    rest = (f"include = {t.path('more.ini')}\n[listen main]\naddress = {at['main']}\n"
            f"[listen own]\naddress = {at['own']}\nidle_timeout = 3h\n")
    with t.daemon("[defaults listen]\nservice = echo\nidle_timeout = 1h\n" + rest) as daemon:
        for name, address in at.items():
            with net.connect(address) as client:
                check_equal(net.exchange(client, b"hello"), b"hello", f"the echo of {name}")
        lines = daemon.reload("[defaults listen]\nservice = echo\nidle_timeout = 2h\n" + rest)
        changes = sorted(line.partition("reload: ")[2] for line in lines if "idle_timeout" in line)
        check_equal(changes, ["[listen included] idle_timeout: 1h -> 2h (live)",
                              "[listen main] idle_timeout: 1h -> 2h (live)"], "the changes")


@test()
def bad_default_changes_nothing(t):
    """a reload with a bad default is refused with its line, and the daemon goes on"""
    at = listeners(t, "one", "two")
    rest = "".join(f"[listen {name}]\naddress = {address}\nservice = echo\n" for name, address in at.items())
    with t.daemon(rest) as daemon:
        lines = daemon.reload("[defaults listen]\nidle_timeout = 5\n" + rest, wanted="refused")
        told = [line for line in lines if ".ini:" in line]
        check_equal(len(told), 1, f"number of problems in {lines}")
        check(".ini:2: [defaults listen] idle_timeout: '5' is not" in told[0], f"it says {told[0]}")
        for address in at.values():
            with net.connect(address) as client:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test()
def dump_has_no_defaults(t):
    """--dump-config writes the resulting sections, and they are read back as the same"""
    config = ("[defaults listen]\nservice = proxy\nupstream = back\nframe_max_length = 5k\n"
              "[defaults upstream]\ncheck = steps\ncheck_step.1 = connect\n"
              "[listen a]\naddress = @a\n[listen b]\naddress = @b\nservice = echo\n"
              "[upstream back]\nserver.a = 127.0.0.1:9\n")
    first = t.reactord("--dump-config", "-c", t.write("c.ini", config))
    check_equal((first.code, first.err), (0, ""), "exit code and stderr")
    second = t.reactord("--dump-config", "-c", t.write("dump.ini", first.out))
    check_equal((second.code, second.out), (0, first.out), "the dump's dump")
    check("[defaults" not in first.out, "there is a section of defaults")
    check_equal(first.out.count("\nupstream = back\n"), 1, "listeners with an upstream")


@test()
def dump_names_origins(t):
    """--dump-config=origins names file and line of each value, and can be used as a configuration"""
    address = t.address()
    more = t.write("more.ini", f"[listen more]\naddress = {address}\n")
    path = t.write("c.ini", f"[defaults listen]\nservice = echo\ninclude = {more}\n")
    dump = t.reactord("--dump-config=origins", "-c", path)
    check_equal((dump.code, dump.err), (0, ""), "exit code and stderr")
    for line in (f"address = {address} # {more}:2", f"service = echo # {path}:2 [defaults listen]",
                 "idle_timeout = 1h # default"):
        check(f"\n{line}\n" in dump.out, f"no line '{line}' in\n{dump.out}")
    with t.daemon(dump.out), net.connect(address) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
