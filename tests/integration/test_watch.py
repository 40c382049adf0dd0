"""watch: the configuration is reloaded by itself when its files have changed, as SIGHUP would."""

import os
import time

from support import net
from support.case import check, check_equal, test
from support.chain import Chain


def config(address, idle, more=""):
    return f"[reactord]\nwatch = yes\n{more}[listen e]\naddress = {address}\nservice = echo\nidle_timeout = {idle}\n"


def replace(path, text):
    """Replace a file as editors do."""
    with open(f"{path}.new", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(f"{path}.new", path)


def changes(daemon):
    """The changes of idle_timeout so far."""
    return [line.rpartition("idle_timeout: ")[2] for line in daemon.log_lines("reload: .* idle_timeout: .* -> ")]


def wait_changes(t, daemon, *wanted):
    t.eventually(lambda: changes(daemon) == [f"{change} (live)" for change in wanted], f"the changes {wanted}")


@test()
def ways_to_change(t):
    """a file that is replaced, written in place, or removed and written again is loaded"""
    address = t.address()
    with t.daemon(config(address, "1h")) as daemon:
        path = daemon.config_path
        replace(path, config(address, "2h"))
        wait_changes(t, daemon, "1h -> 2h")
        with open(path, "w", encoding="utf-8") as f:
            f.write(config(address, "3h"))
        wait_changes(t, daemon, "1h -> 2h", "2h -> 3h")
        os.unlink(path)
        with open(path, "w", encoding="utf-8") as f:
            f.write(config(address, "4h"))
        t.eventually(lambda: changes(daemon)[-1:] == ["3h -> 4h (live)"], "the file that was written again")
        with net.connect(address) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test()
def config_map(t):
    """a ConfigMap's link ..data that is replaced is seen, and so is each one after it"""
    address = t.address()
    mount = t.path("mount")

    def publish(number, idle):
        os.makedirs(f"{mount}/..{number}")
        with open(f"{mount}/..{number}/e.ini", "w", encoding="utf-8") as f:
            f.write(f"[listen e]\naddress = {address}\nservice = echo\nidle_timeout = {idle}\n")
        os.symlink(f"..{number}", f"{mount}/..data_tmp")
        os.rename(f"{mount}/..data_tmp", f"{mount}/..data")
        if number > 0:
            os.unlink(f"{mount}/..{number - 1}/e.ini")
            os.rmdir(f"{mount}/..{number - 1}")

    publish(0, "1h")
    os.symlink("..data/e.ini", f"{mount}/e.ini")
    with t.daemon(f"include = {mount}\n[reactord]\nwatch = yes\n") as daemon:
        publish(1, "2h")
        wait_changes(t, daemon, "1h -> 2h")
        publish(2, "3h")
        wait_changes(t, daemon, "1h -> 2h", "2h -> 3h")


@test()
def bad_file(t):
    """a bad file is told once with its line and changes nothing; the next good one is loaded"""
    address = t.address()
    with t.daemon(config(address, "1h")) as daemon:
        replace(daemon.config_path, config(address, "soon"))
        t.eventually(lambda: len(daemon.log_lines("reload: refused")) == 1, "the refusal")
        os.utime(daemon.config_path)
        with net.connect(address) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        replace(daemon.config_path, config(address, "2h"))
        wait_changes(t, daemon, "1h -> 2h")
        told = daemon.log_lines(r"\.ini:6: \[listen e\] idle_timeout: 'soon'")
        check_equal(len(told), 1, f"lines about the value in {daemon.log()}")


@test()
def same_content(t):
    """a file that is written again with the same content reloads nothing, and confirms nothing"""
    address = t.address()
    confirm = "reload_confirm = 1h\n"
    with t.daemon(config(address, "1h", confirm)) as daemon:
        replace(daemon.config_path, config(address, "2h", confirm))
        wait_changes(t, daemon, "1h -> 2h")
        replace(daemon.config_path, config(address, "2h", confirm))
        os.utime(daemon.config_path)
        time.sleep(1.5)  # lets it look, in vain
        replace(daemon.config_path, config(address, "3h", confirm))
        wait_changes(t, daemon, "1h -> 2h", "2h -> 3h")
        check_equal(daemon.log_lines("nothing has changed|is confirmed"), [], "confirmations")


@test()
def other_includes(t):
    """an include that a reload brings is watched from then on, one that it drops no longer"""
    address = t.address()
    more = t.write("more.ini", f"[listen e]\naddress = {address}\nservice = echo\nidle_timeout = 2h\n")
    with t.daemon(config(address, "1h")) as daemon:
        replace(daemon.config_path, f"include = {more}\n[reactord]\nwatch = yes\n")
        wait_changes(t, daemon, "1h -> 2h")
        replace(more, f"[listen e]\naddress = {address}\nservice = echo\nidle_timeout = 3h\n")
        wait_changes(t, daemon, "1h -> 2h", "2h -> 3h")
        replace(daemon.config_path, config(address, "4h"))
        wait_changes(t, daemon, "1h -> 2h", "2h -> 3h", "3h -> 4h")
        replace(more, "[listen\n")
        replace(daemon.config_path, config(address, "5h"))
        wait_changes(t, daemon, "1h -> 2h", "2h -> 3h", "3h -> 4h", "4h -> 5h")
        check_equal(daemon.log_lines("reload: refused"), [], "refusals")


@test()
def turned_on_and_off(t):
    """a reload turns it on and off"""
    address = t.address()
    on, off = config(address, "1h"), config(address, "1h").replace("watch = yes", "watch = no")
    with t.daemon(off) as daemon:
        lines = daemon.reload(on)
        check(any("watch: no -> yes" in line for line in lines), f"it says {lines}")
        replace(daemon.config_path, config(address, "2h"))
        wait_changes(t, daemon, "1h -> 2h")
        replace(daemon.config_path, off)
        wait_changes(t, daemon, "1h -> 2h", "2h -> 1h")
        t.eventually(lambda: "anon_inode:inotify" not in
                     [os.readlink(f"/proc/{daemon.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{daemon.pid}/fd")],
                     "no inotify is open")


@test(timeout=60)
def upgrade(t):
    """after an upgrade the new process watches"""
    address = t.address()
    with Chain(t, f"watch = yes\n[listen e]\naddress = {address}\nservice = echo\nidle_timeout = 1h\n") as chain:
        chain.upgrade()
        path = chain.daemon.config_path
        with open(path, encoding="utf-8") as f:
            text = f.read()
        replace(path, text.replace("idle_timeout = 1h", "idle_timeout = 2h"))
        t.eventually(lambda: chain.lines("idle_timeout: 1h -> 2h", chain.pid), "the change in the new process")
        chain.stop()
