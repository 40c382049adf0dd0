"""broken: files that are no configuration, each refused with a line that says where and what."""

import os
import re

from support.case import Skipped, check, check_equal, is_root, test

ECHO = "[listen echo]\naddress = 127.0.0.1:7007\nservice = echo\n"
PROXY = "[listen front]\naddress = 127.0.0.1:7008\nservice = proxy\nupstream = back\n"
BACK = "[upstream back]\nserver.a = 127.0.0.1:6379\n"

# What is wrong, the file, the line to be named (0: the file as a whole), and a word that helps.
FILES = [
    ("an unknown section", ECHO + "[nonsense]\nkey = 1\n", 4, "nonsense"),
    ("a section that is nearly one", ECHO + "[workers]\nthreads = 1\n", 4, "worker"),
    ("an unknown key", ECHO + "colour = red\n", 4, "colour"),
    ("a key that is nearly one", ECHO + "idle_timeuot = 1s\n", 4, "did you mean.*idle_timeout"),
    ("a key of another section", ECHO + "io_ratio = 50\n", 4, "io_ratio"),
    ("a key twice", ECHO + "service = echo\n", 4, "service.*line 3"),
    ("a section twice", ECHO + ECHO, 4, "echo.*line 1"),
    ("a section twice, in other case", ECHO + ECHO.replace("listen", "LISTEN"), 4, "line 1"),
    ("a word for a number", "[worker]\nthreads = four\n" + ECHO, 2, "threads"),
    ("a number with a tail", "[worker]\nthreads = 4x\n" + ECHO, 2, "threads"),
    ("a negative number", "[worker]\nthreads = -1\n" + ECHO, 2, "threads"),
    ("a number too large", "[worker]\nthreads = 99999999999999999999\n" + ECHO, 2, "threads"),
    ("a hexadecimal number", "[boss]\naccept_batch = 0x10\n" + ECHO, 2, "accept_batch"),
    ("a percentage above 100", "[worker]\nio_ratio = 101%\n" + ECHO, 2, "io_ratio"),
    ("a percentage of 0", "[worker]\nio_ratio = 0\n" + ECHO, 2, "io_ratio"),
    ("a duration without unit", ECHO + "idle_timeout = 10\n", 4, "idle_timeout"),
    ("a duration of an unknown unit", ECHO + "idle_timeout = 10 fortnights\n", 4, "idle_timeout"),
    ("an unknown word", ECHO + "splice = perhaps\n", 4, "auto"),
    ("a word that is nearly one", "[listen e]\naddress = @a\nservice = ehco\n", 3,
     "did you mean.*echo"),
    ("an unknown handler", ECHO + "pipeline = log, wash\n", 4, "wash"),
    ("an unknown log level", "[reactord]\nlog_level = loud\n" + ECHO, 2, "notice"),
    ("a relative path", "[reactord]\npid_file = run/x.pid\n" + ECHO, 2, "absolute"),
    ("an address without a port", ECHO.replace(":7007", ""), 2, "127.0.0.1"),
    ("port 0", ECHO.replace(":7007", ":0"), 2, "127.0.0.1:0"),
    ("a port above 65535", ECHO.replace(":7007", ":65536"), 2, "65536"),
    ("an IPv4 address of five parts", ECHO.replace("127.0.0.1", "1.2.3.4.5"), 2, "1.2.3.4.5"),
    ("an IPv6 address without brackets", ECHO.replace("127.0.0.1", "::1"), 2, "::1"),
    ("a socket path that is too long", ECHO.replace("127.0.0.1:7007", "/" + "x" * 108), 2, "long"),
    ("a comma too many", ECHO.replace(":7007", ":7007,"), 2, "address"),
    ("an address twice in a listener", ECHO.replace(":7007", ":7007, 127.0.0.1:7007"), 2, "7007"),
    ("an address in two listeners", ECHO + ECHO.replace("listen echo", "listen twin"), 5, "echo"),
    ("a port on all addresses and on one", ECHO + "[listen all]\naddress = *:7007\nservice = echo\n",
     5, "0.0.0.0:7007.*conflicts.*127.0.0.1:7007.*line 2.*listen echo"),
    ("HAProxy's word for an address", ECHO + "bind = :8\n", 4, "here it is 'address'"),
    ("HAProxy's word for a limit", ECHO + "maxconn = 9\n", 4, "here it is 'max_connections'"),
    ("HAProxy's word for a balance", PROXY + BACK + "balance = leastconn\n", 7,
     "here it is 'least_connections'"),
    ("HAProxy's word of a server", PROXY + BACK.replace("6379", "6379 check"), 6,
     "here it is 'check = tcp"),
    ("nginx's word of a server", PROXY + BACK.replace("6379", "6379 max_fails=2"), 6,
     "here it is 'eject_failures"),
    ("HAProxy's word for a section", ECHO + "[frontend web]\n", 4, r"here it is \[listen NAME\]"),
    ("an unknown key, and the last there is", ECHO + "colour = red\n", 4,
     r"\(address, .*defer_accept\)"),
    ("a missing file of addresses", ECHO + "deny = file:/nonexistent/deny\n", 4,
     r"\[listen echo\] deny: '/nonexistent/deny' cannot be opened: No such file"),
    ("an empty value", ECHO.replace("= echo", "="), 3, "service"),
    ("no address", "[listen echo]\nservice = echo\n", 1, "address"),
    ("no service", "[listen echo]\naddress = 127.0.0.1:7007\n", 1, "service"),
    ("a listener without a name", ECHO.replace("listen echo", "listen"), 1, "listen"),
    ("a name for a section that takes none", "[worker w]\nthreads = 1\n" + ECHO, 1, "worker"),
    ("a proxy without upstream", PROXY.replace("upstream = back\n", ""), 3, "upstream"),
    ("a missing upstream", PROXY, 4, "back"),
    ("an upstream that is nearly one", PROXY + BACK.replace("back", "bacl"), 4,
     "did you mean.*bacl"),
    ("an echo with an upstream", ECHO + "upstream = back\n" + BACK, 4, "upstream"),
    ("an upstream without servers", PROXY + "[upstream back]\nretries = 1\n", 5, "server"),
    ("a server twice", PROXY + BACK + "server.a = 127.0.0.1:6380\n", 7, "server.a.*line 6"),
    ("a server without address", PROXY + "[upstream back]\nserver.a = weight=2\n", 6, "server.a"),
    ("a server with an unknown word", PROXY + BACK.replace("6379", "6379 fast"), 6, "fast"),
    ("a server with two unknown words", PROXY + BACK.replace("6379", "6379 fast slow"), 6,
     "'fast' is not known\n.*:6: .*'slow' is not known"),
    ("a server of weight 257", PROXY + BACK.replace("6379", "6379 weight=257"), 6, "weight"),
    ("a server of weight 1000", PROXY + BACK.replace("6379", "6379 weight=1000"), 6, "weight"),
    ("a server on a wildcard address", PROXY + BACK.replace("127.0.0.1", "*"), 6, r"\*:6379"),
    ("a proxy to itself", PROXY + BACK.replace("6379", "7008"), 6, "front"),
    ("a shared unix socket", "[listen e]\naddress = /tmp/x.sock\nservice = echo\nreuseport = 2\n",
     4, "reuseport"),
    ("a key before any section", "threads = 1\n" + ECHO, 1, "section"),
    ("a line without '='", ECHO + "just a line\n", 4, "="),
    ("a line without a key", ECHO + "= 1\n", 4, "="),
    ("a section that is not closed", "[listen echo\naddress = @x\nservice = echo\n", 1, r"\]"),
    ("a section without a name", ECHO + "[]\nkey = 1\n", 4, "section"),
    ("something behind a section", ECHO.replace("]", "] oops"), 1, "oops"),
    ("a quote that is not closed", ECHO.replace("= echo", '= "echo'), 3, "quote"),
    ("a line that is continued", ECHO.replace("echo\nadd", "echo\n# \\\nadd") + "backlog = 1 \\\n",
     None, "backslash"),
    ("a byte order mark", "\ufeff" + ECHO, 1, "byte order mark"),
    ("CR LF line ends", ECHO.replace("\n", "\r\n"), 1, "CR LF"),
    ("a NUL byte", ECHO + "\0\n", 4, "text"),
    ("an empty file", "", 0, "listen"),
    ("nothing but comments", "# nothing\n", 0, "listen"),
    ("a line of 1 MB", ECHO + "# " + "x" * 1_000_000 + "\n", 4, "characters"),
    ("a value of 2,000 characters", ECHO + "upstream = " + "u" * 2000 + "\n", 4, "long|characters"),
]


