/*
 * Fuzz what requests of the admin interface say of sessions: cursors of pages, IDs, and conditions.
 * What is refused changes nothing, and what is taken is written as it was, or taken again as the
 * same.
 *
 * The first byte says what the rest is; conditions are lines of `key=value`.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "sessions/session_filter.h"
#include "sessions/session_query.h"
#include "stats/session_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any byte that no parser writes everywhere. */
#define UNTOUCHED 0x5e

static void try_cursor(const char *text)
{
    struct session_query_cursor c, before;
    char again[SESSION_QUERY_CURSOR_BYTES];

    memset(&before, UNTOUCHED, sizeof(before));
    c = before;
    if (session_query_cursor_parse(&c, text) < 0) {
        MUST(memcmp(&c, &before, sizeof(c)) == 0);
        return;
    }
    MUST(c.sort < SESSION_QUERY_SORTS && c.began_at_ns > 0);
    MUST(strcmp(session_query_cursor_format(again, &c), text) == 0);
}

/* Any cursor is written so that it is read back as the same. */
static void try_cursor_of(const uint8_t *data, size_t size)
{
    struct session_query_cursor c, same;
    char text[SESSION_QUERY_CURSOR_BYTES];
    uint64_t words[4] = {0};

    memcpy(words, data, size < sizeof(words) ? size : sizeof(words));
    c = (struct session_query_cursor){.sort = words[0] % SESSION_QUERY_SORTS,
                                      .began_at_ns = (int64_t)(words[0] >> 1),
                                      .rank = (int64_t)words[1],
                                      .id = {words[2], words[3]}};
    session_query_cursor_format(text, &c);
    if (c.began_at_ns == 0)
        return;
    MUST(session_query_cursor_parse(&same, text) == 0);
    MUST(same.sort == c.sort && same.began_at_ns == c.began_at_ns && same.rank == c.rank);
    MUST(same.id.high == c.id.high && same.id.low == c.id.low);
}

static void try_id(const char *text)
{
    struct session_id id = {UNTOUCHED, UNTOUCHED};
    char again[SESSION_ID_TEXT_BYTES];
    enum session_query_sort sort;

    if (session_id_parse(&id, text) == 0)
        MUST(strcmp(session_id_format(again, &id), text) == 0);
    else
        MUST(id.high == UNTOUCHED && id.low == UNTOUCHED);
    if (session_query_sort_of(&sort, text) == 0)
        MUST(sort < SESSION_QUERY_SORTS);
}

static void check_filter(const struct session_filter *f)
{
    MUST(memchr(f->listener, '\0', sizeof(f->listener)));
    MUST(memchr(f->upstream, '\0', sizeof(f->upstream)));
    MUST(memchr(f->server, '\0', sizeof(f->server)));
    MUST(memchr(f->loop, '\0', sizeof(f->loop)));
    MUST(f->min_age_ns >= 0 && f->min_idle_ns >= 0 && f->min_bytes <= INT64_MAX);
    MUST(f->server[0] == '\0' || f->upstream[0] != '\0');
}

static void try_filter(char *text)
{
    struct session_filter f, same;
    char *rest;

    memset(&f, 0, sizeof(f));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, '=');

        if (!value)
            continue;
        *value++ = '\0';
        if (session_filter_set(&f, line, value) != NULL)
            return; /* the request is refused */
        check_filter(&f);
        same = f;
        MUST(session_filter_set(&same, line, value) == NULL);
        MUST(memcmp(&same, &f, sizeof(f)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size == 0)
        return 0;
    text = strndup((const char *)data + 1, size - 1);
    MUST(text != NULL);
    switch (data[0] % 4) {
    case 0: try_cursor(text); break;
    case 1: try_cursor_of(data + 1, size - 1); break;
    case 2: try_id(text); break;
    case 3: try_filter(text); break;
    }
    free(text);
    return 0;
}
