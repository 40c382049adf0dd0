"""confine: with seccomp and in another root directory all goes on as before, but an upgrade."""

import os
import signal

from support import admin, net
from support.case import Skipped, check, check_equal, is_root, test
from support.chain import Chain
from support.mounts import bind, own_mounts
from support.names import NameServer, RESOLVER
from support.own_network import own_names, own_network
from support.server import Counted

OPTIONS = {"seccomp": "seccomp = yes\n",
           "chroot": "user = nobody\nchroot = {root}\n",
           "seccomp and chroot": "user = nobody\nchroot = {root}\nseccomp = yes\n"}

CONFIG = """[reactord]
{options}log = {log}
pid_file = {pid}
[admin]
address = {admin}
[worker]
cpu_affinity = auto
[listen front]
address = {front}
service = proxy
upstream = back
access_log = {access}
[upstream back]
server.file = file.test:{port}
check = tcp
"""

MORE = """[listen more]
address = {more}
unix_mode = 606
service = proxy
upstream = named
pipeline = executor
[upstream named]
server.dns = dns.test:{port}
"""


def root_directory(t):
    """A root directory with what reactord needs, and with the test's files at the same path."""
    if not is_root():
        raise Skipped("needs root")
    root = t.path("root")
    os.makedirs(f"{root}/etc")
    for name in ("nsswitch.conf", "hosts", "resolv.conf"):
        with open(f"/etc/{name}", "rb") as f, open(f"{root}/etc/{name}", "wb") as copy:
            copy.write(f.read())
    for source in ("/proc", str(t.dir)):
        os.makedirs(root + source)
        bind(source, root + source)
    return root


def status_of(daemon, name):
    with open(f"/proc/{daemon.pid}/status", encoding="ascii") as f:
        return next(line.split()[1] for line in f if line.startswith(f"{name}:"))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def greeting(address):
    with net.connect(address) as client:
        return client.recv(1) != b""


@test(each={"how": list(OPTIONS)}, needs=["dnsmasq"], timeout=60, plain_only=True)
def life(t, how):
    """{how}: clients, lookups, checks, a reload, other log files, the admin interface and a stop work; an
    upgrade is refused"""
    os.chmod(t.dir, 0o777)
    own_network()
    own_names(t, "files dns", hosts="127.0.0.1 file.test\n", servers=RESOLVER)
    root = root_directory(t) if "chroot" in how else "/"
    front, port = t.address(), t.port()
    paths = {name: t.path(name) for name in ("log", "pid", "admin", "access", "more")}
    config = CONFIG.format(options=OPTIONS[how].format(root=root), front=front, port=port, **paths)
    with NameServer(t, [("dns.test", "127.0.0.1")]), Counted(f"127.0.0.1:{port}", greets=True), \
            t.daemon(config) as daemon:
        check_equal(status_of(daemon, "Seccomp"), "2" if "seccomp" in how else "0", "mode of seccomp")
        check_equal(os.readlink(f"/proc/{daemon.pid}/root"), root, "root directory")
        if "chroot" in how:
            check_equal(os.readlink(f"/proc/{daemon.pid}/cwd"), root, "working directory")
        check("error: chroot" not in read(paths["log"]) + daemon.log(), "the log has an error")
        check(greeting(front), "no greeting by way of /etc/hosts")
        for name in ("log", "access"):
            os.rename(paths[name], paths[name] + ".1")
        daemon.send_signal(signal.SIGUSR1)
        t.eventually(lambda: os.path.exists(paths["access"]) and "reopened" in read(paths["log"]), "new logs")
        daemon.config_path.write_text(config + MORE.format(port=port, **paths), encoding="utf-8")
        answer = admin.post(paths["admin"], "/v1/reload")
        check_equal(answer.status, 200, f"reload: {answer.body}")
        check_equal(os.stat(paths["more"]).st_mode & 0o777, 0o606, "mode of the new socket")
        check(greeting(paths["more"]), "no greeting by way of DNS")
        check(b"\nreactord_server_" in admin.get(paths["admin"], "/metrics").body, "no metrics")
        daemon.send_signal(signal.SIGUSR2)
        t.eventually(lambda: "upgrade: refused: " in read(paths["log"]), "the upgrade is refused")
        refusal = "the program is outside the root directory (chroot)" if "chroot" in how else "seccomp forbids executing a program"
        check(refusal in read(paths["log"]), "the reason is not in the log")
        check(" bug: " not in read(paths["log"]), "a bug is in the log")
    for name in ("pid", "admin", "more"):
        check(not os.path.exists(paths[name]), f"{name} is still there")


