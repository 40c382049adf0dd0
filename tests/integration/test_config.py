"""config: the command line, -t and --dump-config. Broken files are in test_broken."""

import os
import re

from support import net
from support.case import check, check_equal, test

GOOD = """
[reactord]
log_level = notice
drain_timeout = 5s

[worker]
threads = 2
io_ratio = 60%
rebuild_threshold = 0
stall_threshold = 200ms
cpu_affinity = auto

[executor]
threads = 1

[listen echo]
address = {echo}
service = echo

[listen front]
address = {front}, {sock}
service = proxy
upstream = back
splice = on
idle_timeout = 90s

[upstream back]
server.a = 127.0.0.1:6379
server.b = 127.0.0.1:6380 weight=2 backup
retries = 1
"""


def good(t):
    return GOOD.format(echo=t.address(), front=t.address(), sock=t.path("x.sock"))


@test(each={"option": ["--help", "-h"]})
def help_text(t, option):
    """{option} describes the options on stdout and exits with 0"""
    done = t.reactord(option)
    check_equal((done.code, done.err), (0, ""), "exit code and stderr")
    for word in ("-c", "-t", "--dump-config", "--version", "SIGTERM", "SIGHUP", "SIGUSR2", "SIGRTMIN"):
        check(word in done.out, f"{word} is not in the help")


@test(each={"option": ["--version", "-V"]})
def version(t, option):
    """{option} prints the name and a version number and exits with 0"""
    done = t.reactord(option)
    check_equal((done.code, done.err), (0, ""), "exit code and stderr")
    check(re.match(r"reactord \d+\.\d+", done.out), f"it printed {done.out!r}")


@test(each=[{"words": "--no-such-option"}, {"words": "-x"}, {"words": "-c"}, {"words": "--config"},
            {"words": "surplus"}, {"words": "-t surplus"}, {"words": "--test=yes"}])
def bad_command_line(t, words):
    """the command line "{words}" is refused with exit code 2 and a line on stderr"""
    done = t.reactord(*words.split())
    check_equal((done.code, done.out), (2, ""), "exit code and stdout")
    check(done.err, "nothing on stderr")


@test()
def good_file(t):
    """-t on a good file exits with 0 and neither binds nor creates anything"""
    config = t.write("c.ini", good(t))
    done = t.reactord("-t", "-c", config)
    check_equal(done.code, 0, f"exit code ({done.err})")
    check(not (t.dir / "x.sock").exists(), "-t made a socket file")


@test()
def good_file_in_use(t):
    """-t is content with a file whose addresses are in use, as those of the running daemon are"""
    address = t.address()
    config = f"[listen echo]\naddress = {address}\nservice = echo\n"
    with t.daemon(config) as daemon:
        check_equal(t.reactord("-t", "-c", str(daemon.config_path)).code, 0, "exit code")


@test()
def no_such_file(t):
    """a configuration file that does not exist is named on stderr, exit code 1"""
    path = t.path("nowhere.ini")
    for arguments in (["-c", path], ["-t", "-c", path], ["--dump-config", "-c", path]):
        done = t.reactord(*arguments)
        check_equal((done.code, done.out), (1, ""), "exit code and stdout")
        check(path in done.err, f"stderr: {done.err}")


@test()
def environment(t):
    """${{NAME}} in a value is the environment variable, and one that is not set is an error with its
    line"""
    address = t.address()
    config = "[listen echo]\naddress = ${REACTORD_TEST_ADDRESS}\nservice = ${NONE_SUCH:-echo}\n"
    path = t.write("c.ini", config)
    os.environ.pop("REACTORD_TEST_ADDRESS", None)
    done = t.reactord("-t", "-c", path)
    check_equal(done.code, 1, "exit code")
    check(f"{path}:2: [listen echo] address: the environment variable REACTORD_TEST_ADDRESS is not "
          "set" in done.err, f"stderr: {done.err}")
    os.environ["REACTORD_TEST_ADDRESS"] = address
    with t.daemon(config), net.connect(address) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test()
def several_files(t):
    """files of a directory are included in the order of their names, an error names the file that
    has it, and a file that includes itself is refused"""
    first, second = t.address(), t.address()
    os.mkdir(t.path("d"))
    t.write("d/10.ini", f"[listen a]\naddress = {first}\nservice = echo\n")
    t.write("d/20.ini", f"[listen b]\naddress = {second}\nservice = echo\n")
    config = f"include = {t.path('d')}\n\n[worker]\nthreads = 2\n"
    with t.daemon(config):
        for address in (first, second):
            with net.connect(address) as client:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
    t.write("d/30.ini", f"include = 30.ini\n[listen a]\naddress = {first}\nservice = nothing\n")
    done = t.reactord("-t", "-c", t.write("c.ini", config))
    check_equal(done.code, 1, "exit code")
    for line in (r"d/30\.ini:1: include: .* includes itself",
                 r"d/30\.ini:2: \[listen a\] is defined twice \(.* line 1 of .*d/10\.ini\)"):
        check(re.search(line, done.err), f"no {line} in {done.err}")


