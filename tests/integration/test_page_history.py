"""page_history: what the status page tells of a bad night, to somebody who was not there.

With REACTORD_PICTURES=FOLDER in the environment, night() writes pictures there, and lasts longer.
"""

import base64
import contextlib
import os
import threading
import time

from support import net
from support.admin import request
from support.browser import browser
from support.case import check, check_equal, test
from support.server import Counted
from test_overload import Flood
from test_page import NEEDS, TOKEN, TIMEOUT_S, Place

PICTURES = os.environ.get("REACTORD_PICTURES")
SCREENS = [("phone", 360, 800), ("desktop", 1280, 900)]
EVENTS = "return [...document.querySelectorAll('#events li')].map((li) => li.textContent);"
STRIP = "return [...document.querySelectorAll('#charts text.what')].map((text) => text.firstChild.data);"
BAD = "return document.querySelectorAll('#charts figure[data-key=new] line.event.bad').length;"
LEGENDS = """return Object.fromEntries([...document.querySelectorAll('#charts figure')].filter((f) => !f.hidden)
    .map((f) => [f.dataset.key, f.querySelector('span').textContent]));"""
CHECKS = "check = tcp\ncheck_interval = 200ms\nfall = 1\nrise = 1\n"


class Traffic:
    """Clients that come and go all the while, and do not care who serves them."""

    def __init__(self, address):
        self.address, self.stop = address, threading.Event()

    def __enter__(self):
        self.task = net.Task(self._run)
        return self

    def _run(self):
        while not self.stop.wait(0.03):
            with contextlib.suppress(OSError), net.connect(self.address) as client:
                net.exchange(client, os.urandom(1) * 2000)

    def __exit__(self, *_):
        self.stop.set()
        self.task.result()


def picture(t, page, name):
    for screen, width, height in SCREENS:
        for scheme in ("light", "dark"):
            page.screen(width, height, scheme)
            time.sleep(2)
            size = page.js("return document.documentElement.scrollHeight;")
            page.screen(width, min(size, 4000 if width > 640 else 1900), scheme)
            time.sleep(2)
            shot = page.cdp("Page.captureScreenshot")
            with open(os.path.join(PICTURES, f"{name}-{screen}-{scheme}.png"), "wb") as file:
                file.write(base64.b64decode(shot["data"]))


class Night(Place):
    """Servers, the last of them often, an echo that can be overloaded, and its page."""

    def __init__(self, t, servers, n):
        super().__init__(t, servers)
        self.echo = t.address()
        lines = "".join(f"server.s{i} = {servers[-1].address}\n" for i in range(n - len(servers)))
        self.config = ("[reactord]\nmax_buffered = 1m\nshed_rate = 0\n" + self.config + CHECKS + lines
                       + f"[listen echo]\naddress = {self.echo}\nservice = echo\nsend_buffer = 32k\n"
                       + "receive_buffer = 32k\n")


def told(t, page, *words):
    t.eventually(lambda: any(all(word in text for word in words) for text in page.js(EVENTS)), f"{words} in the events", 30)


@test(needs=NEEDS, timeout=900 if PICTURES else TIMEOUT_S, plain_only=True, each={"n": [3, 300] if PICTURES else [3]})
def night(t, n):
    """with {n} servers one that goes down, a reload and an overload are on the page's time line and in its events, with
    why and by whom"""
    wait = (lambda s: time.sleep(s)) if PICTURES else (lambda s: None)
    with contextlib.ExitStack() as stack:
        at = [t.address(), t.address()]
        place = Night(t, [Counted(one) for one in at], n)
        stack.enter_context(Counted(at[1]))  # before a, whose socket it would share
        a = stack.enter_context(contextlib.ExitStack())
        a.enter_context(Counted(at[0]))
        daemon = stack.enter_context(t.daemon(place.config))
        page = stack.enter_context(browser(t))
        stack.enter_context(Traffic(place.front))
        page.screen(1280, 900)
        place.open(page)
        place.shown(page)
        wait(30)
        a.close()
        told(t, page, "server a: down", "connection refused")
        wait(15)
        if PICTURES:
            picture(t, page, f"{n}-1-down")
        a.enter_context(Counted(at[0]))
        told(t, page, "server a: up")
        wait(12)
        daemon.reload(place.config.replace("fall = 1", "fall = 2"))
        told(t, page, "fall: 1 -> 2")
        told(t, page, "SIGHUP from pid")
        told(t, page, "reload: done")
        wait(12)
        if PICTURES:
            picture(t, page, f"{n}-2-reload")
        with Flood(place.echo, 100) as flood:
            flood.go_on(lambda: None, 10)
            told(t, page, "overload", "no client is accepted")
            wait(15)
            if PICTURES:
                picture(t, page, f"{n}-3-overload")
        told(t, page, "overload is over")
        t.eventually(lambda: "overload" in page.js(STRIP), "the time line has its words")
        t.eventually(lambda: page.js(BAD) >= 2, "and the charts a line for each")
        t.eventually(lambda: page.js(LEGENDS)["new"] not in ("", "new -"), "the chart of new sessions has a value")
        check_equal(page.errors(), [], "errors in the browser")


