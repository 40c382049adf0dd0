"""libssl: a TLS client on the library itself, for what Python's ssl module does not do: KeyUpdate and renegotiation."""

import ctypes
import functools

from support import net

TLS_1_2 = 0x0303
SET_MAX_VERSION = 124  # SSL_CTRL_SET_MAX_PROTO_VERSION
WANT_READ = 2  # SSL_get_error()


class TlsError(Exception):
    """The library says no, or the connection is over."""


@functools.cache
def _library():
    ssl, crypto = ctypes.CDLL("libssl.so.3"), ctypes.CDLL("libcrypto.so.3")
    for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
        getattr(ssl, name).restype = ctypes.c_void_p
    for name in ("BIO_new", "BIO_s_mem"):
        getattr(crypto, name).restype = ctypes.c_void_p
    return ssl, crypto


class Client:
    """A client without verification over a socket."""

    def __init__(self, s, is_1_2=False):
        self.socket = s
        self.ssl, self.crypto = _library()
        context = ctypes.c_void_p(self.ssl.SSL_CTX_new(ctypes.c_void_p(self.ssl.TLS_client_method())))
        if is_1_2:
            self.ssl.SSL_CTX_ctrl(context, SET_MAX_VERSION, ctypes.c_long(TLS_1_2), None)
        self.tls = ctypes.c_void_p(self.ssl.SSL_new(context))
        memory = ctypes.c_void_p(self.crypto.BIO_s_mem())
        self.incoming, self.outgoing = (ctypes.c_void_p(self.crypto.BIO_new(memory)) for _ in range(2))
        self.ssl.SSL_set_bio(self.tls, self.incoming, self.outgoing)
        self.ssl.SSL_set_connect_state(self.tls)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def handshake(self):
        """The first handshake, or one that renegotiate() asked for."""
        self._until_done(lambda: self.ssl.SSL_do_handshake(self.tls))
        return self

    def key_update(self, wants_answer):
        """Put a KeyUpdate in the outgoing bytes."""
        self.ssl.SSL_key_update(self.tls, ctypes.c_int(1 if wants_answer else 0))
        if self.ssl.SSL_do_handshake(self.tls) != 1:
            raise TlsError("no KeyUpdate")

    def renegotiate(self):
        self.ssl.SSL_renegotiate(self.tls)
        return self.handshake()

    def write(self, data):
        """Put a record with these bytes in the outgoing ones."""
        self._until_done(lambda: self.ssl.SSL_write(self.tls, data, len(data)), send=False)

    def read(self, count):
        """Exactly so many bytes."""
        got, space = b"", ctypes.create_string_buffer(count)
        while len(got) < count:
            n = self._until_done(lambda: self.ssl.SSL_read(self.tls, space, count - len(got)))
            got += space.raw[:n]
        return got

    def take(self):
        """The outgoing bytes."""
        space = ctypes.create_string_buffer(net.CHUNK)
        data = b""
        while (n := self.crypto.BIO_read(self.outgoing, space, net.CHUNK)) > 0:
            data += space.raw[:n]
        return data

    def flush(self):
        data = self.take()
        if data:
            self.socket.sendall(data)

    def _until_done(self, function, send=True):
        while True:
            self.crypto.ERR_clear_error()
            result = function()
            if send:
                self.flush()
            if result > 0:
                return result
            error = self.ssl.SSL_get_error(self.tls, result)
            if error != WANT_READ:
                raise TlsError(f"the library's error {error}")
            data = self.socket.recv(net.CHUNK)
            if not data:
                raise TlsError("end of file")
            self.crypto.BIO_write(self.incoming, data, len(data))
