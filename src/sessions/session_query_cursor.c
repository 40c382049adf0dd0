/* sessions/session_query_cursor: cursors as text: SORT-BEGAN-RANK-ID, numbers in hex. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sessions/session_query.h"

static const char *const session_query_words[SESSION_QUERY_SORTS] = {[SESSION_QUERY_AGE] = "age",
                                                                     [SESSION_QUERY_IDLE] = "idle",
                                                                     [SESSION_QUERY_BYTES] =
                                                                         "bytes",
                                                                     [SESSION_QUERY_LOAD] = "load"};

int session_query_sort_of(enum session_query_sort *out, const char *word)
{
    for (unsigned i = 0; i < SESSION_QUERY_SORTS; i++)
        if (strcmp(session_query_words[i], word) == 0) {
            *out = (enum session_query_sort)i;
            return 0;
        }
    return -EINVAL;
}

const char *session_query_cursor_format(char *text, const struct session_query_cursor *c)
{
    char id[SESSION_ID_TEXT_BYTES];

    snprintf(text, SESSION_QUERY_CURSOR_BYTES, "%s-%016" PRIx64 "-%016" PRIx64 "-%s",
             session_query_words[c->sort], (uint64_t)c->began_at_ns, (uint64_t)c->rank,
             session_id_format(id, &c->id));
    return text;
}

int session_query_cursor_parse(struct session_query_cursor *out, const char *text)
{
    struct session_query_cursor c = {.began_at_ns = 0};
    char word[SESSION_QUERY_CURSOR_BYTES], again[SESSION_QUERY_CURSOR_BYTES];
    char id[SESSION_ID_TEXT_BYTES];
    uint64_t began, rank;

    if (strlen(text) >= SESSION_QUERY_CURSOR_BYTES ||
        sscanf(text, "%15[a-z]-%16" SCNx64 "-%16" SCNx64 "-%32[0-9a-f]", word, &began, &rank, id) !=
            4 ||
        session_query_sort_of(&c.sort, word) < 0 || session_id_parse(&c.id, id) < 0)
        return -EINVAL;
    c.began_at_ns = (int64_t)began;
    c.rank = (int64_t)rank;
    /* Accept only what session_query_cursor_format() writes, with a time after the boot. */
    if (c.began_at_ns <= 0 || strcmp(session_query_cursor_format(again, &c), text) != 0)
        return -EINVAL;
    *out = c;
    return 0;
}