def expect_refusal(t, path, line, word):
    """Both -t and a run: exit code 1, stdout empty, and a line `path:line: ... word ...` on
    stderr."""
    for arguments in (["-t", "-c", path], ["-c", path]):
        done = t.reactord(*arguments)
        check_equal((done.code, done.out), (1, ""), f"exit code and stdout of {arguments[0]}")
        place = r"\d+" if line is None else str(line)
        check(re.search(rf"^{re.escape(path)}:{place}: .*({word})", done.err, re.M | re.I),
              f"no '{path}:{place}: ... {word}' in\n{done.err[:2000]}")
        check(all(len(text) < 4000 for text in done.err.splitlines()), "a line without end")


@test(each=[{"what": what, "content": content, "line": line, "word": word}
            for what, content, line, word in FILES])
def broken_file(t, what, content, line, word):
    """{what} is reported with its line"""
    del what
    expect_refusal(t, t.write("broken.ini", content), line, word)


HAPROXY_FILE = """global
    log stdout local0
    maxconn 5000
    nbthread 2
defaults
    log global
    mode tcp
    option tcplog
    option dontlognull
    timeout connect 3s
    timeout client 30s
frontend mysql
    bind :3306
    acl inside src 192.0.2.0/24
    tcp-request connection reject if !inside
    default_backend db
backend db
    balance leastconn
    option httpchk GET /up
    option redispatch
    option mysql-check user check
    stick-table type ip size 10k
    stick on src
    default-server inter 1s
    server one 192.0.2.1:3306 check
"""

