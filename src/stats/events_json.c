/* stats/events_json: events as JSON. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "stats/events_internal.h"
#include "stats/figure_json.h"

static void events_json_seconds(struct text *out, const char *key, int64_t ns)
{
    text_printf(out, ",\"%s\":%.3f", key, (double)ns / NS_PER_S);
}

static void events_json_time(struct text *out, const struct timespec *time)
{
    char at[sizeof("2026-01-02T03:04:05") + 16];
    struct tm tm;

    gmtime_r(&time->tv_sec, &tm);
    strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%S", &tm);
    text_printf(out, ",\"time\":\"%s.%03ldZ\"", at, time->tv_nsec / (long)NS_PER_MS);
}

static void events_json_one(const struct event *e, int64_t now_ns, struct text *out)
{
    char subject[EVENTS_TEXT_BYTES];

    memcpy(subject, e->text, e->subject_bytes);
    subject[e->subject_bytes] = '\0';
    text_printf(out,
                "{\"id\":%" PRIu64 ",\"first_id\":%" PRIu64 ",\"lines\":%" PRIu64
                ",\"others\":%" PRIu64,
                e->id, e->first_id, e->lines + e->others, e->others);
    events_json_time(out, &e->time);
    events_json_seconds(out, "age_s", now_ns - e->at_ns);
    events_json_seconds(out, "first_age_s", now_ns - e->first_at_ns);
    text_printf(out, ",\"kind\":\"%s\",\"level\":\"%s\",\"subject\":", events_word(e->subject),
                log_level_name(e->level));
    figure_json_string(out, *subject ? subject : events_word(e->subject));
    text_puts(out, ",\"text\":");
    figure_json_string(out, e->text);
    text_puts(out, "}");
}

void events_json(struct events *ev, uint64_t after, unsigned max, struct text *out)
{
    unsigned n = 0;
    bool is_first = true;
    int64_t now_ns;

    lock_take(&ev->lock);
    now_ns = clock_now_ns();
    text_printf(out, "\"last\":%" PRIu64 ",\"series\":\"%s\",\"events\":[", ev->last_id,
                ev->series);
    if (after > ev->last_id)
        after = 0;
    list_for_each (node, &ev->list)
        n += LIST_ENTRY(node, struct event, link)->id > after;
    list_for_each (node, &ev->list) {
        const struct event *e = LIST_ENTRY(node, struct event, link);

        if (e->id <= after || n-- > max)
            continue;
        text_puts(out, is_first ? "" : ",");
        is_first = false;
        events_json_one(e, now_ns, out);
    }
    lock_release(&ev->lock);
    text_puts(out, "]");
}
