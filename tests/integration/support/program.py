"""program: real clients and servers beside the daemon, and servers of our own as processes."""

import contextlib
import os
import signal
import socket
import subprocess
import time

from support import net
from support.case import Failed

START_LIMIT_S = 30


def run(command, stdin=b"", limit_s=60, code=0):
    """Run a client to its end; returns what it printed, and fails on another exit code."""
    try:
        done = subprocess.run([str(word) for word in command], input=stdin, capture_output=True,
                              timeout=limit_s, check=False)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{command[0]} did not end within {limit_s} s; it printed "
                     f"{(late.stdout or b'')[-500:]!r}") from None
    if done.returncode != code:
        raise Failed(f"{command[0]} ended with {done.returncode}: "
                     f"{(done.stderr + done.stdout)[-1000:].decode(errors='replace')}")
    return done.stdout


@contextlib.contextmanager
def server(t, command, port=None, path=None):
    """A real server, from when it listens to the end of the block."""
    name = os.path.basename(command[0])
    with open(t.path(f"{name}.log"), "ab") as log:
        process = subprocess.Popen([str(word) for word in command], cwd=t.dir,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        end = time.monotonic() + START_LIMIT_S
        while not (net.listening(port) if port else os.path.exists(path)):
            if process.poll() is not None or time.monotonic() > end:
                with open(t.path(f"{name}.log"), encoding="utf-8", errors="replace") as log:
                    raise Failed(f"{name} does not listen: {log.read()[-1000:]}")
            time.sleep(0.02)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def forked(function, *arguments):
    """A function of ours in a process of its own, so that it has its own descriptors and CPU."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            function(*arguments)
            code = 0
        except (KeyboardInterrupt, OSError, EOFError) as error:
            print(f"{function.__name__}: {error!r}", flush=True)
        finally:
            os._exit(code)
    try:
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@contextlib.contextmanager
def redis(t):
    """redis-server; gives its address."""
    port = t.port()
    with server(t, ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                    "--appendonly", "no", "--daemonize", "no", "--dir", t.dir], port):
        yield f"127.0.0.1:{port}"


NGINX_CONF = """
daemon off;
pid {dir}/nginx.pid;
error_log {dir}/nginx-error.log;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {dir}/nginx-body;
    proxy_temp_path {dir}/nginx-proxy;
    fastcgi_temp_path {dir}/nginx-fastcgi;
    uwsgi_temp_path {dir}/nginx-uwsgi;
    scgi_temp_path {dir}/nginx-scgi;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {dir}/www;
    }}
}}
"""


@contextlib.contextmanager
def nginx(t, files):
    """nginx with these files (name: bytes); gives its address."""
    port = t.port()
    os.makedirs(t.path("www"))
    for name, content in files.items():
        t.write(f"www/{name}", content)
    for parent in (t.dir, t.dir / "www"):
        os.chmod(parent, 0o755)  # nginx's worker is another user
    config = t.write("nginx.conf", NGINX_CONF.format(dir=t.dir, port=port))
    with server(t, ["nginx", "-p", t.dir, "-e", t.path("nginx-error.log"), "-c", config], port):
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def iperf3(t):
    """iperf3's server; gives its address."""
    port = t.port()
    with server(t, ["iperf3", "-s", "-B", "127.0.0.1", "-p", port], port):
        yield f"127.0.0.1:{port}"


def _echo_forever(listener):
    """Echo as one loop, good for thousands of connections; a FIN is answered by one."""
    # A forked child may use asyncio: the parent has no loop.
    import asyncio

    async def session(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(net.CHUNK):
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
        writer.close()

    async def serve():
        kind = asyncio.start_unix_server if listener.family == socket.AF_UNIX \
            else asyncio.start_server
        async with await kind(session, sock=listener, backlog=4096) as serving:
            await serving.serve_forever()

    asyncio.run(serve())


@contextlib.contextmanager
def echo_server(t, address=None):
    """An echo server of our own in another process; gives its address."""
    address = address or t.address()
    with net.listen(address, backlog=4096) as listener:
        with forked(_echo_forever, listener):
            yield address
