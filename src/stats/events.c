#include "stats/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "engine/lock.h"
#include "stats/figure_json.h"

/* Longer lines are cut. */
#define EVENTS_TEXT_BYTES 512

/* A repeated line within this time, and among so many last events, is of the event before. */
#define EVENTS_AGAIN_NS   (60 * NS_PER_S)
#define EVENTS_AGAIN_BACK 16

struct event {
    uint64_t id;         /* 0: none */
    int64_t first_at_ns; /* of clock_now_ns(), as `at_ns` */
    int64_t at_ns;
    struct timespec time;
    uint64_t lines;
    struct log_event of;
    unsigned subject_bytes;
    char text[EVENTS_TEXT_BYTES];
};

struct events {
    struct log_event_sink sink;
    struct lock lock;
    uint64_t last_id;
    unsigned next;
    struct event ring[EVENTS_MAX];
};

/* The word for a subject, and how many parts of a line, which end in `: `, name its object. */
static const struct events_word {
    const char *word;
    unsigned parts; /* 0: the word is the object */
} words[] = {
    [LOG_SERVER] = {"server", 2},     [LOG_UPSTREAM] = {"upstream", 1},
    [LOG_LISTENER] = {"listener", 1}, [LOG_LOOP] = {"loop", 1},
    [LOG_CERTIFICATE] = {"tls", 1},   [LOG_RELOAD] = {"reload", 0},
    [LOG_UPGRADE] = {"upgrade", 0},   [LOG_OVERLOAD] = {"overload", 0},
    [LOG_PROCESS] = {"process", 0},   [LOG_ADMIN] = {"admin", 2},
};

/* ---- any thread ---- */

static unsigned events_subject_bytes(const struct log_event *of)
{
    const char *end = of->text;
    unsigned parts = words[of->subject].parts;

    _Static_assert(ARRAY_LEN(words) == LOG_SUBJECTS, "a subject has no word");
    for (unsigned i = 0; i < parts; i++) {
        const char *next = strstr(i > 0 ? end + 2 : end, ": ");

        if (!next)
            break;
        end = next;
    }
    return (unsigned)(end - of->text);
}

static struct event *events_slot(struct events *ev, unsigned back)
{
    return &ev->ring[(ev->next + EVENTS_MAX - 1 - back) % EVENTS_MAX];
}

static bool events_is_again(const struct event *e, const struct log_event *of, unsigned n,
                            int64_t now_ns)
{
    return e->id > 0 && e->of.is_repeated && e->of.format == of->format &&
           now_ns - e->at_ns < EVENTS_AGAIN_NS && e->subject_bytes == n &&
           memcmp(e->text, of->text, n) == 0;
}

/* Move the event that ${of} repeats to the end, and return it; NULL: it repeats none. */
static struct event *events_repeat(struct events *ev, const struct log_event *of, unsigned n,
                                   int64_t now_ns)
{
    for (unsigned back = 0; of->is_repeated && n < EVENTS_TEXT_BYTES && back < EVENTS_AGAIN_BACK;
         back++) {
        struct event found;

        if (!events_is_again(events_slot(ev, back), of, n, now_ns))
            continue;
        found = *events_slot(ev, back);
        for (; back > 0; back--)
            *events_slot(ev, back) = *events_slot(ev, back - 1);
        *events_slot(ev, 0) = found;
        return events_slot(ev, 0);
    }
    return NULL;
}

static struct event *events_add(struct events *ev, int64_t now_ns)
{
    struct event *e = &ev->ring[ev->next];

    ev->next = (ev->next + 1) % EVENTS_MAX;
    e->first_at_ns = now_ns;
    e->lines = 0;
    return e;
}

static void events_note(void *cookie, const struct log_event *of)
{
    struct events *ev = cookie;
    int64_t now_ns = clock_now_ns();
    unsigned n = events_subject_bytes(of);
    size_t len = strlen(of->text);
    struct event *e;

    lock_take(&ev->lock);
    e = events_repeat(ev, of, n, now_ns);
    if (!e)
        e = events_add(ev, now_ns);
    e->id = ++ev->last_id;
    e->at_ns = now_ns;
    (void)clock_gettime(CLOCK_REALTIME, &e->time);
    e->lines++;
    e->of = *of;
    e->of.text = NULL;
    e->subject_bytes = n < sizeof(e->text) ? n : 0;
    if (len >= sizeof(e->text)) {
        memcpy(e->text, of->text, sizeof(e->text) - sizeof("..."));
        memcpy(e->text + sizeof(e->text) - sizeof("..."), "...", sizeof("..."));
    } else {
        memcpy(e->text, of->text, len + 1);
    }
    lock_release(&ev->lock);
}

/* ---- JSON ---- */

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
    text_printf(out, "{\"id\":%" PRIu64 ",\"lines\":%" PRIu64, e->id, e->lines);
    events_json_time(out, &e->time);
    events_json_seconds(out, "age_s", now_ns - e->at_ns);
    events_json_seconds(out, "first_age_s", now_ns - e->first_at_ns);
    text_printf(out, ",\"kind\":\"%s\",\"level\":\"%s\",\"subject\":", words[e->of.subject].word,
                log_level_name(e->of.level));
    figure_json_string(out, *subject ? subject : words[e->of.subject].word);
    text_puts(out, ",\"text\":");
    figure_json_string(out, e->text);
    text_puts(out, "}");
}

uint64_t events_json(struct events *ev, uint64_t after, unsigned max, struct text *out)
{
    int64_t now_ns;
    uint64_t last;
    bool is_first = true;

    text_puts(out, "[");
    lock_take(&ev->lock);
    now_ns = clock_now_ns();
    last = ev->last_id;
    if (after > last)
        after = 0;
    for (unsigned back = max < EVENTS_MAX ? max : EVENTS_MAX; back-- > 0;) {
        const struct event *e = events_slot(ev, back);

        if (e->id <= after)
            continue;
        text_puts(out, is_first ? "" : ",");
        is_first = false;
        events_json_one(e, now_ns, out);
    }
    lock_release(&ev->lock);
    text_puts(out, "]");
    return last;
}

/* ---- life ---- */

int events_create(struct events **out)
{
    struct events *ev = calloc(1, sizeof(*ev));

    if (!ev)
        return -ENOMEM;
    lock_init(&ev->lock);
    ev->sink = (struct log_event_sink){.note = events_note, .cookie = ev};
    *out = ev;
    return 0;
}

void events_destroy(struct events *ev)
{
    if (!ev)
        return;
    lock_close(&ev->lock);
    free(ev);
}

const struct log_event_sink *events_sink(struct events *ev)
{
    return &ev->sink;
}
