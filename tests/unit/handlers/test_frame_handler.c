/* handlers/frame_handler: an echo of whole frames, and what becomes of the others. */
#include <string.h>
#include <unistd.h>

#include "handlers/pipeline_template.h"
#include "service/echo.h"
#include "service/session_internal.h"
#include "stats/figure.h"
#include "stats/figure_log.h"
#include "support/executor_runner.h"
#include "support/fault.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static struct host host;
static int client;
static unsigned before;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    host_open(&host, &echo_ops, NULL);
    host.pipeline.frame = (struct frame_handler_conf){
        .decoder = {.max_length = 1000, .length_width = 2, .fail_fast = true}};
    client = -1;
}

static void teardown(void)
{
    if (client >= 0)
        close(client);
    host_close(&host);
    ck_assert_uint_eq(process_descriptors(), before);
}

static void begin(enum frame_handler_on_error on_error)
{
    host.pipeline.frame.on_error = on_error;
    host_pipeline(&host, "frame", NULL);
    client = host_client(&host);
}

static void hear(const char *data, size_t len)
{
    char got[1024];

    ck_assert_int_eq(recv(client, got, len, MSG_WAITALL), (ssize_t)len);
    ck_assert_mem_eq(got, data, len);
}

#define SAY(text)  sockets_say_bytes(client, (text), sizeof(text) - 1)
#define HEAR(text) hear((text), sizeof(text) - 1)

static const struct figure_object listener = {.subject = FIGURE_LISTENER, .name = "test"};

GROUP(frame_handler, setup, teardown);

TEST(frame_handler, frame_is_passed_on_with_its_last_byte)
{
    begin(FRAME_HANDLER_CLOSE);
    SAY("\0\5hel");
    sockets_hear_nothing(client);
    SAY("lo\0\1x\0");
    HEAR("\0\5hello\0\1x");
    SAY("\2");
    sockets_hear_nothing(client);
    SAY("yz");
    HEAR("\0\2yz");
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    ck_assert_uint_eq(log_lines_with("frame"), 0);
}

TEST(frame_handler, small_frames_of_one_read_are_sent_together)
{
    char frames[3 * 300];
    unsigned sends;

    for (int i = 0; i < 300; i++)
        memcpy(frames + 3 * i, (char[]){0, 1, (char)i}, 3);
    begin(FRAME_HANDLER_CLOSE);
    SAY("\0\1x");
    HEAR("\0\1x");
    sends = fault_calls(FAULT_SEND);
    sockets_say_bytes(client, frames, sizeof(frames));
    hear(frames, sizeof(frames));
    ck_assert_uint_le(fault_calls(FAULT_SEND) - sends, 10); /* the test's own is one of them */
}

