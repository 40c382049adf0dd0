#include "support/spliced.h"

#include <check.h>
#include <pthread.h>

#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/until.h"

struct spliced spliced;

#define LONG_BYTES (6u << 20)

static unsigned before;

/* What a relay does. */
static void copy(struct probe *p)
{
    if (channel_write(&spliced.to.channel, buffer_front(&p->read), buffer_bytes(&p->read)) == 0 &&
        !channel_writable(&spliced.to.channel))
        channel_stop_reading(&p->channel, CHANNEL_STOP_RECEIVER);
    buffer_clear(&p->read);
}

static void pass_eof(struct probe *p)
{
    (void)p;
    channel_shutdown_write(&spliced.to.channel);
}

void spliced_go_on(struct probe *p)
{
    (void)p;
    channel_resume_reading(&spliced.from.channel, CHANNEL_STOP_RECEIVER);
}

void spliced_open_pair(void (*sockets)(int *ours, int *theirs))
{
    probe_init(&spliced.from, spliced.net, sockets);
    probe_init(&spliced.to, spliced.net, sockets);
    spliced.from.on_read = copy;
    spliced.from.on_eof = pass_eof;
    spliced.to.on_writable = spliced_go_on;
}

void spliced_start(enum splice_mode mode)
{
    probe_splice(&spliced.from, &spliced.to, mode);
    probe_start(&spliced.to);
    probe_start(&spliced.from);
}

void spliced_close_pair(void)
{
    probe_close(&spliced.from);
    probe_close(&spliced.to);
}

void spliced_setup(void)
{
    before = process_descriptors();
    spliced.loop = loop_runner_create();
    spliced.net = probe_net(spliced.loop);
    spliced_open_pair(sockets_tcp);
}

void spliced_teardown(void)
{
    spliced_close_pair();
    loop_runner_stop(spliced.loop);
    netloop_destroy(spliced.net);
    loop_destroy(spliced.loop);
    ck_assert_uint_eq(process_descriptors(), before);
}

unsigned spliced_now(void)
{
    return fault_calls(FAULT_SPLICE);
}

void spliced_pass(size_t at, size_t len)
{
    sockets_say_pattern(spliced.from.peer, at, len);
    sockets_hear_pattern(spliced.to.peer, at, len);
}

/* ---- nothing is lost ---- */

static void *say_long(void *arg)
{
    sockets_say_pattern(spliced.from.peer, 0, LONG_BYTES);
    sockets_end(spliced.from.peer);
    return arg;
}

void spliced_pass_long(void)
{
    pthread_t speaker;

    pthread_create(&speaker, NULL, say_long, NULL);
    PAUSE_MS(100); /* until everything is full */
    sockets_hear_pattern(spliced.to.peer, 0, LONG_BYTES);
    sockets_hear_end(spliced.to.peer);
    pthread_join(speaker, NULL);
}
