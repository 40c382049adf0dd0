"""pipeline: what the handlers before the service do with the bytes of a client."""

import random
import re
import signal
import socket
import struct
import subprocess
import time

from support import net
from support.case import check, check_equal, test
from support.net import Task
from test_programs import port_of
from test_reasons import echo, expect, proxy

MIB = 1 << 20


def frame(data, order=">", width="H"):
    return struct.pack(order + width, len(data)) + data


def framed(options=""):
    return f"pipeline = frame\nframe_length_width = 2\n{options}"


@test(each={"pipeline": ["log", "frame", "executor", "log, frame, idle, executor",
                         "executor, idle, frame, log"]})
def bulk(t, pipeline):
    """framed data of any size is echoed as it is, half-closed at the end (pipeline = {pipeline})"""
    address = t.address()
    options = f"pipeline = {pipeline}\n" + ("idle_all = 1m\n" if "idle" in pipeline else "")
    chooser = random.Random(3)
    data = b"".join(frame(chooser.randbytes(chooser.choice((0, 1, 100, 3000, 60000))), width="I")
                    for _ in range(400))
    with t.daemon(echo(address, options)) as daemon:
        with net.connect(address) as s:
            sender = Task(s.sendall, data)
            check(net.read_exactly(s, len(data)) == data, "the echo differs")
            sender.result()
            s.shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(s), b"", "what follows")
        counts = expect_end(t, daemon)
        check_equal(counts, len(data), "bytes counted")


def expect_end(t, daemon):
    """The bytes that its one session, which has ended by now, has sent."""
    def ended():
        counts = daemon.counts("listen echo ")
        return counts if counts["sessions"] == 0 and counts.get("client_fin") == 1 else None
    return t.eventually(ended, "the end of the session")["bytes_out"]


@test()
def whole_frames_only(t):
    """a server gets a frame of its client when its last byte has come, and never a part of one"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, framed())):
        with net.proxied(front, listener) as (client, server):
            whole = frame(b"hello")
            for i in range(len(whole)):
                server.settimeout(0.05)
                try:
                    check(False, f"the server got {server.recv(100)!r} of {i} bytes")
                except TimeoutError:
                    server.settimeout(10)
                client.sendall(whole[i:i + 1])
            check_equal(net.read_exactly(server, len(whole)), whole, "the frame")
            server.sendall(b"not framed")
            check_equal(net.read_exactly(client, 10), b"not framed", "the answer")


@test()
def another_form(t):
    """a field of 4 bytes, the least significant first, behind 2 others, that counts the whole frame;
    stripped"""
    address = t.address()
    options = ("pipeline = frame\nframe_length_offset = 2\nframe_length_width = 4\n"
               "frame_length_adjustment = -6\nframe_strip = 6\nframe_byte_order = little\n")
    with t.daemon(echo(address, options)), net.connect(address) as s:
        for data in (b"a", b"", b"bcd"):
            s.sendall(b"XY" + struct.pack("<I", len(data) + 6) + data)
        check_equal(net.read_exactly(s, 4), b"abcd", "the echo")


@test(each=[{"bad": "too long", "reason": "limit", "count": "too_long"},
            {"bad": "cut off", "reason": "error", "count": "cut_off"}])
def bad_frame(t, bad, reason, count):
    """after a frame that is {bad} both sides are reset, behind what came before; the reason is {reason}"""
    front, back = t.address(), t.address()
    options = framed("frame_max_length = 100")
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)) as daemon:
        with net.proxied(front, listener) as (client, server):
            good = frame(b"good")
            client.sendall(good + frame(b"x" * (200 if bad == "too long" else 90))[:80])
            check_equal(net.read_exactly(server, len(good)), good, "what came before")
            if bad == "cut off":
                client.shutdown(socket.SHUT_WR)
            check_equal(net.ending(client), "reset", "the client's end")
            check_equal(net.ending(server), "reset", "the server's end")
        expect(t, daemon, "listen front", **{reason: 1})
        counts = {"too_long": 0, "corrupt": 0, "cut_off": 0}
        check_equal(daemon.counts("frame front "), {**counts, count: 1}, "counts")
        check_equal(len(daemon.log_lines(r"warning .*listen front: .*the connection is reset")), 1,
                    "lines")


@test()
def skipped_frame(t):
    """a frame that is too long is left out, and what is around it is not"""
    address = t.address()
    options = framed("frame_max_length = 100\nframe_on_error = skip")
    with t.daemon(echo(address, options)) as daemon, net.connect(address) as s:
        s.sendall(frame(b"one") + frame(b"x" * 60000) + frame(b"two"))
        wanted = frame(b"one") + frame(b"two")
        check_equal(net.read_exactly(s, len(wanted)), wanted, "the echo")
        s.sendall(b"\0\5cut")
        s.shutdown(socket.SHUT_WR)
        check_equal(net.read_to_end(s), b"", "what follows")
        check_equal(daemon.counts("frame echo "),
                    {"too_long": 1, "corrupt": 0, "cut_off": 1}, "counts")
        check_equal(len(daemon.log_lines(r"warning .*listen echo: .*the frame is skipped")), 1, "lines")


LINES = "pipeline = frame\nframe_by = delimiter\nframe_delimiter = \\n, \\r\\n\n"
OCTETS = "pipeline = frame\nframe_by = text_length\n"


@test(each=[{"client": "logger -T --octet-count", "options": OCTETS},
            {"client": "logger -T", "options": LINES}])
def syslog(t, client, options):
    """messages of {client} come whole to the server, framed as they were sent"""
    front, back = t.address(), t.address()
    messages = [f"message {i} " + "x" * (1 + i * 37 % 900) for i in range(50)]
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)) as daemon:
        sender = subprocess.Popen(client.split() + ["-n", "127.0.0.1", "-P", port_of(front)],
                                  stdin=subprocess.PIPE, text=True)
        sender.stdin.write("\n".join(messages) + "\n")
        sender.stdin.close()
        with net.accept(listener) as server:
            stream = net.read_to_end(server)
        check_equal(sender.wait(30), 0, "the exit status")
        got = split_octets(stream) if options == OCTETS else stream.decode().split("\n")[:-1]
        check_equal(len(got), len(messages), "messages")
        for message, wanted in zip(got, messages):
            check(message.endswith(wanted), f"{message!r} instead of {wanted!r}")
        expect(t, daemon, "listen front", client_fin=1)


def split_octets(stream):
    messages = []
    while stream:
        length, rest = stream.split(b" ", 1)
        messages.append(rest[:int(length)].decode())
        stream = rest[int(length):]
    return messages


@test(each={"client": ["socat -t 10 - TCP:127.0.0.1:{}", "nc -N 127.0.0.1 {}"]})
def lines(t, client):
    """lines with either end, and a last one without an end, which is left out ({client})"""
    address = t.address()
    options = LINES + "frame_strip_delimiter = yes\nframe_on_error = skip\nframe_max_length = 10\n"
    with t.daemon(echo(address, options)) as daemon:
        done = subprocess.run(client.format(port_of(address)).split(),
                              input=b"one,\ntwo,\r\n\n" + b"y" * 50 + b"\nthree\nrest", timeout=60,
                              stdout=subprocess.PIPE, check=True)
        check_equal(done.stdout, b"one,two,three", "the echo")
        check_equal(daemon.counts("frame echo "),
                    {"too_long": 1, "corrupt": 0, "cut_off": 1}, "counts")


@test(each=[{"options": LINES, "sent": b"ab\ncd"}, {"options": OCTETS, "sent": b"2 ab5 cd"},
            {"options": OCTETS, "sent": b"2 ab1"}, {"options": OCTETS, "sent": b"2 ab05 hello"}])
def bad_text_frame(t, options, sent):
    """a frame that is cut off or has no length resets both sides behind the one before: {sent}"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)) as daemon:
        with net.proxied(front, listener) as (client, server):
            client.sendall(sent)
            good = sent[:3 if options == LINES else 4]
            check_equal(net.read_exactly(server, len(good)), good, "what came before")
            if b"05" not in sent:
                client.shutdown(socket.SHUT_WR)
            check_equal(net.ending(client), "reset", "the client's end")
            check_equal(net.ending(server), "reset", "the server's end")
        expect(t, daemon, "listen front", error=1)


