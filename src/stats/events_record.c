/*
 * stats/events_record: events as text, for the process that replaces this one.
 *
 *   events 1 SERIES LAST_ID
 *   event ID FIRST_ID FIRST_NS AT_NS SECONDS.NS LINES OTHERS KIND LEVEL SUBJECT_BYTES TEXT
 *   end
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "stats/events_internal.h"

/* Room for the IDs that a replaced process gives to its own events. */
#define EVENTS_RECORD_GAP 1000000

void events_write(struct events *ev, FILE *f)
{
    lock_take(&ev->lock);
    fprintf(f, "events 1 %s %" PRIu64 "\n", ev->series, ev->last_id);
    list_for_each (node, &ev->list) {
        const struct event *e = LIST_ENTRY(node, struct event, link);

        fprintf(f, "event %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %lld.%09ld", e->id,
                e->first_id, e->first_at_ns, e->at_ns, (long long)e->time.tv_sec, e->time.tv_nsec);
        fprintf(f, " %" PRIu64 " %" PRIu64 " %s %s %u %s\n", e->lines, e->others,
                events_word(e->subject), log_level_name(e->level), e->subject_bytes, e->text);
    }
    fputs("end\n", f);
    lock_release(&ev->lock);
}

/* ---- reading ---- */

static bool events_record_subject(const char *word, enum log_subject *out)
{
    for (unsigned i = 0; i < LOG_SUBJECTS; i++)
        if (strcmp(word, events_word((enum log_subject)i)) == 0) {
            *out = (enum log_subject)i;
            return true;
        }
    return false;
}

/* Read the line of an event; false: it is wrong. */
static bool events_record_line(struct event *e, const char *line)
{
    char kind[16], level[16];
    long long seconds;
    int at = 0;
    size_t len;

    *e = (struct event){.lines = 0};
    if (sscanf(line,
               "event %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 " %lld.%9ld %" SCNu64
               " %" SCNu64 " %15s %15s %u%n",
               &e->id, &e->first_id, &e->first_at_ns, &e->at_ns, &seconds, &e->time.tv_nsec,
               &e->lines, &e->others, kind, level, &e->subject_bytes, &at) != 11 ||
        line[at] != ' ' || !events_record_subject(kind, &e->subject) ||
        !log_level_of(level, &e->level))
        return false;
    line += at + 1;
    len = strcspn(line, "\n");
    if (len >= sizeof(e->text) || e->subject_bytes > len)
        return false;
    e->time.tv_sec = (time_t)seconds;
    memcpy(e->text, line, len);
    e->text[len] = '\0';
    return e->time.tv_nsec >= 0 && e->lines > 0;
}

static const char *events_record_next(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? end + 1 : NULL;
}

/* Count the events behind the first line; -EINVAL: they are not complete, or wrong. */
static int events_record_check(const char *text, uint64_t last_id, int64_t now_ns)
{
    const char *line = events_record_next(text);
    uint64_t before = 0;
    int n = 0;

    for (; line && strncmp(line, "event ", strlen("event ")) == 0; n++) {
        struct event e;

        if (!events_record_line(&e, line) || e.id <= before || e.id > last_id ||
            e.first_id > e.id || e.at_ns > now_ns || e.first_at_ns > e.at_ns)
            return -EINVAL;
        before = e.id;
        line = events_record_next(line);
    }
    return line && strcmp(line, "end\n") == 0 && n <= EVENTS_MAX ? n : -EINVAL;
}

/* Let the events that ${ev} has follow on those of a series that ended with ${last_id}. */
static unsigned events_record_follow(struct events *ev, uint64_t last_id)
{
    uint64_t gap = last_id + EVENTS_RECORD_GAP;
    unsigned n = 0;

    list_for_each (node, &ev->list) {
        struct event *e = LIST_ENTRY(node, struct event, link);

        e->id += gap;
        e->first_id += gap;
        n++;
    }
    ev->last_id += gap;
    return n;
}

/* Put the last ${most} of ${n} events before those that ${ev} has. */
static void events_record_use(struct events *ev, const char *text, unsigned n, unsigned most)
{
    struct list *own = ev->list.next;
    const char *line = text;

    for (; n > 0; n--) {
        struct event read, *e;

        line = events_record_next(line);
        if (n > most || !events_record_line(&read, line))
            continue;
        e = events_new(ev, events_share_of(read.subject, read.level));
        read.share = e->share;
        *e = read;
        list_append(own, &e->link);
    }
}

int events_read(struct events *ev, const char *text)
{
    char series[EVENTS_SERIES_BYTES];
    uint64_t last_id;
    int n;

    _Static_assert(EVENTS_SERIES_BYTES == 48, "the width of %47s");
    if (sscanf(text, "events 1 %47s %" SCNu64 "\n", series, &last_id) != 2 ||
        last_id > INT64_MAX / 2 || series[strspn(series, "0123456789-")] != '\0')
        return -EINVAL;
    lock_take(&ev->lock);
    n = events_record_check(text, last_id, clock_now_ns());
    if (n >= 0) {
        unsigned own = events_record_follow(ev, last_id);

        memcpy(ev->series, series, sizeof(series));
        events_record_use(ev, text, (unsigned)n, EVENTS_MAX - own);
    }
    lock_release(&ev->lock);
    return n < 0 ? n : 0;
}
