"""page: the status page, in a browser."""

import contextlib
import os

from support import net
from support.admin import get, section
from support.browser import browser
from support.case import check, check_equal, test
from support.server import Counted

TOKEN = "0123456789abcdef0123456789abcdef"
NEEDS = ("chromium", "chromedriver")
TIMEOUT_S = 120

STATES = """return [...document.querySelectorAll('#upstreams tbody tr')].map(
    (row) => [row.cells[0].textContent, row.cells[1].textContent]);"""
BUTTONS = "return [...document.querySelectorAll('td.actions button')].map((button) => button.textContent);"
MESSAGE = "return document.getElementById('message').textContent;"
IS_ASKED = "return document.getElementById('ask').open;"
FOCUS = "return document.activeElement.getAttribute('aria-label') || document.activeElement.textContent;"
WRITTEN = "return document.querySelector(arguments[0]).textContent;"


class Place:
    """A proxy to two servers, and its admin interface over TCP."""

    def __init__(self, t, servers, more=""):
        self.t, self.front, self.admin = t, t.address(), t.address()
        token = t.write("token", TOKEN + "\n")
        os.chmod(token, 0o600)
        lines = "".join(f"server.{name} = {server.address}\n" for name, server in zip("ab", servers))
        self.config = (section(self.admin, f"token_file = {token}\n{more}")
                       + f"[listen front]\naddress = {self.front}\nservice = proxy\nupstream = back\n"
                       + f"[upstream back]\n{lines}")

    def open(self, page, token=TOKEN):
        page.open(f"http://{self.admin}/")
        self.t.eventually(lambda: not page.js("return document.getElementById('login').hidden;"),
                          "the page asks for the token")
        self.enter(page, token)

    def enter(self, page, token):
        page.js("""document.getElementById('token').value = arguments[0];
                   document.querySelector('#token-form button').click();""", token)

    def shown(self, page):
        self.t.eventually(lambda: page.js("return Number(document.body.dataset.updates || 0);") >= 2,
                          "the figures are shown", within=20)


@contextlib.contextmanager
def on_the_page(t):
    """A browser that shows two servers, and what it shows: the page, place, daemon and servers."""
    with Counted(t.address()) as a, Counted(t.address()) as b:
        place = Place(t, (a, b))
        with t.daemon(place.config) as daemon, browser(t) as page:
            place.open(page)
            place.shown(page)
            yield page, place, daemon, a, b


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True)
def token(t):
    """the page asks for the token, says when it is wrong, and shows the figures with the right one, live"""
    with Counted(t.address()) as a, Counted(t.address()) as b:
        place = Place(t, (a, b))
        with t.daemon(place.config), browser(t) as page, net.connect(place.front) as client:
            net.exchange(client, b"hello")
            place.open(page, "wrong")
            t.eventually(lambda: page.js(MESSAGE) == "reactord refuses this token", "the page says so")
            check(page.js("return document.getElementById('figures').hidden;"), "figures are shown")
            place.enter(page, TOKEN)
            place.shown(page)
            check_equal(page.js(STATES), [["a", "up"], ["b", "up"]], "servers")
            t.eventually(lambda: "5 B" in page.js(WRITTEN, "#sessions tbody"), "the session with its bytes")
            net.exchange(client, b"more")
            t.eventually(lambda: "9 B" in page.js(WRITTEN, "#sessions tbody"), "its bytes now")
            check_equal(page.errors(), [], "errors in the browser")


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True)
def drain_by_click(t):
    """a click on Drain, and on Yes, drains a server; Enable brings it back; both are logged"""
    with on_the_page(t) as (page, place, daemon, a, b):
        page.js("document.querySelector('button[aria-label=\"Drain back/a\"]').click();")
        check(page.js(IS_ASKED), "the page does not ask")
        page.js("document.getElementById('yes').click();")
        t.eventually(lambda: page.js(STATES)[0] == ["a", "draining"], "a drains")
        t.eventually(lambda: page.js(MESSAGE) == "Drain back/a: done", "the page says so")
        for _ in range(4):
            with net.connect(place.front) as client:
                net.exchange(client, b"x")
        check_equal((a.total, b.total), (0, 4), "clients of a and b")
        page.js("""document.querySelector('button[aria-label="Enable back/a"]').click();
                   document.getElementById('yes').click();""")
        t.eventually(lambda: page.js(STATES)[0] == ["a", "up"], "a is up")
        check_equal(len(daemon.log_lines("admin: 127.0.0.1:[0-9]*: POST /v1/server ")), 2, "log lines")
        check_equal(page.errors(), [], "errors in the browser")


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True)
def keyboard(t):
    """with the keyboard alone: Escape cancels and returns the focus, Tab and Enter drain"""
    with on_the_page(t) as (page, *_):
        page.js("document.querySelector('button[aria-label=\"Drain back/b\"]').focus();")
        page.press("Enter")
        t.eventually(lambda: page.js(IS_ASKED), "the page asks")
        check_equal(page.js(FOCUS), "Cancel", "the focus")
        page.press("Escape")
        t.eventually(lambda: not page.js(IS_ASKED), "Escape cancels")
        check_equal(page.js(FOCUS), "Drain back/b", "the focus then")
        page.press("Enter")
        t.eventually(lambda: page.js(IS_ASKED), "the page asks again")
        page.press("Tab")
        check_equal(page.js(FOCUS), "Drain", "the focus behind Tab")
        page.press("Enter")
        t.eventually(lambda: page.js(STATES)[1] == ["b", "draining"], "b drains")


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True)
def question_right_behind_another(t):
    """a question that comes before the browser has told the end of a cancelled one has its own answer"""
    with on_the_page(t) as (page, *_):
        page.js("""document.querySelector('button[aria-label="Drain back/a"]').click();
                   document.getElementById('ask').close();
                   document.querySelector('button[aria-label="Drain back/b"]').click();""")
        t.eventually(lambda: page.js(IS_ASKED) and "back/b" in page.js(WRITTEN, "#question"), "the page asks for b")
        page.js("document.getElementById('yes').click();")
        t.eventually(lambda: page.js(STATES) == [["a", "up"], ["b", "draining"]], "only b drains")


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True)
def read_only(t):
    """with write = no there is nothing to click, and a session cannot be killed"""
    with Counted(t.address()) as a, Counted(t.address()) as b:
        place = Place(t, (a, b), "write = no\n")
        with t.daemon(place.config), browser(t) as page, net.connect(place.front) as client:
            net.exchange(client, b"hello")
            place.open(page)
            place.shown(page)
            check_equal(page.js(BUTTONS), [], "buttons")


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True, each=[
    {"screen": "phone", "width": 360, "height": 740, "scheme": "light"},
    {"screen": "phone", "width": 360, "height": 740, "scheme": "dark"},
    {"screen": "desktop", "width": 1280, "height": 900, "scheme": "dark"}])