@test()
def pieces_of_a_frame(t):
    """memory for frames that never end is what has come of them, and is given back"""
    address = t.address()
    options = "pipeline = frame\nframe_max_length = 64m\n"
    with t.daemon(echo(address, options)) as daemon:
        before = daemon.rss_bytes()
        clients = [net.connect(address) for _ in range(200)]
        for s in clients:
            s.sendall(struct.pack(">I", 60 * MIB) + b"x" * 1000)
        time.sleep(0.3)
        if not t.sanitized:
            check(daemon.rss_bytes() - before < 4 * MIB, "memory was taken for what did not come")
        for s in clients:
            net.reset(s)


@test(each={"action": ["close", "log"]})
def idle(t, action):
    """a client that sends half a frame and then nothing is idle: {action}"""
    address = t.address()
    options = f"pipeline = frame, idle\nidle_read = 400ms\nidle_action = {action}"
    with t.daemon("[reactord]\nlog_level = debug\n" + echo(address, options)) as daemon:
        began = time.monotonic()
        with net.connect(address) as s:
            s.sendall(b"\0\0\0\5hel")
            if action == "close":
                check_equal(net.ending(s), "reset", "the end")
                check(time.monotonic() - began >= 0.39, "it was too early")
            else:
                t.eventually(lambda: daemon.log_lines(r"info .*listen echo: .*: idle: nothing was "
                                                      r"read for 400 ms"), "the line")
                s.sendall(b"lo")
                check_equal(net.read_exactly(s, 9), b"\0\0\0\5hello", "the echo")
        if action == "close":
            expect(t, daemon, "listen echo", idle=1)


@test(each={"option": ["idle_timeout = 1s", "max_lifetime = 1s\nlifetime_jitter = 0"],
            "on_error": ["close", "skip"]})
