"""measure: one run of loadgen against one contender, and the interleaved rounds of a row."""

import json
import subprocess
from contextlib import ExitStack

from runner.contender import LOAD_CPU
from runner.process import BenchError, Process, free_port

WARMUP_S = 0.5
IMPLAUSIBLE_CPU_PERCENT = 3
GRACE_S = 90  # loadgen bounds itself; this is for the case that it does not


def _start_upstream(stack, row, build):
    """Start what is behind the proxy in ${row}; its port, 0 for none."""
    if not row.upstream:
        return 0
    port = free_port()
    upstream = stack.enter_context(
        Process([str(build / row.upstream), "127.0.0.1", str(port)], LOAD_CPU))
    upstream.wait_until_listening(port)
    return port


def _run_loadgen(row, port, server_pid, seconds, build):
    """The result of one loadgen as a dictionary."""
    command = [str(build / "loadgen"), "--connect", f"127.0.0.1:{port}",
               "--connections", str(row.connections), "--size", str(row.size_bytes),
               "--seconds", str(seconds), "--warmup", str(WARMUP_S),
               "--mode", row.mode, "--server-pid", str(server_pid), *row.flags]
    with Process(command, LOAD_CPU, stdout=subprocess.PIPE, text=True) as loadgen:
        try:
            output, _ = loadgen.child.communicate(timeout=seconds + GRACE_S)
        except subprocess.TimeoutExpired as error:
            raise BenchError("loadgen does not end") from error
        if loadgen.child.returncode != 0:
            raise BenchError(f"loadgen ended with {loadgen.child.returncode}")
    return json.loads(output)


def measure_once(row, contender, seconds, build):
    """Start ${contender} afresh, put the load of ${row} on it, and return loadgen's result."""
    with ExitStack() as stack:
        upstream_port = _start_upstream(stack, row, build)
        port = free_port()
        pid = stack.enter_context(contender.running(row.service, upstream_port, port,
                                                    row.certificate))
        result = _run_loadgen(row, port, pid, seconds, build)
    if row.mode != "idle" and result["server_cpu_percent"] < IMPLAUSIBLE_CPU_PERCENT:
        raise BenchError(f"process {pid} did no work: it cannot be the one that serves")
    return result


def measure_row(row, contenders, options, progress):
    """
    Run the rounds of ${row}: in each round every contender once, the order turned by one each time,
    so that what the machine does meanwhile falls on all alike. Returns {name: [result of each
    round]}; a contender that fails is told of and drops out of the row: it is not in there.
    """
    results = {contender.name: [] for contender in contenders}
    seconds = min(options.seconds, row.max_seconds)
    for number in range(row.rounds(options.rounds)):
        turn = number % len(contenders) if contenders else 0
        for contender in contenders[turn:] + contenders[:turn]:
            if contender.name not in results:
                continue
            progress(f"{row.key}: round {number + 1}, {contender.name}")
            try:
                results[contender.name].append(
                    measure_once(row, contender, seconds, options.build))
            except BenchError as error:
                progress(f"{row.key}: {contender.name} drops out: {error}", is_lasting=True)
                del results[contender.name]
    return results
