/* handlers/log_handler: an echo, line by line. */
#include <unistd.h>

#include "service/echo.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static struct host host;

static void setup(void)
{
    host_open(&host, &echo_ops, NULL);
    host_pipeline(&host, "log", NULL);
}

static void teardown(void)
{
    host_close(&host);
}

static void echo_once(const char *text)
{
    int client = host_client(&host);

    sockets_say(client, text);
    sockets_hear(client, text);
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    close(client);
}

GROUP(log_handler, setup, teardown);

TEST(log_handler, each_event_of_an_echo_is_a_line)
{
    log_lines_capture(LOG_LEVEL_DEBUG);
    echo_once("hello");
    EXPECT_LOG_LINES("listen test: 127.0.0.1:12345 active", 1);
    EXPECT_LOG_LINES("read: 5 bytes", 1);
    EXPECT_LOG_LINES("write: 5 bytes", 1);
    EXPECT_LOG_LINES("end of file", 1);
    EXPECT_LOG_LINES("shutdown write", 1);
    EXPECT_LOG_LINES("closed: no error", 1);
    EXPECT_LOG_LINES("ended: client fin, 5 bytes in, 5 bytes out", 1);
}

TEST(log_handler, bytes_are_shown_as_hex_and_text)
{
    log_lines_capture(LOG_LEVEL_DEBUG);
    echo_once("line 1\nabcdefghijkl"); /* 19: a row of 16 and one of 3 */
    EXPECT_LOG_LINES("  0000  6c 69 6e 65 20 31 0a 61 62 63 64 65 66 67 68 69  "
                     "|line 1.abcdefghi|",
                     2);
    EXPECT_LOG_LINES("  0010  6a 6b 6c ", 2);
    EXPECT_LOG_LINES("|jkl|", 2);
}

TEST(log_handler, only_the_beginning_of_a_long_read_is_logged)
{
    int client;

    log_lines_capture(LOG_LEVEL_DEBUG);
    client = host_client(&host);
    sockets_say_pattern(client, 0, 10000);
    sockets_hear_pattern(client, 0, 10000);
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    ck_assert_uint_ge(log_lines_with("the first of them"), 2);
    ck_assert_uint_ge(log_lines_with("  00f0  "), 2);
    ck_assert_uint_eq(log_lines_with("  0100  "), 0);
}

TEST(log_handler, a_reset_is_named)
{
    int client;

    log_lines_capture(LOG_LEVEL_DEBUG);
    client = host_client(&host);
    sockets_reset(client);
    host_expect_end(&host, SESSION_CLIENT_RESET);
    EXPECT_LOG_LINES("closed: Connection reset by peer", 1);
}

TEST(log_handler, above_debug_nothing_is_written)
{
    log_lines_capture(LOG_LEVEL_INFO);
    echo_once("hello");
    ck_assert_uint_eq(log_lines_with(""), 0);
}

TEST(log_handler, a_long_stream_passes_the_handler_unchanged)
{
    log_lines_capture(LOG_LEVEL_INFO);
    host.conf.splice = SPLICE_ON; /* which a handler rules out */
    for (int i = 0; i < 20; i++) {
        int client = host_client(&host);

        sockets_say_pattern(client, 0, 100000);
        sockets_end(client);
        sockets_hear_pattern(client, 0, 100000);
        sockets_hear_end(client);
        close(client);
    }
    host_expect_end(&host, SESSION_CLIENT_FIN);
}