NGINX_FILE = """worker_processes 2;
events { worker_connections 512; }
stream {
    resolver 192.0.2.53;
    upstream db {
        least_conn;
        server 192.0.2.1:3306 max_fails=2;
    }
    server {
        listen 3306;
        proxy_pass db;
        proxy_timeout 1h;
    }
}
"""


@test(each=[{"of": "HAProxy", "content": HAPROXY_FILE}, {"of": "nginx", "content": NGINX_FILE}])
def foreign_file(t, of, content):
    """each line of a file of {of} has a hint, and the last line points to reactord-migrating(7)"""
    del of
    path = t.write("broken.ini", content)
    told = t.reactord("-t", "-c", path).err.splitlines()
    for number, line in enumerate(content.splitlines(), 1):
        check(any(re.match(rf"{re.escape(path)}:{number}: .*key = value.*; (here|there|it |no|leave|options)",
                           text) for text in told), f"no hint for {line!r} in {told}")
    check(told[-1].endswith("see reactord-migrating(7)"), f"the last line: {told[-1]!r}")


@test()
def binary_file(t):
    """a binary file, such as the program itself, is reported as no text"""
    with open(t.options.reactord, "rb") as f:
        expect_refusal(t, t.write("broken.ini", f.read(65536)), 1, "text")


@test()
def random_files(t):
    """100 files of random bytes and 100 of shuffled lines end with exit code 1, none with a
    crash"""
    import random
    lines = (ECHO + PROXY + BACK).splitlines(keepends=True) + ["[", "]", "=", '"', "\\\n", "#\n"]
    chance = random.Random(1)
    for i in range(200):
        content = chance.randbytes(300) if i % 2 else "".join(chance.choices(lines, k=12))
        done = t.reactord("-t", "-c", t.write("broken.ini", content))
        check(done.code in (0, 1), f"exit code {done.code} for {content!r}: {done.err}")
        check(done.code == 0 or "broken.ini:" in done.err, f"no place for {content!r}")


@test()
def directory(t):
    """a directory is reported as one"""
    os.mkdir(t.path("broken.ini"))
    expect_refusal(t, t.path("broken.ini"), 0, "directory")


@test()
def fifo(t):
    """a fifo is refused at once, without waiting for a writer"""
    os.mkfifo(t.path("broken.ini"))
    expect_refusal(t, t.path("broken.ini"), 0, "file")


@test()
def unreadable_file(t):
    """a file that may not be read is reported with the reason"""
    if not is_root():
        raise Skipped("needs root")
    path = t.write("broken.ini", ECHO)
    os.chmod(path, 0)
    done = t.reactord("-t", "-c", path, user="nobody", extra_groups=[], group="nogroup")
    check_equal(done.code, 1, "exit code")
    check(re.search(rf"{re.escape(path)}:0: .*denied", done.err), f"stderr: {done.err}")


@test()
def many_errors(t):
    """a file with 100,000 errors is refused within seconds, with a bounded report"""
    done = t.reactord("-t", "-c", t.write("broken.ini", "nonsense\n" * 100_000))
    check_equal(done.code, 1, "exit code")
    count = len(done.err.splitlines())
    check(1 < count < 1000, f"{count} lines of errors")
    check("more" in done.err, "it does not say that there are more")
