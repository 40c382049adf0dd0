"""load: clients and servers of all streams, on one thread; each end is judged as it comes."""

import heapq
import itertools
import os
import random
import re
import selectors
import socket
import threading
import time
import traceback

from support import net

from streams import BROKEN, HEAD_BYTES, End, Pipe, Sealed, Stream, Wrong, header_bytes

ROUNDS = 4  # of reading or writing before another socket has its turn
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
TICK_S = 0.25
STILL_S = 4  # on a busy machine; then the daemon may have ended for silence what it may end
PORT_TEXT = {socket.AF_INET: "{}:{}", socket.AF_INET6: "[{}]:{}"}  # as in the daemon's log
ABUSE = (b"\x16\x03\x01\xff\xff", b"GET / HTTP/1.0\r\n\r\n", b"PROXY UNKNOWN", bytes(100))


class Guest:
    """A connection at a server of which nothing is known yet: a check, a spare one, or a stream."""

    def __init__(self, server, pipe):
        self.server, self.pipe, self.data = server, pipe, b""

    def stream_id(self):
        """The stream's number and the bytes behind its head; None: not there yet."""
        length = header_bytes(self.data)
        if length is None or len(self.data) < length + HEAD_BYTES:
            return None
        self.data = self.data[length:]
        found = re.match(rb"soak ([0-9a-f]{8})\n", self.data)
        if not found and self.data.startswith(ABUSE):
            raise ConnectionResetError("no client of ours")
        if not found:
            raise Wrong(f"a server got {self.data[:60]!r} as the first bytes")
        return int(found[1], 16)


class Server:
    """A server of an upstream: it comes and goes."""

    def __init__(self, load, name, address, context=None, mirror=False):
        self.load, self.name, self.address, self.context, self.is_mirror = load, name, address, context, mirror
        self.upstream = name.partition("/")[0]
        self.socket, self.ends = None, set()

    def listen(self):
        if self.socket is None:
            if self.address.startswith("/") and os.path.exists(self.address):
                os.unlink(self.address)
            self.socket = net.listen(self.address, 1024)
            self.socket.setblocking(False)
            self.load.selector.register(self.socket, READ, self)

    def leave(self):
        """No new connections."""
        if self.socket is not None:
            self.load.selector.unregister(self.socket)
            self.socket.close()
            self.socket = None

    def crash(self):
        """Reset all it has."""
        self.leave()
        for end in list(self.ends):
            self.load.give_up(end)