@test(timeout=60, plain_only=True)
def added_servers(t):
    """an upgrade into another root directory keeps the servers that were added and removed"""
    os.chmod(t.dir, 0o777)
    own_mounts()
    root = root_directory(t)
    text = (admin.section(t.path("admin")) + f"[listen front]\naddress = {t.address()}\nservice = proxy\nupstream = back\n"
            f"[upstream back]\nserver.a = {t.address()}\nserver.b = {t.address()}\n")

    def shown():
        lines = admin.get(t.path("admin"), "/v1/config").body.decode().splitlines()
        return [line for line in lines if line.startswith("server.")]

    with Chain(t, text) as chain:
        body = {"server": "back/c", "line": "127.0.0.1:1"}
        check_equal(admin.request(t.path("admin"), "PUT", "/v1/server", body).status, 200, "the status of PUT")
        check_equal(admin.request(t.path("admin"), "DELETE", "/v1/server", {"server": "back/a"}).status, 200,
                    "the status of DELETE")
        before = shown()
        check_equal(len(before), 2, "servers")
        confined = chain.daemon.config.replace("[reactord]\n", f"[reactord]\nuser = nobody\nchroot = {root}\n", 1)
        chain.daemon.config_path.write_text(confined, encoding="utf-8")
        chain.upgrade()
        chain.wait_gone(chain.old[-1])  # the admin socket is the new one's alone
        check_equal(os.readlink(f"/proc/{chain.pid}/root"), root, "root directory")
        check_equal(shown(), before, "server lines after the upgrade")
        chain.wait_line("servers that stay added or removed by an administrator: 2", chain.pid)


MISTAKES = {
    "a directory that does not exist": ("/nowhere", 3, "chroot /nowhere: No such file or directory"),
    "a directory without the configuration": ("{proc}", 1, "chroot {proc}: {config} cannot be used there"),
    "a relative path of the configuration": ("{proc}", 3, "chroot {proc}: the path x.ini of -c must be absolute"),
    "a socket of systemd outside": ("{proc}", 3, "chroot {proc}: the socket of systemd, /run/x, is not there: set"
                                                 " RootDirectory= of the unit"),
    "another user": ("{proc}", 3, "chroot {proc}: only root can change the root directory"),
}


@test(each={"what": list(MISTAKES)})
def mistakes(t, what):
    """chroot with {what}: reactord does not start, and says why"""
    if not is_root():
        raise Skipped("needs root")
    own_names(t)
    root, code, text = MISTAKES[what]
    names = {"proc": t.path("proc"), "config": t.path("x.ini")}
    os.chmod(t.dir, 0o755)
    os.makedirs(names["proc"] + "/proc")
    bind("/proc", names["proc"] + "/proc")
    user = "daemon" if what == "another user" else "nobody"
    t.write("x.ini", f"[reactord]\nuser = {user}\nchroot = {root.format(**names)}\n"
                     f"[listen a]\naddress = {t.address()}\nservice = echo\n")
    how = {"env": {**os.environ, "NOTIFY_SOCKET": "/run/x" if "systemd" in what else ""}}
    if what == "another user":
        how["user"] = how["group"] = "daemon"
    path = "x.ini" if "relative" in what else names["config"]
    done = t.reactord("-c", path, **how)
    check(text.format(**names) in done.err, f"stderr: {done.err}")
    check_equal(done.code, code, "exit code")


@test()
def root_is_not_confined(t):
    """chroot without user is an error of the configuration"""
    config = t.write("x.ini", f"[reactord]\nchroot = /srv\n[listen a]\naddress = {t.address()}\nservice = echo\n")
    done = t.reactord("-t", "-c", config)
    check_equal(done.code, 1, "exit code")
    check("x.ini:2: [reactord] chroot: does not confine root (set user)" in done.err, f"stderr: {done.err}")
