"""certificates: self-signed ones for the TLS rows, made once in a run."""

import functools
import subprocess

from runner.process import BenchError

KEYS = {"p256": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "rsa2048": ["rsa:2048"]}


@functools.cache
def pem(name):
    """Certificate and key of the kind ${name} of KEYS, in one text."""
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", *KEYS[name], "-nodes", "-subj",
                           "/CN=bench.example", "-days", "30", "-keyout", "-", "-out", "-"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"openssl makes no certificate: {done.stderr}")
    return done.stdout