@contextlib.contextmanager
def on_its_page(t, place, servers=()):
    """The page of a place, with traffic."""
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.enter_context(server)
        daemon = stack.enter_context(t.daemon(place.config))
        page = stack.enter_context(browser(t))
        place.open(page)
        place.shown(page)
        yield page, daemon


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True)
def keyboard_on_a_chart(t):
    """a chart has the focus like a slider: arrows go from sample to sample and say the values, Escape goes back to now"""
    servers = [Counted(t.address()), Counted(t.address())]
    place = Place(t, servers)
    with on_its_page(t, place, servers) as (page, _):
        moment = "return document.getElementById('moment').textContent;"
        value = "return document.querySelector('#charts figure[data-key=sessions] svg').getAttribute('aria-valuetext');"
        t.eventually(lambda: page.js("return past.n;") > 3, "some samples")
        page.js("document.querySelector('#charts figure[data-key=sessions] svg').focus();")
        page.press("ArrowLeft")
        t.eventually(lambda: page.js(moment), "the moment is said")
        t.eventually(lambda: "open 0" in page.js(value), "and its value")
        page.press("Escape")
        t.eventually(lambda: not page.js(moment), "now again")
        check_equal(page.errors(), [], "errors in the browser")


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True)
def text_from_outside(t):
    """a filter that reactord refuses is said beside it; an event with markup in it is text"""
    servers = [Counted(t.address()), Counted(t.address())]
    place = Place(t, servers)
    with on_its_page(t, place, servers) as (page, _):
        page.js("""document.getElementById('by-client').value = '<b>';
                   document.getElementById('by-client').dispatchEvent(new Event('change'));""")
        t.eventually(lambda: "client" in page.js("return document.querySelector('#matched.bad')?.textContent || '';"),
                     "the refused filter is said")
        page.js("""events.list.push({id: 9999, time: '', at_ms: Date.now(), first_ms: Date.now(), lines: 1, kind: 'admin',
                   level: 'notice', subject: 'x', text: '<img src=x onerror=alert(1)>'}); showEvents(); drawHistory();""")
        check_equal(page.js("return document.querySelectorAll('#events img, #charts img').length;"), 0, "images")
        check("<img" in " ".join(page.js(EVENTS)), "the text")
        page.js("""document.getElementById('event-filter').value = 'nothing has this';
                   document.getElementById('event-filter').dispatchEvent(new Event('input'));""")
        check_equal(page.js(EVENTS), [], "filtered events")


