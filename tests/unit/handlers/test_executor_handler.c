/*
 * handlers/executor_handler: the same bytes in the same order, no more of them than there is room
 * for, and any end.
 */
#include <pthread.h>
#include <unistd.h>

#include "net/memory_account.h"
#include "service/echo.h"
#include "support/executor_runner.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define THREADS      4
#define STREAM_BYTES ((size_t)4 << 20)

static struct host host;
static struct executor *e;
static struct tasks_block block[THREADS];
static unsigned before;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    host_open(&host, &echo_ops, NULL);
    e = executor_runner_create(THREADS, 64);
    host.pipeline.frame.decoder =
        (struct frame_decoder_conf){.max_length = 70000, .length_width = 2, .fail_fast = true};
}

static void teardown(void)
{
    host_abort(&host, SESSION_DRAIN);
    UNTIL(atomic_load(&host.ended) == atomic_load(&host.adopted));
    executor_runner_end(e);
    host_close(&host);
    executor_runner_destroy(e);
    ck_assert_uint_eq(process_descriptors(), before);
}

static int begin(const char *first, const char *second)
{
    host_pipeline(&host, first, e);
    if (second)
        host_pipeline(&host, second, e);
    return host_client(&host);
}

static void block_all(void)
{
    for (int i = 0; i < THREADS; i++)
        executor_runner_block(e, &block[i]);
}

static void unblock_all(void)
{
    for (int i = 0; i < THREADS; i++)
        tasks_block_end(&block[i]);
}

struct talk {
    pthread_t thread;
    int fd;
};

static void *say(void *arg)
{
    struct talk *t = arg;

    sockets_say_pattern(t->fd, 0, STREAM_BYTES);
    sockets_end(t->fd);
    return NULL;
}

static void *converse(void *arg)
{
    struct talk *t = arg;
    pthread_t sender;

    ck_assert_int_eq(pthread_create(&sender, NULL, say, t), 0);
    sockets_hear_pattern(t->fd, 0, STREAM_BYTES);
    sockets_hear_end(t->fd);
    pthread_join(sender, NULL);
    close(t->fd);
    return NULL;
}

GROUP(executor_handler, setup, teardown);

/*
 * Eight clients on four threads and 64 places: each is refused now and then, and none loses or
 * doubles a byte.
 */