def screens(t, screen, width, height, scheme):
    """on a {scheme} {screen} nothing is wider than the screen, and what can be used has a name"""
    with Counted(t.address()) as a, Counted(t.address()) as b:
        place = Place(t, (a, b))
        with t.daemon(place.config), browser(t) as page, net.connect(place.front) as client:
            net.exchange(client, b"hello")
            page.screen(width, height, scheme)
            place.open(page)
            place.shown(page)
            check(page.js("return document.documentElement.scrollWidth;") <= width, "it is too wide")
            colour = page.js("return getComputedStyle(document.body).backgroundColor;")
            check((colour == "rgb(20, 23, 27)") == (scheme == "dark"), f"the background is {colour}")
            roles = page.named()
            check_equal([role for role, name in roles if not name.strip()], [], "roles without a name")
            check(("button", "Drain back/a") in roles, f"no such button: {roles}")


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True)
def gone(t):
    """when reactord ends the page says that its figures are old"""
    with Counted(t.address()) as a, Counted(t.address()) as b:
        place = Place(t, (a, b))
        with browser(t) as page:
            with t.daemon(place.config):
                place.open(page)
                place.shown(page)
            t.eventually(lambda: "does not answer" in page.js(MESSAGE), "the page says so", within=20)


@test()
def policy(t):
    """the page itself needs no token, may not be framed, and loads nothing from elsewhere"""
    with Counted(t.address()) as a, Counted(t.address()) as b:
        place = Place(t, (a, b))
        with t.daemon(place.config):
            answer = get(place.admin, "/", host=place.admin)
    check_equal((answer.status, answer.headers["content-type"]), (200, "text/html; charset=utf-8"), "answer")
    policies = answer.headers["content-security-policy"]
    check("default-src 'none'" in policies and "frame-ancestors 'none'" in policies, policies)
    check(b"</html>" in answer.body[-20:] and TOKEN.encode() not in answer.body, "not the whole page")
    check_equal([word for word in (b"http://", b"https://", b"//cdn") if
                 word in answer.body.replace(b"http://www.w3.org/2000/svg", b"")], [], "other hosts")
