/*
 * loadgen: makes load on a TCP server, checks every byte that comes back, and prints one line of
 * JSON.
 *
 *   --connect ADDRESS:PORT  --connections N  --size BYTES  --seconds S  [--warmup S]
 *   --mode pingpong   one message of --size in flight on each connection (the default)
 *          pace       --rate messages a second in all, whether or not the server keeps up; their
 *                     latency counts from when they were due
 *          churn      N at a time: connect, one round trip, close by reset
 *          idle       one round trip on each connection, then silence: shows the server's memory
 *          stream     writes of --size as fast as they are taken, to a sink_server
 *          fetch      takes what a source_server sends as fast as it can
 *   --tls             TLS 1.3 inside; --resume: each connection but its first resumes a session
 *   --server-pid PID  read that process's CPU time over exactly the measured time, and its memory
 *
 * Any wrong byte, lost connection or late answer is an error: exit 1, no figures.
 */
#include "common/die.h"
#include "common/net.h"
#include "common/pattern.h"
#include "load/load.h"
#include "load/report.h"

#include <string.h>
#include <sys/prctl.h>

static const struct load_mode *const modes[] = {&load_pingpong, &load_pace,   &load_churn,
                                                &load_idle,     &load_stream, &load_fetch};

static const struct load_mode *mode_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(modes[i]->name, name) == 0)
            return modes[i];
    die("no such mode: %s", name);
}

int main(int argc, char **argv)
{
    static struct load load;

    options_read(&load.opts, argc, argv);
    load.mode = mode_by_name(load.opts.mode);
    if (load.mode == &load_stream && load.opts.size_bytes > PATTERN_CHUNK_BYTES)
        die("a stream's writes are of %d bytes at most", PATTERN_CHUNK_BYTES);
    if (load.opts.tls && load.opts.size_bytes > PATTERN_CHUNK_BYTES)
        die("in TLS messages are of %d bytes at most", PATTERN_CHUNK_BYTES);
    net_raise_nofile();
    pattern_init();
    prctl(PR_SET_TIMERSLACK, 1); /* ns; else pace is late by 50 us */
    load_run(&load);
    if (load.ops == 0 && load.mode != &load_idle)
        die("nothing came back in the measured time");
    diagnostics_print(&load);
    return 0;
}
