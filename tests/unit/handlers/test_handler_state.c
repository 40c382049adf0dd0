/* net/handler: what handlers save of a channel is continued in another one, or refused. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "handlers/frame_decoder.h"
#include "service/echo.h"
#include "service/session.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"

static struct host host;
static int client;

/* What is saved, with a copy of its bytes; `rc` is of the last call. */
static struct {
    struct handler_state states[2];
    uint8_t bytes[64];
    unsigned n;
    int rc;
} saved;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    host_open(&host, &echo_ops, NULL);
    host.pipeline.frame = (struct frame_handler_conf){
        .decoder = {.max_length = 20, .length_width = 2, .fail_fast = true}};
    client = -1;
    memset(&saved, 0, sizeof(saved));
}

static void teardown(void)
{
    if (client >= 0)
        close(client);
    host_close(&host);
}

static struct pipeline *only_pipeline(void)
{
    return &LIST_FIRST(&host.sessions, struct session, link)->legs[0]->pipeline;
}

static void save(void *unused)
{
    struct handler_state *st = &saved.states[0];

    (void)unused;
    saved.rc = pipeline_save(only_pipeline(), saved.states, 2);
    saved.n = saved.rc > 0 ? (unsigned)saved.rc : 0;
    ck_assert_uint_le(st->n, sizeof(saved.bytes));
    if (saved.n > 0 && st->n > 0)
        memcpy(saved.bytes, st->bytes, st->n);
    st->bytes = saved.bytes;
}

static void restore(void *unused)
{
    (void)unused;
    saved.rc = pipeline_restore(only_pipeline(), saved.states, saved.n);
}

/* Save the session's handlers, and end it. */
static void save_and_end(void)
{
    loop_runner_call(host.loop, save, NULL);
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    client = -1;
}

static int restored(void)
{
    client = host_client(&host);
    loop_runner_call(host.loop, restore, NULL);
    return saved.rc;
}

static void expect_refused(int rc)
{
    ck_assert_int_eq(restored(), rc);
    host_abort(&host, SESSION_ERROR);
    host_expect_end(&host, SESSION_ERROR);
    close(client);
    client = -1;
}

static void say(const char *data, size_t len)
{
    sockets_say_bytes(client, data, len);
    sockets_hear_nothing(client);
}

GROUP(handler_state, setup, teardown);

TEST(handler_state, a_part_of_a_frame_is_continued)
{
    char got[7];

    host_pipeline(&host, "frame", NULL);
    client = host_client(&host);
    say("\0\5he", 4);
    loop_runner_call(host.loop, save, NULL);
    ck_assert_int_eq(saved.rc, 1);
    ck_assert_uint_eq(saved.states[0].n, 4);
    host_abort(&host, SESSION_ERROR);
    host_expect_end(&host, SESSION_ERROR);
    close(client);
    ck_assert_int_eq(restored(), 0);
    sockets_say_bytes(client, "llo", 3);
    ck_assert_int_eq(recv(client, got, sizeof(got), MSG_WAITALL), sizeof(got));
    ck_assert_mem_eq(got, "\0\5hello", sizeof(got));
}

TEST(handler_state, bytes_that_are_no_part_of_one_frame_are_refused)
{
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {{"\0\1x", 3}, {"\0\1x\0", 4}, {"\0\25", 2}, {"\0\0", 2}, {"\xff\xff", 2}};

    host_pipeline(&host, "frame", NULL);
    client = host_client(&host);
    save_and_end();
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        saved.n = 1;
        saved.states[0].bytes = (const uint8_t *)bad[i].bytes;
        saved.states[0].n = bad[i].n;
        expect_refused(-EINVAL);
    }
}

TEST(handler_state, frames_that_are_cut_in_another_way_are_refused)
{
    host_pipeline(&host, "frame", NULL);
    client = host_client(&host);
    save_and_end();
    saved.states[0].values[0]++;
    expect_refused(-ESTALE);
}

TEST(handler_state, each_setting_changes_the_fingerprint)
{
    struct frame_decoder_conf conf = {.max_length = 20, .length_width = 2}, other = conf;
    uint64_t one = frame_decoder_fingerprint(&conf);

    other.by = FRAME_DECODER_DELIMITER;
    ck_assert(frame_decoder_fingerprint(&other) != one);
    frame_delimiter_add(&other.delimiters, (const uint8_t *)"\n", 1);
    conf = other;
    frame_delimiter_add(&conf.delimiters, (const uint8_t *)"\r", 1);
    ck_assert(frame_decoder_fingerprint(&other) != frame_decoder_fingerprint(&conf));
    conf = other;
    conf.delimiters.list[0].bytes[0] = 'x';
    ck_assert(frame_decoder_fingerprint(&other) != frame_decoder_fingerprint(&conf));
    ck_assert(frame_decoder_fingerprint(&other) == frame_decoder_fingerprint(&other));
}

TEST(handler_state, a_frame_that_is_skipped_is_finished_first)
{
    host.pipeline.frame.on_error = FRAME_HANDLER_SKIP;
    host_pipeline(&host, "frame", NULL);
    client = host_client(&host);
    say("\0\30xyz", 5);
    loop_runner_call(host.loop, save, NULL);
    ck_assert_int_eq(saved.rc, -EBUSY);
}

TEST(handler_state, other_handlers_are_refused)
{
    host_pipeline(&host, "log", NULL);
    client = host_client(&host);
    save_and_end();
    ck_assert_uint_eq(saved.n, 1);
    saved.n = 0;
    expect_refused(-ESTALE);
    saved.n = 2;
    saved.states[1] = saved.states[0];
    expect_refused(-ESTALE);
    saved.n = 1;
    saved.states[0].name = "frame";
    expect_refused(-ESTALE);
    saved.states[0].name = "log";
    saved.states[0].n = 1;
    expect_refused(-EINVAL);
}

TEST(handler_state, a_client_that_was_idle_elsewhere_is_ended_here)
{
    host.pipeline.idle = (struct idle_handler_conf){.read_ns = 60 * NS_PER_S};
    host_pipeline(&host, "idle", NULL);
    client = host_client(&host);
    save_and_end();
    saved.states[0].values[0] = 1; /* read */
    ck_assert_int_eq(restored(), 0);
    host_expect_end(&host, SESSION_IDLE);
}

TEST(handler_state, instants_that_were_not_yet_are_refused)
{
    host.pipeline.idle = (struct idle_handler_conf){.read_ns = 60 * NS_PER_S};
    host_pipeline(&host, "idle", NULL);
    client = host_client(&host);
    save_and_end();
    saved.states[0].values[1] = clock_now_ns() + 3600 * NS_PER_S;
    expect_refused(-EINVAL);
    saved.states[0].values[1] = -1;
    expect_refused(-EINVAL);
}

TEST(handler_state, a_handler_that_cannot_be_saved_keeps_the_channel)
{
    host.pipeline.fault = (struct fault_handler_conf){.delay_ns = 1, .percent = 100};
    host_pipeline(&host, "log", NULL);
    client = host_client(&host);
    loop_runner_call(host.loop, save, NULL);
    ck_assert_int_eq(saved.rc, -ENOTSUP);
}
