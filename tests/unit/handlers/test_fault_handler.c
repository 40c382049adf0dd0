/*
 * handlers/fault_handler: what is slow stays whole and in order, what is cut is cut at the byte,
 * and others are spared.
 */
#include <arpa/inet.h>
#include <unistd.h>

#include "base/clock.h"
#include "handlers/fault_handler.h"
#include "handlers/pipeline_template.h"
#include "service/echo.h"
#include "stats/figure.h"
#include "stats/figure_log.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static struct host host;
static struct fault_handler_conf *fault;

static void setup(void)
{
    host_open(&host, &echo_ops, NULL);
    fault = &host.pipeline.fault;
    *fault = (struct fault_handler_conf){.percent = 100};
}

static void teardown(void)
{
    host_close(&host);
}

/* A client of an echo with the faults that were set. */
static int disturbed(void)
{
    if (!host.plan)
        ck_assert_int_eq(pipeline_template_create(&host.plan, &host.pipeline, NULL, NULL), 0);
    host.service.pipeline = host.plan;
    return host_client(&host);
}

static const struct figure_object listener = {.subject = FIGURE_LISTENER, .name = "test"};

GROUP(echo, setup, teardown);

TEST(echo, without_a_configured_fault_no_handler_is_created)
{
    ck_assert(!fault_handler_wanted(fault));
    fault->percent = 1;
    fault->seed = 1;
    ck_assert(!fault_handler_wanted(fault));
    ck_assert(!pipeline_template_wanted(&host.pipeline));
    fault->jitter_ns = 1;
    ck_assert(fault_handler_wanted(fault));
    ck_assert(pipeline_template_wanted(&host.pipeline));
}

TEST(echo, each_configured_fault_creates_the_handler)
{
    static const struct fault_handler_conf least[] = {
        {.delay_ns = 1}, {.jitter_ns = 1}, {.rate = 1}, {.reset_after = 1}, {.drop = 1}};

    for (unsigned i = 0; i < ARRAY_LEN(least); i++)
        ck_assert(fault_handler_wanted(&least[i]));
}

