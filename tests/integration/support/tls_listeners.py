"""tls_listeners: listeners with TLS, and what their clients see."""

from support import tls

NAME = "a.example"


def profile(name, certificate=None, options=""):
    """A [tls] section."""
    files = f"certificate = {certificate}\nkey = {certificate}\n" if certificate else ""
    return f"[tls {name}]\n{files}{options}\n"


def tls_echo(front, certificate, options="", tls_options=""):
    """The configuration of an echo in TLS."""
    return (profile("front", certificate, tls_options)
            + f"[listen front]\naddress = {front}\ntls = front\nservice = echo\n{options}\n")


def tls_proxy(front, back, certificate, options="", tls_options=""):
    """The configuration of a proxy with TLS towards clients."""
    return (profile("front", certificate, tls_options)
            + f"[listen front]\naddress = {front}\ntls = front\nservice = proxy\nupstream = back\n{options}\n"
            f"[upstream back]\nserver.only = {back}\n")


def certificate_of(t, key="p256"):
    """(the CA, a certificate of it)."""
    ca = tls.Authority(t)
    return ca, ca.issue(NAME, key=key)