# Labels of the time line, and those pairs of a label and a line, or of two labels, that are in the same place.
CROSSED = """
    const texts = [...document.querySelectorAll('#charts figure[data-key=strip] text.what')], boxes = texts.map((one) => one.getBBox());
    const lines = [...document.querySelectorAll('#charts figure[data-key=strip] line.event')].map((one) => Number(one.getAttribute('x1')));
    const meets = (a, b) => a !== b && a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height - 2 && b.y < a.y + a.height - 2;
    return [texts.map((one) => one.firstChild.textContent), texts.filter((_, n) =>
        lines.some((x) => boxes[n].x < x && x < boxes[n].x + boxes[n].width) || boxes.some((box) => meets(box, boxes[n])))
        .map((one) => one.textContent)];"""


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True)
def labels_of_events_close_to_each_other(t):
    """on the time line no label crosses another, or the line of an event, when events are within 10 s of each other"""
    with on_its_page(t, Place(t, (Counted(t.address()), Counted(t.address())))) as (page, _):
        page.screen(1280, 900)
        for place_ms in (0, 120000):
            crossed = page.js("""const now = Date.now() - arguments[0];
                events.list = [['server', 's1 is down'], ['server', 's2 is down'], ['upstream', 'all are down'], ['server', 's1 is up']]
                    .map(([kind, text], n) => ({id: 9990 + n, time: '', at_ms: now - 3000 * n, first_ms: now - 3000 * n, lines: 1,
                                                kind, level: 'warning', subject: 'x', text}));
                drawHistory();""" + CROSSED, place_ms)
            check_equal([sorted(crossed[0]), crossed[1]], [["all are down", "s1 is down", "s1 is up", "s2 is down"], []],
                        "labels, and those that cross something")


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True, each=[{"width": 320}, {"width": 1280}])
def many_servers(t, width):
    """at {width} px with 300 servers the page is not wider, shows those in trouble first, and all when asked"""
    servers = [Counted(t.address()), Counted(t.address())]
    place = Place(t, servers)
    closed = t.address()
    place.config += "".join(f"server.s{n} = {closed}\n" for n in range(298)) + CHECKS
    shown = "return document.querySelectorAll('#upstreams tbody tr').length;"
    first = "return document.querySelector('#upstreams tbody tr').cells[1].textContent;"
    with contextlib.ExitStack() as stack:
        page, _ = stack.enter_context(on_its_page(t, place, servers))
        page.screen(width, 800)
        t.eventually(lambda: page.js(first) == "down", "the first is down")
        check_equal(page.js(shown), 20, "servers")
        check(page.js("return document.documentElement.scrollWidth;") <= width, "it is too wide")
        wider = page.js("return [...document.querySelectorAll('.scroll')].map((d) => d.scrollWidth - d.clientWidth);")
        check_equal(max(wider), 0, "a table is wider than its place")
        page.js("document.querySelector('#upstreams details > button').click();")
        t.eventually(lambda: page.js(shown) == 300, "all servers")
        page.js("""document.getElementById('server-filter').value = 's297';
                   document.getElementById('server-filter').dispatchEvent(new Event('change'));""")
        t.eventually(lambda: page.js(shown) == 1, "the one with that name")
        unnamed = [role for role, name in page.named() if not name.strip()]
        check_equal(unnamed, [], "roles without a name")


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True)
def of_one_object(t):
    """the history of a listener, an upstream and a loop is shown when chosen, each with its charts"""
    servers = [Counted(t.address()), Counted(t.address())]
    place = Place(t, servers)
    choose = """document.getElementById('object').value = arguments[0];
                document.getElementById('object').dispatchEvent(new Event('change'));"""
    with on_its_page(t, place, servers) as (page, _):
        t.eventually(lambda: "listener/front" in page.js(
            "return [...document.getElementById('object').options].map((o) => o.value);"), "its objects")
        for thing, charts in (("listener/front", {"sessions", "new", "bytes", "ended"}),
                              ("upstream/back", {"sessions", "new", "bytes", "ended", "connect", "first", "failures"}),
                              ("loop/ctrl-4-1", {"busy"})):
            page.js(choose, thing)
            t.eventually(lambda charts=charts: set(page.js(LEGENDS)) == charts | {"strip"}, f"charts of {thing}")
        check_equal(page.errors(), [], "errors in the browser")


def put(place, body):
    answer = request(place.admin, "PUT", "/v1/server", body, token=TOKEN, host=place.admin)
    check_equal(answer.status, 200, f"{body}: {answer.body}")


@test(needs=NEEDS, timeout=TIMEOUT_S, plain_only=True)
def added_by_hand(t):
    """a server that was added at run time is marked, with what becomes of it; the summary counts it"""
    servers = [Counted(t.address()), Counted(t.address())]
    place = Place(t, servers)
    row = "return [...document.querySelectorAll('#upstreams tbody th')].find((th) => th.textContent.startsWith('x '))"
    with on_its_page(t, place, servers) as (page, _):
        put(place, {"server": "back/x", "line": f"{t.address()} weight=0"})
        t.eventually(lambda: page.js(f"{row}?.textContent;") == "x (by hand)", "the mark")
        check("reactorctl reset" in page.js(f"{row}.title;"), "what becomes of it")
        t.eventually(lambda: "with 1 server added or removed by hand" in page.js(
            "return document.getElementById('summary').textContent;"), "the summary")
        check_equal(page.errors(), [], "errors in the browser")
