/* stats/events: what is an event, which are kept, and repeated lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "stats/events.h"
#include "support/log_lines.h"
#include "support/suite.h"

static struct events *ev;
static struct text text;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_ERROR);
    ck_assert_int_eq(events_create(&ev), 0);
    log_set_events(events_sink(ev));
}

static void teardown(void)
{
    log_set_events(NULL);
    events_destroy(ev);
    text_free(&text);
}

/* The events behind ${after} as JSON. */
static const char *json(uint64_t after)
{
    text_free(&text);
    (void)events_json(ev, after, EVENTS_MAX, &text);
    return text.bytes;
}

static unsigned count(const char *all, const char *word)
{
    unsigned n = 0;

    for (const char *p = all; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

GROUP(events, setup, teardown);

TEST(events, a_line_below_the_log_level_is_an_event)
{
    log_event(LOG_SERVER, LOG_LEVEL_NOTICE, "upstream %s: server %s: up: as a test wants", "back",
              "a");
    ck_assert_ptr_nonnull(strstr(json(0), "\"kind\":\"server\",\"level\":\"notice\","
                                          "\"subject\":\"upstream back: server a\","
                                          "\"text\":\"upstream back: server a: up: as a test"));
}

TEST(events, a_line_that_is_no_event_is_not_kept)
{
    log_error("this is only a line");
    ck_assert_str_eq(json(0), "[]");
}

TEST(events, the_last_500_are_kept)
{
    for (int i = 0; i < EVENTS_MAX + 7; i++)
        log_event(LOG_RELOAD, LOG_LEVEL_NOTICE, "reload: %d.", i);
    ck_assert_uint_eq(count(json(0), "\"id\""), EVENTS_MAX);
    ck_assert_ptr_null(strstr(text.bytes, "reload: 6."));
    ck_assert_ptr_nonnull(strstr(text.bytes, "reload: 7."));
    ck_assert_uint_eq(count(json(EVENTS_MAX + 5), "\"id\""), 2);
}

TEST(events, an_id_that_was_never_given_asks_for_all)
{
    log_event(LOG_PROCESS, LOG_LEVEL_NOTICE, "ready");
    ck_assert_uint_eq(count(json(99), "\"id\":1,"), 1);
    ck_assert_str_eq(json(1), "[]");
}

TEST(events, repeated_lines_of_a_subject_are_one_event_with_a_new_id)
{
    for (int i = 0; i < 5; i++) {
        log_event_again(LOG_LISTENER, LOG_LEVEL_WARNING, "listen %s: full, the %dth time", "front",
                        i);
        log_event_again(LOG_LISTENER, LOG_LEVEL_WARNING, "listen %s: full, the %dth time", "other",
                        i);
    }
    ck_assert_uint_eq(count(json(0), "\"id\""), 2);
    ck_assert_uint_eq(count(text.bytes, "\"lines\":5,"), 2);
    ck_assert_ptr_nonnull(strstr(text.bytes, "\"id\":10,"));
    ck_assert_ptr_nonnull(strstr(text.bytes, "the 4th time"));
}

TEST(events, a_server_that_flaps_has_an_event_each_time)
{
    for (int i = 0; i < 5; i++) {
        log_event(LOG_SERVER, LOG_LEVEL_WARNING, "upstream back: server a: down");
        log_event(LOG_SERVER, LOG_LEVEL_NOTICE, "upstream back: server a: up");
    }
    ck_assert_uint_eq(count(json(0), "\"lines\":1,"), 10);
}

TEST(events, a_long_line_is_cut_and_bytes_from_outside_are_escaped)
{
    char line[800];

    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\0';
    log_event(LOG_ADMIN, LOG_LEVEL_NOTICE, "admin: \"\x1b\xff: /v1/server: %s", line);
    ck_assert_ptr_nonnull(strstr(json(0), "\"subject\":\"admin: \\\"\\u001b\xef\xbf\xbd\""));
    ck_assert_ptr_nonnull(strstr(text.bytes, "xxx...\"}"));
}