TEST(echo, a_delay_is_never_shorter_and_keeps_the_order)
{
    int64_t began_ns;
    int client;

    fault->delay_ns = 100 * NS_PER_MS;
    client = disturbed();
    began_ns = clock_now_ns();
    sockets_say(client, "first");
    sockets_hear(client, "first");
    ck_assert_int_ge(clock_now_ns() - began_ns, fault->delay_ns);
    for (unsigned i = 0; i < 5; i++)
        sockets_say(client, "and then");
    sockets_hear(client, "and thenand thenand thenand thenand then");
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

TEST(echo, bytes_before_the_end_of_file_arrive_after_the_delay)
{
    int client;

    fault->delay_ns = 50 * NS_PER_MS;
    fault->jitter_ns = 20 * NS_PER_MS;
    client = disturbed();
    sockets_say(client, "goodbye");
    sockets_end(client);
    sockets_hear(client, "goodbye");
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

#define RATE_BYTES (1 << 20)

static void echo_pieces(int client, size_t bytes, size_t piece)
{
    for (size_t done = 0; done < bytes; done += piece) {
        sockets_say_pattern(client, done, piece);
        sockets_hear_pattern(client, done, piece);
    }
}

TEST(echo, a_rate_is_not_exceeded_and_loses_nothing)
{
    int64_t began_ns, least_ns;
    int client;

    fault->rate = RATE_BYTES;
    client = disturbed();
    began_ns = clock_now_ns();
    echo_pieces(client, RATE_BYTES / 4, RATE_BYTES / 64);
    /* All but the last slice of a piece, in each direction, waits for the one before. */
    least_ns = NS_PER_S / 4 / 2;
    ck_assert_int_ge(clock_now_ns() - began_ns, least_ns);
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

TEST(echo, with_a_rate_few_bytes_are_buffered)
{
    int client;

    fault->rate = 1000;
    client = disturbed();
    ck_assert_uint_gt(sockets_stuff(client, 0), 256 * 1024);
    ck_assert_uint_le(host_pending(&host), 2 * CHANNEL_HIGH_BYTES);
    host_abort(&host, SESSION_DRAIN);
    host_expect_end(&host, SESSION_DRAIN);
    close(client);
}

TEST(echo, buffered_bytes_are_sent_before_the_end_of_file)
{
    int client;

    fault->rate = 10000;
    client = disturbed();
    sockets_say_pattern(client, 0, 2000);
    sockets_end(client);
    sockets_hear_pattern(client, 0, 2000);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

TEST(echo, a_connection_is_cut_at_the_byte)
{
    int client;

    fault->reset_after = 25;
    client = disturbed();
    sockets_say(client, "0123456789");
    sockets_hear(client, "0123456789");
    sockets_say(client, "0123456789");
    sockets_hear_reset(client); /* 5 bytes went in, none of them came back */
    host_expect_end(&host, SESSION_LIMIT);
    close(client);
}

TEST(echo, the_client_gets_the_bytes_before_the_cut)
{
    int client;

    fault->reset_after = 13;
    client = disturbed();
    sockets_say(client, "0123456789");
    sockets_hear(client, "012");
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_LIMIT);
    close(client);
}

TEST(echo, dropped_client_is_reset)
{
    int client;

    fault->drop = 100;
    client = disturbed();
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_LIMIT);
    close(client);
}

TEST(echo, silently_dropped_client_gets_no_bytes_until_it_closes)
{
    int client;

    fault->drop = 100;
    fault->drop_as = FAULT_DROP_SILENCE;
    client = disturbed();
    sockets_say(client, "anybody?");
    sockets_hear_nothing(client);
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

TEST(echo, clients_without_a_fault_are_unaffected)
{
    struct cidr blocks[2];
    int client;

    fault->drop = 100;
    ck_assert_int_eq(cidr_parse(&blocks[0], "10.0.0.0/8"), 0);
    ck_assert_int_eq(cidr_parse(&blocks[1], "unix"), 0);
    fault->clients = (struct cidr_list){.list = blocks, .n = 2};
    client = disturbed(); /* from 127.0.0.1 */
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

#define DRAWS 200

/* How many of ${DRAWS} clients are dropped, and which, as a number that depends on it. */
static unsigned draw_drops(unsigned seed, uint64_t *which)
{
    unsigned dropped = 0;

    fault->drop = 100;
    fault->percent = 30;
    fault->seed = seed;
    *which = 0;
    for (unsigned i = 0; i < DRAWS; i++) {
        int client = disturbed();
        bool served = false;
        char byte;

        if (write(client, "?", 1) == 1)
            served = read(client, &byte, 1) == 1;
        dropped += !served;
        *which = *which * 31 + served;
        close(client);
    }
    return dropped;
}

TEST(echo, a_share_is_drawn_and_the_same_for_the_same_seed)
{
    uint64_t first, again, other;
    unsigned dropped = draw_drops(7, &first);

    /* 30 % of 200: 60, more than 6 standard deviations from these. */
    ck_assert_uint_gt(dropped, 20);
    ck_assert_uint_lt(dropped, 100);
    teardown();
    setup();
    ck_assert_uint_eq(draw_drops(7, &again), dropped);
    ck_assert_uint_eq(again, first);
    teardown();
    setup();
    draw_drops(8, &other);
    ck_assert_uint_ne(other, first);
}

TEST(echo, faults_are_counted)
{
    int client;

    log_lines_capture(LOG_LEVEL_NOTICE);
    fault->reset_after = 1;
    client = disturbed();
    sockets_say(client, "x");
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_LIMIT);
    close(client);
    pipeline_template_figures(host.plan, &listener, figure_log());
    EXPECT_LOG_LINES("stats listen test faults=1 fault_drops=0 fault_resets=1", 1);
}

TEST(echo, session_may_end_with_buffered_bytes)
{
    int client;

    fault->delay_ns = 60 * NS_PER_S;
    fault->rate = 1;
    client = disturbed();
    sockets_say(client, "never heard");
    usleep(50000);
    host_abort(&host, SESSION_DRAIN);
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_DRAIN);
    close(client);
}