TEST(executor_handler, each_of_many_streams_keeps_its_order)
{
    struct talk talks[8];

    host_pipeline(&host, "executor", e);
    for (size_t i = 0; i < ARRAY_LEN(talks); i++) {
        talks[i].fd = host_client(&host);
        ck_assert_int_eq(pthread_create(&talks[i].thread, NULL, converse, &talks[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(talks); i++)
        pthread_join(talks[i].thread, NULL);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    ck_assert_uint_le(executor_runner_stats(e).threads, THREADS);
}

#define FRAMES 20000

static void *say_frames(void *arg)
{
    for (unsigned i = 0; i < FRAMES; i++) {
        uint8_t frame[] = {0,         4, (uint8_t)(i >> 24), (uint8_t)(i >> 16), (uint8_t)(i >> 8),
                           (uint8_t)i};

        ck_assert_int_eq(send(*(int *)arg, frame, sizeof(frame), MSG_NOSIGNAL), sizeof(frame));
    }
    sockets_end(*(int *)arg);
    return NULL;
}

/* A read holds thousands of frames, more than the strand and the executor take. */
TEST(executor_handler, frames_keep_their_order_whatever_the_rate)
{
    int client = begin("frame", "executor");
    pthread_t sender;

    ck_assert_int_eq(pthread_create(&sender, NULL, say_frames, &client), 0);
    for (unsigned i = 0; i < FRAMES; i++) {
        uint8_t f[6];

        ck_assert_int_eq(recv(client, f, sizeof(f), MSG_WAITALL), sizeof(f));
        ck_assert_uint_eq((unsigned)f[2] << 24 | f[3] << 16 | f[4] << 8 | f[5], i);
    }
    sockets_hear_end(client);
    pthread_join(sender, NULL);
    close(client);
}

TEST(executor_handler, bytes_beyond_a_slow_executor_wait_in_the_socket)
{
    int client = begin("executor", NULL);
    size_t said;

    block_all();
    said = sockets_stuff(client, 0);
    ck_assert_uint_gt(said, EXECUTOR_HANDLER_BYTES);
    sockets_hear_nothing(client);
    ck_assert_uint_le(executor_runner_stats(e).tasks_pending, 64);
    unblock_all();
    sockets_hear_pattern(client, 0, said);
    close(client);
}

struct look {
    size_t held;
    uint64_t bytes_out;
    bool stopped;
};

static void do_look(void *arg)
{
    const struct channel *ch;
    struct look *l = arg;

    *l = (struct look){0};
    if (list_empty(&host.sessions))
        return;
    ch = LIST_FIRST(&host.sessions, struct session, link)->legs[0];
    l->held = channel_held_bytes(ch);
    l->bytes_out = ch->bytes_out;
    l->stopped = channel_stopped(ch, CHANNEL_STOP_HANDLER);
}

static struct look look(void)
{
    struct look l;

    loop_runner_call(host.loop, do_look, &l);
    return l;
}

#define LONG_FRAME  10000
#define LONG_FRAMES 100

static void *say_long_frames(void *arg)
{
    static const uint8_t frame[2 + LONG_FRAME] = {LONG_FRAME >> 8, LONG_FRAME & 0xff};

    for (unsigned i = 0; i < LONG_FRAMES; i++)
        ck_assert_int_eq(send(*(int *)arg, frame, sizeof(frame), MSG_NOSIGNAL), sizeof(frame));
    return NULL;
}

/* At the bound one read is under way, and the decoder keeps the part of a frame behind it. */
TEST(executor_handler, held_bytes_never_exceed_the_bound_and_one_read)
{
    static uint8_t frame[2 + LONG_FRAME];
    pthread_t sender;
    int client;

    host.pipeline.executor.delay_ns = 5 * NS_PER_MS;
    client = begin("frame", "executor");
    ck_assert_int_eq(pthread_create(&sender, NULL, say_long_frames, &client), 0);
    for (unsigned i = 0; i < LONG_FRAMES; i++) {
        ck_assert_uint_le(look().held, EXECUTOR_HANDLER_BYTES + NETLOOP_SCRATCH_BYTES + 70000);
        ck_assert_int_eq(recv(client, frame, sizeof(frame), MSG_WAITALL), sizeof(frame));
    }
    pthread_join(sender, NULL);
    close(client);
}

#define SHORT_FRAMES 200

/* So many small messages that the strand takes a part of them, far below the bound of bytes. */
TEST(executor_handler, client_is_not_read_while_messages_are_refused)
{
    static uint8_t frames[SHORT_FRAMES][3];
    struct look l;
    int client;

    for (unsigned i = 0; i < SHORT_FRAMES; i++)
        frames[i][1] = 1;
    host.pipeline.executor.delay_ns = 20 * NS_PER_MS;
    client = begin("frame", "executor");
    block_all();
    ck_assert_int_eq(send(client, frames, sizeof(frames), 0), sizeof(frames));
    UNTIL(look().stopped);
    unblock_all();
    do {
        l = look(); /* when half have come back, none may be refused any more */
        ck_assert(l.stopped || l.bytes_out >= sizeof(frames) / 2);
    } while (l.bytes_out < sizeof(frames) / 2);
    UNTIL(!look().stopped);
    close(client);
}

TEST(executor_handler, refused_messages_are_freed_with_the_session)
{
    static const uint8_t frames[SHORT_FRAMES][3];
    static struct memory_account buffered = {.max_bytes = 1 << 30};
    int client;

    host.owner.net->buffered = &buffered;
    host.pipeline.frame.decoder.length_adjustment = 1; /* three zeros are a frame */
    client = begin("frame", "executor");
    block_all();
    ck_assert_int_eq(send(client, frames, sizeof(frames), 0), sizeof(frames));
    UNTIL(look().stopped);
    host_abort(&host, SESSION_DRAIN);
    UNTIL(atomic_load(&host.ended) == 1);
    unblock_all();
    UNTIL(atomic_load(&buffered.bytes) == 0);
    close(client);
}

TEST(executor_handler, end_of_file_is_delivered_after_all_bytes)
{
    int client = begin("executor", NULL);

    block_all();
    sockets_say(client, "hello");
    sockets_end(client);
    sockets_hear_nothing(client);
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    unblock_all();
    sockets_hear(client, "hello");
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

TEST(executor_handler, bad_frame_is_reported_after_the_frames_before_it)
{
    static const char bad[] = {0, 1, 'a', 0, 2, 'b', 'c', 0, 9};
    int client;

    host.pipeline.frame.decoder.max_length = 5;
    client = begin("frame", "executor");
    block_all();
    ck_assert_int_eq(send(client, bad, sizeof(bad), 0), sizeof(bad));
    sockets_hear_nothing(client);
    unblock_all();
    for (size_t i = 0; i < 7; i++) {
        char c;

        ck_assert_int_eq(recv(client, &c, 1, 0), 1);
        ck_assert_int_eq(c, bad[i]);
    }
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_LIMIT);
    close(client);
}

TEST(executor_handler, client_reset_during_the_work_ends_the_session_at_once)
{
    int client = begin("executor", NULL);

    block_all();
    sockets_say_pattern(client, 0, 1000);
    UNTIL(executor_runner_stats(e).tasks_pending > 0);
    sockets_reset(client);
    host_expect_end(&host, SESSION_CLIENT_RESET);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_pending, 0);
    unblock_all();
}

TEST(executor_handler, session_aborted_during_the_work_leaks_nothing)
{
    int client;

    host.pipeline.executor.delay_ns = 50 * NS_PER_MS;
    client = begin("executor", NULL);
    sockets_say(client, "x");
    UNTIL(executor_runner_stats(e).running_name);
    host_abort(&host, SESSION_SERVER_DOWN);
    host_expect_end(&host, SESSION_SERVER_DOWN);
    sockets_hear_reset(client);
    close(client);
}

/* Nothing moves for longer than a drained echo may be quiet. */
TEST(executor_handler, drained_echo_waits_for_bytes_in_the_executor)
{
    int client = begin("executor", NULL);

    block_all();
    sockets_say(client, "hello");
    UNTIL(executor_runner_stats(e).tasks_pending > 0);
    host_drain(&host);
    PAUSE_MS(1500);
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    unblock_all();
    sockets_hear(client, "hello");
    sockets_hear_end(client);
    sockets_end(client);
    host_expect_end(&host, SESSION_DRAIN);
    close(client);
}

/* In good order would look as if nothing had been lost. */
TEST(executor_handler, timeout_with_bytes_in_the_executor_resets)
{
    int client;

    host.conf.idle_timeout_ns = 2 * NS_PER_S;
    client = begin("executor", NULL);
    block_all();
    sockets_say(client, "hello");
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_IDLE);
    unblock_all();
    close(client);
}

TEST(executor_handler, slow_client_delays_no_other_client)
{
    int slow, quick;

    host.pipeline.executor.delay_ns = 100 * NS_PER_MS;
    slow = begin("frame", "executor");
    quick = host_client(&host);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(send(slow, "\0\1x", 3, 0), 3);
    for (int i = 0; i < 2; i++) {
        char frame[3];

        ck_assert_int_eq(send(quick, "\0\1y", 3, 0), 3);
        ck_assert_int_eq(recv(quick, frame, 3, MSG_WAITALL), 3);
    }
    ck_assert_uint_lt(recv(slow, (char[60]){0}, 60, MSG_PEEK), 60);
    close(slow);
    close(quick);
}

TEST(executor_handler, stopped_executor_resets_sessions_whose_bytes_it_holds)
{
    int client = begin("executor", NULL);

    block_all();
    sockets_say(client, "hello");
    UNTIL(executor_runner_stats(e).tasks_pending > 0);
    executor_stop(e, 0);
    unblock_all();
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_DRAIN);
    close(client);
}