@test()
def all_errors_at_once(t):
    """-t reports all errors of a file in one run, each with its line, in order"""
    lines = ["[reactord]", "log_level = loud", "no_such_key = 1", "", "[worker]", "io_ratio = 101",
             "threads = four", "", "[listen echo]", "address = 127.0.0.1:70000", "service = echo",
             "idle_timeout = 10", "", "[listen front]", "address = 127.0.0.1:7008",
             "service = proxy", "upstream = nobody", "", "[nonsense]"]
    path = t.write("c.ini", "\n".join(lines) + "\n")
    done = t.reactord("-t", "-c", path)
    check_equal(done.code, 1, "exit code")
    found = [int(number) for number in re.findall(rf"^{re.escape(path)}:(\d+): ", done.err, re.M)]
    check_equal(found, [2, 3, 6, 7, 10, 12, 17, 19], f"lines with errors in\n{done.err}\n")


@test()
def run_reports_as_test_does(t):
    """a run with a broken file says the same as -t, and exits with 1 too"""
    path = t.write("c.ini", "[listen echo]\naddress = nonsense\nservice = ecko\n")
    tested, run = t.reactord("-t", "-c", path), t.reactord("-c", path)
    check_equal((tested.code, run.code), (1, 1), "exit codes")
    for line in tested.err.splitlines():
        if line.startswith(path):
            check(line in run.err, f"only -t says: {line}")


@test()
def dump_loads_again(t):
    """--dump-config writes what is in effect; loaded and dumped again it is the same"""
    first = t.reactord("--dump-config", "-c", t.write("c.ini", good(t)))
    check_equal((first.code, first.err), (0, ""), "exit code and stderr")
    second = t.reactord("--dump-config", "-c", t.write("dump.ini", first.out))
    check_equal((second.code, second.err), (0, ""), "exit code and stderr of the dump's dump")
    check_equal(second.out, first.out, "the dump's dump")
    for wanted in (r"log_level = notice", r"io_ratio = 60", r"splice = on", r"server\.b = .*backup",
                   r"accept_batch = \d+", r"connect_timeout = \d", r"rebuild_threshold = 0",
                   r"stall_threshold = 200ms", r"cpu_affinity = auto", r"max_pending_tasks = 16384"):
        check(re.search(rf"^{wanted}", first.out, re.M), f"no line '{wanted}' in\n{first.out}")


@test()
def dump_runs(t):
    """a daemon started from a dump behaves as configured"""
    address = t.address()
    config = f"[listen echo]\naddress = {address}\nservice = echo\n"
    dump = t.reactord("--dump-config", "-c", t.write("c.ini", config))
    with t.daemon(dump.out), net.connect(address) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test()
def notation(t):
    """comments, blank lines, tabs, quotes and spaces around '=' are all taken"""
    address = t.address()
    config = ("# a comment\n; another\n\n[listen echo]   \n"
              f"\taddress\t=\t{address}   # behind a value\n"
              '  service="echo"  ; quoted\n\n   # indented\nidle_timeout = 1h\nbacklog=128')
    with t.daemon(config), net.connect(address) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test()
def many_sections(t):
    """a file with 200 listeners and 200 upstreams is checked and dumped within seconds"""
    parts = []
    for i in range(200):
        parts.append(f"[listen l{i}]\naddress = 127.0.0.1:{10000 + i}\nservice = proxy\n"
                     f"upstream = u{i}\n[upstream u{i}]\nserver.a = 127.0.0.1:{20000 + i}\n")
    path = t.write("c.ini", "".join(parts))
    check_equal(t.reactord("-t", "-c", path).code, 0, "exit code of -t")
    dump = t.reactord("--dump-config", "-c", path)
    check_equal(dump.out.count("[listen "), 200, "listeners in the dump")


@test(each=[{"file": "reactord.ini"}, {"file": "reactord.ini.sample"}])
def shipped_files(t, file):
    """conf/{file} passes -t"""
    shipped = t.options.source_dir / "conf" / file
    if not shipped.exists() and file != "reactord.ini":
        return  # the samples are checked where they are made
    done = t.reactord("-t", "-c", str(shipped))
    check_equal(done.code, 0, f"exit code ({done.err})")