TEST(frame_handler, end_of_file_in_a_read_of_small_frames_follows_them)
{
    begin(FRAME_HANDLER_CLOSE);
    SAY("\0\1a\0\1b\0\1c");
    sockets_end(client);
    HEAR("\0\1a\0\1b\0\1c");
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(frame_handler, an_empty_frame_is_no_read_and_no_end)
{
    host.pipeline.frame.decoder.strip = 2;
    begin(FRAME_HANDLER_CLOSE);
    SAY("\0\0\0\1a\0\0\0\0\0\2bc");
    HEAR("abc");
    sockets_end(client);
    sockets_hear_end(client);
}

static void set_lines(void)
{
    host.pipeline.frame.decoder.by = FRAME_DECODER_DELIMITER;
    host.pipeline.frame.decoder.max_length = 8;
    frame_delimiter_add(&host.pipeline.frame.decoder.delimiters, (const uint8_t *)"\n", 1);
}

static void set_text_lengths(void)
{
    host.pipeline.frame.decoder.by = FRAME_DECODER_TEXT_LENGTH;
    host.pipeline.frame.decoder.length_end = ' ';
}

static void set_length_adjustment(void)
{
    host.pipeline.frame.decoder.length_adjustment = -3;
}

#define FRAMES(text) text, sizeof(text) - 1
#define TOO_LONG \
    "listen test: client 127.0.0.1:12345: a frame is longer than frame_max_length; the "
#define CUT_OFF "the client has ended within a frame"

/* What is said, the first bytes of which are whole frames; the client may then end. */
static const struct {
    void (*set)(void);
    const char *bytes;
    size_t len, whole;
    bool ends;
    enum session_reason reason;
    const char *line;
} bad_frames[] = {
    {NULL, FRAMES("\0\2ab\377\377"), 4, false, SESSION_LIMIT, TOO_LONG "connection is reset"},
    {set_lines, FRAMES("ab\n12345678"), 3, false, SESSION_LIMIT, TOO_LONG "connection is reset"},
    {set_length_adjustment, FRAMES("\0\3\0\2"), 2, false, SESSION_ERROR,
     "a frame is shorter than its header"},
    {set_text_lengths, FRAMES("5 hello2x"), 7, false, SESSION_ERROR,
     "the length of a frame is not a number; the connection"},
    {NULL, FRAMES("\0\1a\0\5hel"), 3, true, SESSION_ERROR, CUT_OFF},
    {set_lines, FRAMES("ab\ncd"), 3, true, SESSION_ERROR, CUT_OFF},
    {set_text_lengths, FRAMES("5 hello12"), 7, true, SESSION_ERROR, CUT_OFF},
};

TEST_EACH(frame_handler, frame_too_long_invalid_or_truncated_resets_after_the_frames_before_it,
          ARRAY_LEN(bad_frames))
{
    if (bad_frames[_i].set)
        bad_frames[_i].set();
    begin(FRAME_HANDLER_CLOSE);
    sockets_say_bytes(client, bad_frames[_i].bytes, bad_frames[_i].len);
    hear(bad_frames[_i].bytes, bad_frames[_i].whole);
    if (bad_frames[_i].ends)
        sockets_end(client);
    sockets_hear_reset(client);
    host_expect_end(&host, bad_frames[_i].reason);
    EXPECT_LOG_LINES(bad_frames[_i].line, 1);
}

TEST(frame_handler, without_fail_fast_a_long_frame_resets_with_its_last_byte)
{
    static const char frame[1003] = "\3\351"; /* 1001 behind the field */

    host.pipeline.frame.decoder.fail_fast = false;
    begin(FRAME_HANDLER_CLOSE);
    sockets_say_bytes(client, frame, sizeof(frame) - 1);
    SAY("");
    sockets_hear_nothing(client);
    SAY("x");
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_LIMIT);
}

TEST(frame_handler, only_the_skipped_frame_is_left_out)
{
    static const char frame[1003] = "\3\351";

    begin(FRAME_HANDLER_SKIP);
    SAY("\0\1a");
    sockets_say_bytes(client, frame, sizeof(frame));
    SAY("\0\1b");
    HEAR("\0\1a\0\1b");
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    EXPECT_LOG_LINES("frame_max_length; the frame is skipped", 1);
    pipeline_template_figures(host.plan, &listener, figure_log());
    EXPECT_LOG_LINES("stats frame test too_long=1 corrupt=0 cut_off=0", 1);
}

TEST(frame_handler, an_end_within_a_frame_that_is_skipped_is_an_end)
{
    begin(FRAME_HANDLER_SKIP);
    SAY("\0\1a\0\5hel");
    sockets_end(client);
    HEAR("\0\1a");
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    pipeline_template_figures(host.plan, &listener, figure_log());
    EXPECT_LOG_LINES("too_long=0 corrupt=0 cut_off=1", 1);
}

