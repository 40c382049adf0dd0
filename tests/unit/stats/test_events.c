/* stats/events: what is an event, which are kept, and repeated lines. */
#include <errno.h>
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
    text_puts(&text, "{");
    events_json(ev, after, EVENTS_MAX, &text);
    return text.bytes;
}

/* What events_write() writes; the caller frees it. */
static char *record(void)
{
    char *bytes;
    size_t n;
    FILE *f = open_memstream(&bytes, &n);

    ck_assert_ptr_nonnull(f);
    events_write(ev, f);
    ck_assert_int_eq(fclose(f), 0);
    return bytes;
}

/* Begin anew, as a process that replaces this one. */
static void replace(void)
{
    log_set_events(NULL);
    events_destroy(ev);
    ck_assert_int_eq(events_create(&ev), 0);
    log_set_events(events_sink(ev));
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
    ck_assert_ptr_nonnull(strstr(json(0), "\"events\":[]"));
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
    ck_assert_ptr_nonnull(strstr(json(1), "\"last\":1,"));
    ck_assert_ptr_nonnull(strstr(text.bytes, "\"events\":[]"));
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
    log_event(LOG_ADMIN, LOG_LEVEL_NOTICE, "admin: \"\x1b\xff: POST /v1/server: %s", line);
    ck_assert_ptr_nonnull(strstr(json(0), "\"subject\":\"admin: \\\"\\u001b\xef\xbf\xbd\""));
    ck_assert_ptr_nonnull(strstr(text.bytes, "xxx...\"}"));
}

static void add(unsigned n, unsigned pid)
{
    for (unsigned i = 0; i < n; i++) {
        log_event(LOG_ADMIN, LOG_LEVEL_NOTICE,
                  "admin: uid 0 pid %u: PUT /v1/server {\"server\":\"back/s%u\"}: added", pid + i,
                  i);
        log_event(LOG_SERVER, LOG_LEVEL_NOTICE, "upstream back: server s%u: added, up: %u", i, i);
    }
}

TEST(events, commands_that_come_too_fast_fold_and_count)
{
    log_event(LOG_SERVER, LOG_LEVEL_WARNING, "upstream back: server a: down");
    add(5000, 1000);
    ck_assert_uint_eq(count(json(0), "\"id\""), 1 + 2 * 11);
    ck_assert_uint_eq(count(text.bytes, "\"lines\":4990,\"others\":4989,"), 2);
    ck_assert_ptr_nonnull(strstr(text.bytes, "s4999"));
    ck_assert_ptr_nonnull(strstr(text.bytes, "server a: down"));
    ck_assert_ptr_nonnull(strstr(text.bytes, "\"first_id\":22,"));
}

TEST(events, those_that_fold_are_of_one_client_command_and_result)
{
    add(100, 1000);
    log_event(LOG_ADMIN, LOG_LEVEL_NOTICE, "admin: uid 7 pid 9: PUT /v1/server {}: added");
    log_event(LOG_ADMIN, LOG_LEVEL_NOTICE, "admin: uid 0 pid 9: PUT /v1/server {}: refused: no");
    log_event(LOG_ADMIN, LOG_LEVEL_NOTICE, "admin: uid 0 pid 9: DELETE /v1/server {}: added");
    log_event(LOG_ADMIN, LOG_LEVEL_NOTICE, "admin: uid 0 pid 9: POST /v1/reset {}: done");
    log_event(LOG_SERVER, LOG_LEVEL_NOTICE, "upstream other: server s1: added, up: %u", 1);
    log_event(LOG_SERVER, LOG_LEVEL_NOTICE, "upstream back: server s1: up");
    ck_assert_uint_eq(count(json(0), "\"id\""), 2 * 11 + 6);
}

TEST(events, warnings_fold_later_than_notices)
{
    for (int i = 0; i < 150; i++)
        log_event(LOG_SERVER, LOG_LEVEL_WARNING, "upstream back: server s%d: down", i);
    ck_assert_uint_eq(count(json(0), "\"id\""), 101);
    ck_assert_uint_eq(count(text.bytes, "\"others\":49,"), 1);
}

