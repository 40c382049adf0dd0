/* service/echo: what comes goes back, all of it and nothing else, however the client behaves. */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service/echo.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define LONG_BYTES (4u << 20)

static struct host host;
static unsigned before;

static void setup(void)
{
    before = process_descriptors();
    host_open(&host, &echo_ops, NULL);
}

static void teardown(void)
{
    host_close(&host);
    ck_assert_uint_eq(process_descriptors(), before);
}

GROUP(echo, setup, teardown);

TEST(echo, bytes_are_echoed)
{
    int client = host_client(&host);

    for (int i = 0; i < 100; i++) {
        sockets_say(client, "hello");
        sockets_hear(client, "hello");
    }
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(echo, end_of_file_is_echoed_behind_the_last_byte)
{
    int client = host_client(&host);

    sockets_say(client, "all of it");
    sockets_end(client);
    sockets_hear(client, "all of it");
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

TEST(echo, silent_client_gets_only_the_end_of_file)
{
    int client = host_client(&host);

    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

static void *say_long(void *arg)
{
    int client = *(int *)arg;

    sockets_say_pattern(client, 0, LONG_BYTES);
    sockets_end(client);
    return NULL;
}

static void exchange_long(int client)
{
    pthread_t speaker;

    pthread_create(&speaker, NULL, say_long, &client);
    sockets_hear_pattern(client, 0, LONG_BYTES);
    sockets_hear_end(client);
    pthread_join(speaker, NULL);
    close(client);
}

static const enum splice_mode modes[] = {SPLICE_AUTO, SPLICE_ON, SPLICE_OFF};

TEST_EACH(echo, long_stream_is_echoed_whole_in_every_splice_mode, ARRAY_LEN(modes))
{
    host.conf.splice = modes[_i];
    exchange_long(host_client(&host));
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST_EACH(echo, long_stream_is_echoed_whole_over_a_unix_socket, ARRAY_LEN(modes))
{
    int ours, client;

    host.conf.splice = modes[_i];
    sockets_unix(&ours, &client);
    host_adopt(&host, ours);
    exchange_long(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST_EACH(echo, client_that_does_not_read_is_not_read_from, ARRAY_LEN(modes))
{
    int client;
    size_t sent;

    host.conf.splice = modes[_i];
    client = host_client(&host);
    sent = sockets_stuff(client, 0);
    ck_assert_uint_gt(sent, 0);
    ck_assert_uint_le(host_pending(&host), CHANNEL_HIGH_BYTES + NETLOOP_SCRATCH_BYTES);
    PAUSE_MS(50);
    ck_assert_uint_le(host_pending(&host), CHANNEL_HIGH_BYTES + NETLOOP_SCRATCH_BYTES);
    sockets_hear_pattern(client, 0, sent); /* and nothing was lost */
    sockets_say_pattern(client, sent, 100000);
    sockets_end(client);
    sockets_hear_pattern(client, sent, 100000);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

TEST_EACH(echo, end_of_file_behind_a_backlog_loses_nothing, ARRAY_LEN(modes))
{
    int client;
    size_t sent;

    host.conf.splice = modes[_i];
    client = host_client(&host);
    sent = sockets_stuff(client, 0);
    sockets_end(client);
    PAUSE_MS(50);
    sockets_hear_pattern(client, 0, sent);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

TEST(echo, a_reset_ends_the_session_at_once)
{
    int client = host_client(&host);

    sockets_say(client, "x");
    sockets_hear(client, "x");
    sockets_reset(client);
    host_expect_end(&host, SESSION_CLIENT_RESET);
}

TEST_EACH(echo, a_reset_in_the_middle_of_a_backlog_ends_the_session, ARRAY_LEN(modes))
{
    int client;

    host.conf.splice = modes[_i];
    client = host_client(&host);
    sockets_stuff(client, 0);
    sockets_reset(client);
    host_expect_end(&host, SESSION_CLIENT_RESET);
}

TEST(echo, client_that_closes_without_reading_is_a_reset)
{
    int client = host_client(&host);

    sockets_stuff(client, 0);
    close(client); /* with unread bytes: the kernel makes it a reset */
    host_expect_end(&host, SESSION_CLIENT_RESET);
}

TEST(echo, sessions_are_independent)
{
    int clients[50];

    for (int i = 0; i < 50; i++) {
        clients[i] = host_client(&host);
        sockets_say_pattern(clients[i], (size_t)i * 1000, 20000);
    }
    for (int i = 49; i >= 0; i--) {
        sockets_hear_pattern(clients[i], (size_t)i * 1000, 20000);
        close(clients[i]);
    }
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(echo, without_descriptors_for_a_pipe_bytes_are_copied)
{
    int client, filler;

    host.conf.splice = SPLICE_ON;
    client = host_client(&host);
    filler = dup(client);
    process_allow_descriptors(0);
    sockets_say_pattern(client, 0, 100000);
    sockets_hear_pattern(client, 0, 100000);
    process_allow_any_descriptors();
    close(filler);
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}