TEST(frame_handler, line_is_passed_on_with_its_delimiter)
{
    set_lines();
    begin(FRAME_HANDLER_CLOSE);
    SAY("hel");
    sockets_hear_nothing(client);
    SAY("lo\nab\n\ncd");
    HEAR("hello\nab\n\n");
    SAY("\n");
    HEAR("cd\n");
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(frame_handler, a_line_that_is_too_long_is_skipped_to_its_delimiter)
{
    set_lines();
    begin(FRAME_HANDLER_SKIP);
    SAY("ab\n123456789");
    HEAR("ab\n");
    SAY("0123\ncd\n");
    HEAR("cd\n");
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    pipeline_template_figures(host.plan, &listener, figure_log());
    EXPECT_LOG_LINES("too_long=1 corrupt=0 cut_off=0", 1);
}

TEST(frame_handler, a_last_line_without_its_delimiter_that_is_skipped_is_an_end)
{
    set_lines();
    begin(FRAME_HANDLER_SKIP);
    SAY("ab\ncd");
    HEAR("ab\n");
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    pipeline_template_figures(host.plan, &listener, figure_log());
    EXPECT_LOG_LINES("too_long=0 corrupt=0 cut_off=1", 1);
}

TEST(frame_handler, log_lines_about_bad_frames_are_limited)
{
    host.pipeline.frame.decoder.max_length = 3;
    begin(FRAME_HANDLER_SKIP);
    for (int i = 0; i < 100; i++)
        SAY("\0\2ab");
    SAY("\0\1z");
    HEAR("\0\1z");
    ck_assert_uint_le(log_lines_with("the frame is skipped"), 10);
    pipeline_template_figures(host.plan, &listener, figure_log());
    EXPECT_LOG_LINES("too_long=100", 1);
}

TEST(frame_handler, client_reset_within_a_frame_leaks_no_memory)
{
    begin(FRAME_HANDLER_CLOSE);
    SAY("\0\100hel");
    sockets_hear_nothing(client);
    sockets_reset(client);
    client = -1;
    host_expect_end(&host, SESSION_CLIENT_RESET);
    pipeline_template_figures(host.plan, &listener, figure_log());
    EXPECT_LOG_LINES("cut_off=1", 1);
}

/* ---- a timeout ---- */

static void do_held(void *arg)
{
    *(size_t *)arg = session_held_bytes(LIST_FIRST(&host.sessions, struct session, link));
}

static size_t held(void)
{
    size_t bytes;

    loop_runner_call(host.loop, do_held, &bytes);
    return bytes;
}

static void time_out(void *arg)
{
    (void)arg;
    session_time_out(LIST_FIRST(&host.sessions, struct session, link), SESSION_IDLE, 0);
}

static void expect_cut_off(const char *counted)
{
    loop_runner_call(host.loop, time_out, NULL);
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_IDLE);
    pipeline_template_figures(host.plan, &listener, figure_log());
    EXPECT_LOG_LINES(counted, 1);
}

static const enum frame_handler_on_error either[] = {FRAME_HANDLER_CLOSE, FRAME_HANDLER_SKIP};

TEST_EACH(frame_handler, a_timeout_within_a_frame_resets, ARRAY_LEN(either))
{
    begin(either[_i]);
    SAY("\0\1a\0\5hel");
    HEAR("\0\1a");
    UNTIL(held() > 0);
    expect_cut_off("too_long=0 corrupt=0 cut_off=1");
}

TEST(frame_handler, a_timeout_between_frames_is_an_end)
{
    begin(FRAME_HANDLER_CLOSE);
    SAY("\0\5hel");
    UNTIL(held() > 0);
    SAY("lo");
    HEAR("\0\5hello");
    loop_runner_call(host.loop, time_out, NULL);
    sockets_hear_end(client);
    sockets_end(client);
    host_expect_end(&host, SESSION_IDLE);
    pipeline_template_figures(host.plan, &listener, figure_log());
    EXPECT_LOG_LINES("cut_off=0", 1);
}

/* Each of two handlers may be the one that still holds bytes. */
TEST(frame_handler, a_timeout_while_another_handler_holds_bytes_resets)
{
    struct executor *executor = executor_runner_create(1, 64);
    struct tasks_block block;

    host_pipeline(&host, "frame", NULL);
    host_pipeline(&host, "executor", executor);
    client = host_client(&host);
    executor_runner_block(executor, &block);
    SAY("\0\5hel");
    UNTIL(held() > 0);
    SAY("lo");                           /* the frame goes on */
    UNTIL(held() > sizeof("\0\5hello")); /* more than the frame: a message of the executor */
    expect_cut_off("cut_off=0");
    tasks_block_end(&block);
    executor_runner_end(executor);
    executor_runner_destroy(executor);
}

TEST(frame_handler, a_timeout_resets_after_another_handler_held_bytes)
{
    struct executor *executor = executor_runner_create(1, 64);

    host_pipeline(&host, "executor", executor);
    host_pipeline(&host, "frame", executor);
    client = host_client(&host);
    SAY("\0\1a\0\5hel");
    HEAR("\0\1a");
    UNTIL(held() > 0);
    expect_cut_off("cut_off=1");
    executor_runner_end(executor);
    executor_runner_destroy(executor);
}
