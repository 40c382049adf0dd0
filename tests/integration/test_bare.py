"""bare: where the system lacks or refuses something that is there on every desk."""

import errno
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

from support import admin, net
from support.case import Skipped, check, check_equal, is_root, test
from support.preload import Preload

ECHO = """
[listen echo]
address = {address}
service = echo
"""


def fill(path):
    """Messages to the socket of the service manager, until it takes no more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.setblocking(False)
        try:
            while True:
                s.sendto(b"X=1", str(path))
        except BlockingIOError:
            pass


@test()
def manager_that_does_not_read(t):
    """a service manager that reads nothing holds up no reload, no statistics and no stop, and is told
    later what it has missed, once and in order"""
    address = t.address()
    config = ECHO.format(address=address)
    with t.daemon(config, environment={"WATCHDOG_USEC": "400000"}) as daemon:
        daemon.has_notified("READY=1")
        fill(daemon.notify_path)
        for i in range(3):
            daemon.config_path.write_text(config + f"max_connections = {10 + i}\n", encoding="utf-8")
            daemon.send_signal(signal.SIGHUP)
            t.eventually(lambda n=i: len(daemon.log_lines("reload: done")) > n, "the reload is done")
        daemon.send_signal(signal.SIGRTMIN)
        t.eventually(lambda: daemon.log_lines(" stats end$"), "statistics")
        with net.connect(address) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        check_equal(len(daemon.log_lines("systemd takes no messages")), 1, "log lines about it")
        daemon.notified.clear()
        t.eventually(lambda: daemon.has_notified("READY=1") and "WATCHDOG=1" in daemon.notified, "messages")
        told = [line for line in daemon.notified if line in ("RELOADING=1", "READY=1")]
        check_equal(told, ["RELOADING=1", "READY=1"], "what was missed")
        t.eventually(lambda: daemon.log_lines("systemd takes messages .* again"), "the end is logged")
        fill(daemon.notify_path)
        daemon.send_signal(signal.SIGTERM)
        check_equal(daemon.process.wait(20 * t.scale), 0, "exit code")