class Load(threading.Thread):
    """The thread. What others want done there they give to do()."""

    def __init__(self, place, excuses, seed, scale):
        super().__init__(daemon=True)
        self.place, self.excuses, self.scale = place, excuses, scale
        self.draw = random.Random(f"{seed} streams")
        self.selector = selectors.DefaultSelector()
        self.streams, self.failures, self.wanted, self.is_over = {}, [], 0, False
        self.counts = dict.fromkeys(("opened", "whole", "explained", "on purpose"), 0)
        self.latest_s = 0
        self._tasks, self._timers, self._order = [], [], itertools.count()
        self._lock = threading.Lock()

    # For other threads

    def do(self, function, *arguments):
        """Run it there, and wait."""
        done = threading.Event()
        with self._lock:
            self._tasks.append((function, arguments, done))
        if not done.wait(60):
            self.fail(None, "the load does not answer")

    def fail(self, stream, what):
        told = "" if stream is None else f"stream {stream.id} of {stream.listener.name} ({stream.kind}): "
        self.failures.append((time.monotonic(), f"{told}{what}", stream))

    def run(self):
        try:
            tick, last = 0, time.monotonic()
            while not self.is_over:
                now = time.monotonic()
                self.latest_s = max(self.latest_s, now - last)
                if now - last > STILL_S:
                    self.excuses.once("the load stood still", "refused reset cut wait")
                self.excuses.lag_s = max(now - last, self.excuses.lag_s * 0.999)
                last = now
                if now >= tick:
                    tick = now + TICK_S
                    self._look(now)
                self._run_tasks()
                while self._timers and self._timers[0][0] <= now:
                    end = heapq.heappop(self._timers)[2]
                    end.timer_at = None
                    self._turn(end, READ | WRITE)
                wait = self._timers[0][0] - now if self._timers else TICK_S
                for key, events in self.selector.select(min(max(wait, 0), 0.02)):
                    self._event(key.data, events)
        except BaseException:  # of the test itself
            self.fail(None, traceback.format_exc())

    def _run_tasks(self):
        with self._lock:
            tasks, self._tasks = self._tasks, []
        for function, arguments, done in tasks:
            function(*arguments)
            done.set()

    def _look(self, now):
        """Open streams that are missing; find those that do not go on."""
        for _ in range(min(self.wanted - len(self.streams), 8)):
            self._open()
        self.excuses.look_at_kernel()
        limit = 30 * self.scale
        for stream in list(self.streams.values()):
            # A listener's limits hold a client in the kernel's queue as long as others take.
            if now - stream.progress > limit:
                if not self.excuses.find("wait", stream, stream.progress, now):
                    self.fail(stream, f"no byte for {limit:.0f} s; {stream.client}; {stream.server}")
                stream.progress = now
                for end in (stream.client, stream.server):
                    if end:
                        self.give_up(end)
        self.place.look(now)

    # Clients

    def _open(self):
        listener = self.draw.choice(self.place.listeners)
        stream = Stream(listener, self.draw)
        address = self.draw.choice(listener.addresses)
        self.counts["opened"] += 1
        s = socket.socket(net.parse(address)[0])
        if stream.read_pause_s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
        s.setblocking(False)
        pipe = Sealed(s, listener.context) if listener.context else Pipe(s)
        end = stream.client = End(stream, pipe, True)
        end.greeting = listener.greeting(self.draw)
        self.streams[stream.id] = stream
        try:
            if s.family == socket.AF_INET and not address.startswith("["):
                s.bind((f"127.0.0.{self.draw.randrange(20, 40)}", 0))
            s.connect(net.parse(address)[1])
        except BlockingIOError:
            if s.family == socket.AF_UNIX:  # its backlog is full
                self._ended(end, "refused", "the queue is full")
                return
        except OSError as error:
            self._ended(end, "refused", str(error))
            return
        end.port = "unix" if s.family == socket.AF_UNIX else PORT_TEXT[s.family].format(*s.getsockname())
        self.selector.register(s, WRITE, end)

    # Events

    def _event(self, what, events):
        if isinstance(what, Server):
            self._accept(what)
        elif isinstance(what, Guest):
            self._guest(what)
        else:
            self._turn(what, events)

    def _accept(self, server):
        for _ in range(ROUNDS * 4):
            try:
                s, _ = server.socket.accept()
            except (BlockingIOError, AttributeError):
                return
            except OSError:
                continue
            s.setblocking(False)
            pipe = Sealed(s, server.context, True) if server.context else Pipe(s)
            guest = Guest(server, pipe)
            server.ends.add(guest)
            self.selector.register(s, READ, guest)

    def _guest(self, guest):
        try:
            while (data := guest.pipe.recv()) is not None:
                guest.data += data
                number = guest.stream_id()
                if number is not None:
                    self._becomes(guest, number)
                    return
                if not data:
                    self._close_guest(guest)
                    return
        except BROKEN:
            self._close_guest(guest)
        except Wrong as wrong:
            self.fail(None, f"{guest.server.name}: {wrong}")
            self._close_guest(guest)

    def _close_guest(self, guest):
        self.selector.unregister(guest.pipe.s)
        guest.server.ends.discard(guest)
        guest.pipe.close()

    def _becomes(self, guest, number):
        """It is the server of that stream."""
        stream = self.streams.get(number)
        guest.server.ends.discard(guest)
        if guest.server.is_mirror:
            if not stream:
                self._close_guest(guest)
                return
            end = End(stream, guest.pipe, False)
            end.is_mirror, end.out = True, 0
        elif not stream or (stream.server and not stream.server.how and stream.server.sent):
            # The client may have left with a reset before its server was reached.
            if stream:
                self.fail(stream, f"came a second time, to {guest.server.name}; {stream.server}")
            self._close_guest(guest)
            return
        else:
            if stream.server:
                stream.told.append(f"before at {stream.server}")
            end = stream.server = End(stream, guest.pipe, False)
            stream.server_name = guest.server.name
        end.server, end.has_begun = guest.server, True
        guest.server.ends.add(end)
        end.port = guest.server.address
        self.selector.modify(guest.pipe.s, READ | WRITE, end)
        try:
            end.take(guest.data, time.monotonic())
        except Wrong as wrong:
            self._wrong(end, wrong)
            return
        self._turn(end, READ | WRITE)

    def _turn(self, end, events):
        """Move what moves, then say what to wait for."""
        if end.how:
            return
        now = time.monotonic()
        try:
            more = self._move(end, events, now)
            is_blocked = not self._write(end, now) or not end.pipe.flush()
        except Wrong as wrong:
            self._wrong(end, wrong)
            return
        except (*BROKEN, OSError) as error:
            self._ended(end, "reset", str(error))
            return
        if end.how or self._resets_on_purpose(end):
            return
        if end.has_eof and end.is_shut and not is_blocked:
            self._ended(end, "cut" if not end.is_whole else "whole", "")
            return
        self._wait(end, now, is_blocked, more or bool(end.pipe.early and now >= end.read_at))

    def _move(self, end, events, now):
        """Begin, and read. True: there may be more."""
        if not end.has_begun:
            if not events & WRITE or (end.greeting and not self._greet(end)):
                return False
            end.has_begun = True
            if end.is_client:
                end.pipe.open()
        return self._read(end, now) if events & READ else False

    def _greet(self, end):
        """The PROXY header in front of everything; false: not sent yet."""
        try:
            n = end.pipe.s.send(end.greeting)
        except BlockingIOError:
            return False
        end.greeting = end.greeting[n:]
        return not end.greeting

    def _read(self, end, now):
        """True: there may be more."""
        if end.has_eof or now < end.read_at:
            return False
        for _ in range(ROUNDS):
            data = end.pipe.recv()
            if data is None:
                return False
            end.take(data, now)
            if not data:
                if not end.is_whole:
                    self._ended(end, "cut", "")
                return False
            if end.stream.read_pause_s and not end.is_mirror:
                end.read_at = now + end.stream.read_pause_s
                return False
        return True

    @staticmethod
    def _write(end, now):
        """False: the kernel takes nothing."""
        if not end.has_begun or not end.pipe.is_open:
            return True
        for _ in range(ROUNDS):
            if not end.may_send(now):
                return True
            if not end.put(now):
                return False
        return True

    def _resets_on_purpose(self, end):
        """Does its plan say so now?"""
        stream, who = end.stream, "client resets" if end.is_client else "server resets"
        if stream.kind != who or end.is_mirror or end.sent < stream.reset_at or (
                end.is_client and stream.server_side() and not stream.server):
            return False
        self.give_up(end)
        return True

    def _wait(self, end, now, is_blocked, more):
        events = 0
        if end.has_begun and not end.has_eof and now >= end.read_at:
            events |= READ
        if is_blocked or not end.has_begun or (end.pipe.is_open and end.may_send(now)):
            events |= WRITE
        times = [now] * more + [at for at in (end.read_at, end.wait_until) if at > now]
        if times and (end.timer_at is None or min(times) < end.timer_at):
            end.timer_at = min(times)
            heapq.heappush(self._timers, (end.timer_at, next(self._order), end))
        key = self.selector.get_map().get(end.pipe.s.fileno())
        if not events:
            if key:
                self.selector.unregister(end.pipe.s)
        elif not key:
            self.selector.register(end.pipe.s, events, end)
        elif key.events != events or key.data is not end:
            self.selector.modify(end.pipe.s, events, end)

    # Ends

    def _wrong(self, end, wrong):
        self.fail(end.stream, f"{wrong}; {end}")
        self.give_up(end)

    def give_up(self, end):
        """Reset it, on purpose."""
        if isinstance(end, Guest):
            self.selector.unregister(end.pipe.s)
            end.server.ends.discard(end)
            end.pipe.reset()
            return
        if not end.how:
            self._forget(end, "resets")
            end.pipe.reset()
            self._judge(end, "resets", "")

    def _ended(self, end, how, error):
        if end.how:
            return
        self._forget(end, how)
        end.pipe.close()
        self._judge(end, how, error)

    def _forget(self, end, how):
        if end.pipe.s.fileno() in self.selector.get_map():
            self.selector.unregister(end.pipe.s)
        end.how, end.ended_at = how, time.monotonic()
        if end.server:
            end.server.ends.discard(end)

    def _judge(self, end, how, error):
        """Note what must be explained; when both ends have ended, ask whether it is."""
        stream, now = end.stream, time.monotonic()
        if end.is_mirror:
            client = stream.client
            may_be = client.how in (None, "cut", "reset") or client.pipe.is_unix or end.pipe.is_unix
            if how == "cut" and not may_be and not self.excuses.find(how, stream, now, now):
                self.fail(stream, f"a mirror got too few bytes and an orderly end; {end}")
            return
        if how not in ("whole", "resets"):
            kind = "reset" if end.pipe.is_unix else how  # a unix socket ends in one way only
            if end.is_client and not end.got and not stream.server:
                kind = "refused"
            stream.broken.append((end, kind, now))
            stream.told.append(f"{kind}: {error}")
        ends = [e for e in (stream.client, stream.server) if e]
        if all(e.how for e in ends):
            self._finish(stream, ends)
        else:
            stream.progress = now

    def _finish(self, stream, ends):
        self.streams.pop(stream.id, None)
        on_purpose = any(e.how == "resets" for e in ends)
        found = [self.excuses.find(kind, stream, at, at) for _, kind, at in stream.broken]
        for (_, kind, _), excuse in zip(stream.broken, found):
            can_tell = not any(e.how == "resets" and e.pipe.is_unix for e in ends)
            if not excuse and (kind == "cut" and can_tell or not (on_purpose or any(found))):
                self.fail(stream, f"{kind}, and no action explains it; "
                          f"{'; '.join(str(e) for e in ends)}; {stream.told}")
                return
        if on_purpose:
            self.counts["on purpose"] += 1
        else:
            self.counts["explained" if stream.broken else "whole"] += 1