TEST(events, one_kind_takes_only_what_others_leave)
{
    for (int i = 0; i < 300; i++)
        log_event(LOG_OVERLOAD, LOG_LEVEL_WARNING, "overload: %d.", i);
    for (int i = 0; i < 300; i++)
        log_event(LOG_RELOAD, LOG_LEVEL_NOTICE, "reload: %d.", i);
    for (int i = 0; i < 1000; i++)
        log_event(LOG_LISTENER, LOG_LEVEL_NOTICE, "listen l%d: accepting again", i);
    ck_assert_uint_eq(count(json(0), "overload: "), 200);
    ck_assert_ptr_nonnull(strstr(text.bytes, "overload: 299."));
    ck_assert_uint_ge(count(text.bytes, "reload: "), 100);
    ck_assert_ptr_nonnull(strstr(text.bytes, "reload: 299."));
    ck_assert_uint_eq(count(text.bytes, "\"id\""), EVENTS_MAX);
}

TEST(events, a_limit_gives_the_last_ones)
{
    for (int i = 0; i < 5; i++)
        log_event(LOG_RELOAD, LOG_LEVEL_NOTICE, "reload: %d.", i);
    events_json(ev, 1, 2, &text);
    ck_assert_uint_eq(count(text.bytes, "\"id\""), 2);
    ck_assert_ptr_nonnull(strstr(text.bytes, "\"id\":5,"));
}

TEST(events, a_process_that_replaces_another_goes_on_with_its_events)
{
    char *bytes, series[64];

    log_event_again(LOG_LISTENER, LOG_LEVEL_WARNING, "listen %s: full", "front");
    log_event_again(LOG_LISTENER, LOG_LEVEL_WARNING, "listen %s: full", "front");
    add(100, 1000);
    log_event(LOG_SERVER, LOG_LEVEL_WARNING, "upstream back: server a: down: \"\x1b\" %d %%", 7);
    snprintf(series, sizeof(series), "%.20s", strstr(json(0), "\"series\":"));
    bytes = record();
    replace();
    log_event(LOG_UPGRADE, LOG_LEVEL_NOTICE, "upgrade: took over");
    ck_assert_int_eq(events_read(ev, bytes), 0);
    log_event(LOG_PROCESS, LOG_LEVEL_NOTICE, "ready");
    ck_assert_ptr_nonnull(strstr(json(0), series));
    ck_assert_uint_eq(count(text.bytes, "\"id\""), 1 + 2 * 11 + 1 + 2);
    ck_assert_uint_eq(count(text.bytes, "\"id\":2,\"first_id\":1,\"lines\":2,\"others\":0,"), 1);
    ck_assert_uint_eq(count(text.bytes, "\"others\":89,"), 2);
    ck_assert_ptr_nonnull(strstr(text.bytes, "server a: down: \\\"\\u001b\\\" 7 %"));
    ck_assert_uint_eq(count(json(203), "\"id\""), 2); /* the reader of the old one goes on */
    ck_assert_uint_eq(count(json(300), "\"id\""), 2); /* also one that it told of its drain */
    free(bytes);
}

TEST(events, the_last_500_of_both_processes_are_kept)
{
    char *bytes;

    for (int i = 0; i < EVENTS_MAX; i++)
        log_event(LOG_RELOAD, LOG_LEVEL_NOTICE, "reload: %d.", i);
    bytes = record();
    replace();
    for (int i = 0; i < 3; i++)
        log_event(LOG_PROCESS, LOG_LEVEL_NOTICE, "new %d.", i);
    ck_assert_int_eq(events_read(ev, bytes), 0);
    ck_assert_uint_eq(count(json(0), "\"id\""), EVENTS_MAX);
    ck_assert_ptr_null(strstr(text.bytes, "reload: 2."));
    ck_assert_ptr_nonnull(strstr(text.bytes, "reload: 3."));
    free(bytes);
}

TEST(events, a_truncated_or_wrong_record_changes_nothing)
{
    char *bytes, *wrong;
    size_t n;

    add(2, 1);
    bytes = record();
    replace();
    log_event(LOG_PROCESS, LOG_LEVEL_NOTICE, "ready");
    n = strlen(bytes);
    for (size_t cut = 0; cut < n; cut++) {
        wrong = strndup(bytes, cut);
        ck_assert_int_eq(events_read(ev, wrong), -EINVAL);
        free(wrong);
    }
    for (size_t at = 0; at < n; at++) {
        wrong = strdup(bytes);
        wrong[at] = '~';
        if (events_read(ev, wrong) == 0) /* in a text */
            ck_assert_uint_ge(count(json(0), "\"id\""), 2);
        free(wrong);
    }
    ck_assert_int_eq(events_read(ev, "events 2 1-1 0\nend\n"), -EINVAL);
    ck_assert_int_eq(events_read(ev, ""), -EINVAL);
    free(bytes);
}