def timeout_in_frame(t, option, on_error):
    """a timeout within a frame resets both sides, and counts the frame as cut off: {option}, {on_error}"""
    front, back = t.address(), t.address()
    options = framed(f"{option}\nframe_on_error = {on_error}")
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)) as daemon:
        with net.proxied(front, listener) as (client, server):
            client.sendall(frame(b"good") + frame(b"x" * 90)[:80])
            check_equal(net.read_exactly(server, 6), frame(b"good"), "what came before")
            check_equal(net.ending(client), "reset", "the client's end")
            check_equal(net.ending(server), "reset", "the server's end")
        reason = "idle" if option.startswith("idle") else "lifetime"
        expect(t, daemon, "listen front", **{reason: 1})
        check_equal(daemon.counts("frame front "),
                    {"too_long": 0, "corrupt": 0, "cut_off": 1}, "counts")


def ordered(address, n):
    """${n} numbered frames, in bursts, and back in order."""
    with net.connect(address) as s:
        numbers = [frame(struct.pack(">I", i) * random.randrange(1, 40)) for i in range(n)]
        sender = Task(lambda: [s.sendall(b"".join(numbers[i:i + 50])) for i in range(0, n, 50)])
        for i, wanted in enumerate(numbers):
            check(net.read_exactly(s, len(wanted)) == wanted, f"frame {i} is not in its place")
        sender.result()
        s.shutdown(socket.SHUT_WR)
        check_equal(net.read_to_end(s), b"", "what follows")


@test(timeout=90)
def executor_keeps_order(t):
    """frames of 16 connections through 4 threads of the executor, which is full now and then: each
    connection in order, nothing lost"""
    address = t.address()
    config = ("[executor]\nthreads = 4\nmax_pending_tasks = 200\n" +
              echo(address, "pipeline = frame, executor\nframe_length_width = 2"))
    with t.daemon(config) as daemon:
        for task in [Task(ordered, address, 3000) for _ in range(16)]:
            task.result()
        counts = daemon.counts("executor ")
        check_equal(counts["tasks_dropped"], 0, "drops")
        # One is started when all that there are have work; on a busy machine that may be so seldom.
        check(counts["threads"] > 1, f"threads: {counts}")
        check(counts["tasks_run"] >= 16 * 3000, f"tasks: {counts}")


@test(timeout=60)
def slow_executor(t):
    """with slow work a client that sends on and on is held up, memory stays flat, and others are
    served"""
    slow, quick = t.address(), t.address()
    config = ("[executor]\nthreads = 2\n" +
              echo(slow, "pipeline = executor\nexecutor_delay = 500ms").replace("echo]", "slow]") +
              echo(quick, "pipeline = executor"))
    with t.daemon(config) as daemon:
        with net.connect(slow) as s, net.connect(quick) as other:
            before = daemon.rss_bytes()
            net.fill(s)
            for _ in range(5):
                net.exchange(other, b"hello")
            if not t.sanitized:
                check(daemon.rss_bytes() - before < 4 * MIB, "RSS grew with what was sent")
            net.reset(s)
        daemon.stop()


@test()
def stop_while_out(t):
    """SIGTERM while bytes are out: the client gets all of them, and then the daemon ends"""
    address = t.address()
    with t.daemon(echo(address, "pipeline = executor\nexecutor_delay = 1s")) as daemon:
        with net.connect(address) as s:
            s.sendall(b"hello")
            time.sleep(0.2)
            daemon.send_signal(signal.SIGTERM)
            check_equal(net.read_exactly(s, 5), b"hello", "the echo")
            check_equal(net.ending(s), "fin", "the end")
        daemon.wait()


@test()
def drained_half_way(t):
    """a stop without patience while bytes are out ends at once, and visibly"""
    address = t.address()
    config = "[reactord]\ndrain_timeout = 100ms\n" + echo(
        address, "pipeline = executor\nexecutor_delay = 1s")
    with t.daemon(config) as daemon:
        with net.connect(address) as s:
            s.sendall(b"hello")
            time.sleep(0.2)
            daemon.send_signal(signal.SIGTERM)
            check_equal(net.ending(s), "reset", "the end")
        daemon.wait()


@test(each=[
    {"options": "pipeline = log, log", "says": r"pipeline: 'log' is given twice"},
    {"options": "pipeline = frmae", "says": r"'frmae' is not a handler; did you mean 'frame'\?"},
    {"options": "pipeline = idle", "says": r"pipeline: the handler idle has nothing to do"},
    {"options": "frame_strip = 2", "says": r"frame_strip: needs the handler frame"},
    {"options": "pipeline = frame\nframe_max_length = 3",
     "says": r"frame_max_length: the length field does not fit"},
    {"options": "pipeline = frame\nframe_delimiter = \\0",
     "says": r"frame_delimiter: needs frame_by = delimiter"}])
def refused(t, options, says):
    """refused when the daemon starts: {options}"""
    path = t.write("bad.ini", echo(t.address(), options))
    done = t.reactord("-t", "-c", path)
    check_equal(done.code, 1, "the exit status")
    check(re.search(says, done.err), done.err)
