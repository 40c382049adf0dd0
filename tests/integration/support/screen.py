"""screen: a program in a pseudo terminal, and what its screen shows."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

MISFITS = ("wrapped", "scrolled")
CONTROL = re.compile(r"\033\[(\?)?([0-9;]*)([A-Za-z])")


class Screen:
    """Starts a program with `with`, and follows the few control sequences it uses."""

    def __init__(self, command, columns=80, rows=24, env=None):
        self.command = command
        self.size = (columns, rows)
        self.env = env
        self.ours = self.theirs = self.process = None
        self.before = None       # the terminal's settings before the program
        self.modes = set()       # those that are on: ?1049 (alternate screen), ?25 (cursor)
        self.unknown = []        # sequences that are not followed
        self.lines, self.row, self.column, self.rest = [], 0, 0, ""

    def __enter__(self):
        self.ours, self.theirs = pty.openpty()
        self.resize(*self.size, tell=False)
        self.before = termios.tcgetattr(self.theirs)
        self.modes = {"25"}
        self.process = subprocess.Popen(self.command, stdin=self.theirs, stdout=self.theirs, stderr=subprocess.PIPE,
                                        env=self.env, start_new_session=True, preexec_fn=self._take_terminal)
        return self

    def _take_terminal(self):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):  # ignored if we run in the background
            signal.signal(number, signal.SIG_DFL)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stderr.close()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)

    def resize(self, columns, rows, tell=True):
        self.size = (columns, rows)
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.lines = [""] * rows
        self.row = self.column = 0
        if tell:
            self.process.send_signal(signal.SIGWINCH)

    def type(self, keys):
        os.write(self.ours, keys.encode())

    def is_restored(self):
        """Is the terminal as before: settings, main screen, cursor?"""
        self.read()
        return self.modes == {"25"} and termios.tcgetattr(self.theirs) == self.before

    def wait(self, within_s):
        """The exit code, negative for a signal."""
        end = time.monotonic() + within_s
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        return self.process.poll()

    def text(self):
        self.read()
        return "\n".join(self.lines)

    def read(self, wait_s=0):
        """Take in what has been written."""
        while select.select([self.ours], [], [], wait_s)[0]:
            self.rest += os.read(self.ours, 65536).decode()
            self._follow()
            wait_s = 0

    def _follow(self):
        text, self.rest = self.rest, ""
        place = 0
        while place < len(text):
            if text[place] == "\033":
                match = CONTROL.match(text, place)
                if not match and len(text) - place < 12:
                    self.rest = text[place:]
                    return
                self._control(*match.groups())
                place = match.end()
            else:
                self._put(text[place])
                place += 1

    def _control(self, private, number, letter):
        if private and letter in "hl":
            (self.modes.add if letter == "h" else self.modes.discard)(number)
        elif letter == "H":
            self.row = self.column = 0
            # A frame begins; the one before may have been for the size before.
            self.unknown = [what for what in self.unknown if what not in MISFITS]
        elif letter == "K":
            self.lines[self.row] = self.lines[self.row][:self.column]
        elif letter == "J":
            self.lines[self.row] = "" if number == "2" else self.lines[self.row][:self.column]
            self.lines[self.row + 1:] = [""] * (len(self.lines) - self.row - 1)
        elif letter != "m":
            self.unknown.append(number + letter)

    def _put(self, character):
        if character == "\n":
            self.row += 1
            if self.row >= len(self.lines):
                self.unknown.append("scrolled")
                self.row -= 1
        elif character == "\r":
            self.column = 0
        else:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[:self.column] + character + line[self.column + 1:]
            self.column += 1
            if self.column > self.size[0]:
                self.unknown.append("wrapped")
