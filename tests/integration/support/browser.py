"""browser: a headless Chromium, driven by chromedriver (W3C WebDriver)."""

import contextlib
import json
import urllib.error
import urllib.request

from support.case import Failed
from support.program import server

# Without a sandbox: the tests run as root, and only our own page is opened.
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking"]
CALL_LIMIT_S = 60
KEYS = {"Enter": ("\r", 13), "Escape": ("", 27), "Tab": ("", 9), "ArrowLeft": ("", 37)}


class Browser:
    def __init__(self, port, profile):
        self.base = f"http://127.0.0.1:{port}/session"
        options = {"args": ARGUMENTS + [f"--user-data-dir={profile}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.base += "/" + self._call("POST", "", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def _call(self, method, path, body=None):
        data = json.dumps(body or {}).encode() if method == "POST" else None
        headers = {"Content-Type": "application/json"}
        call = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(call, timeout=CALL_LIMIT_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise Failed(f"chromedriver: {path}: {error.read()[:500]!r}") from None

    def close(self):
        self._call("DELETE", "")

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def js(self, body, *arguments):
        """What a function with that body returns in the page."""
        return self._call("POST", "/execute/sync", {"script": body, "args": list(arguments)})

    def cdp(self, command, **parameters):
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def press(self, key):
        text, code = KEYS[key]
        for kind in ("keyDown", "keyUp"):
            self.cdp("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                     text=text if kind == "keyDown" else "")

    def screen(self, width, height, scheme="light"):
        """Be a phone or a desktop."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 640)
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def errors(self):
        """What scripts and the page's policy complained of, without refused requests."""
        return [line["message"] for line in self._call("POST", "/se/log", {"type": "browser"})
                if line["level"] == "SEVERE" and "Failed to load resource" not in line["message"]]

    def named(self):
        """The interactive elements of the accessibility tree: pairs of role and name."""
        nodes = self.cdp("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes
                if not node.get("ignored") and node.get("role", {}).get("value")
                in ("button", "textbox", "combobox", "table", "image")]


@contextlib.contextmanager
def browser(t):
    port = t.port()
    with server(t, ["chromedriver", f"--port={port}"], port):
        opened = Browser(port, t.path("profile"))
        try:
            yield opened
        finally:
            opened.close()
