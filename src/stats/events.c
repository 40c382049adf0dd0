#include "stats/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "stats/events_internal.h"

/* A repeated line within this time, and among so many last events, is of the event before. */
#define EVENTS_AGAIN_NS   (60 * NS_PER_S)
#define EVENTS_AGAIN_BACK 16

/*
 * Events of commands and servers that come faster than this fold: after so many like each other
 * within the time, one stands for all until they pause for that time, or it has lasted.
 */
#define EVENTS_FOLD_NS       (10 * NS_PER_S)
#define EVENTS_FOLD_NOTICES  10
#define EVENTS_FOLD_WARNINGS 100
#define EVENTS_FOLD_LASTS_NS (600 * NS_PER_S)

/* If all are used, a share is what further events cannot take away. */
static const unsigned shares[EVENTS_SHARES] = {[EVENTS_COMMANDS] = 100,
                                               [EVENTS_NOTICES] = 100,
                                               [EVENTS_PROCESS] = 100,
                                               [EVENTS_WARNINGS] = 200};

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

const char *events_word(enum log_subject subject)
{
    _Static_assert(ARRAY_LEN(words) == LOG_SUBJECTS, "a subject has no word");
    return words[subject].word;
}

/* ---- what fits ---- */

enum events_share events_share_of(enum log_subject subject, enum log_level level)
{
    if (subject == LOG_ADMIN)
        return EVENTS_COMMANDS;
    if (level <= LOG_LEVEL_WARNING)
        return EVENTS_WARNINGS;
    return words[subject].parts > 0 ? EVENTS_NOTICES : EVENTS_PROCESS;
}

/* The share that has to give up its oldest event for one of ${wanted}. */
static enum events_share events_fullest(const struct events *ev, enum events_share wanted)
{
    enum events_share fullest = wanted;

    if (ev->n_of[wanted] >= shares[wanted])
        return wanted;
    for (unsigned i = 0; i < EVENTS_SHARES; i++)
        if (ev->n_of[i] > shares[i])
            fullest = (enum events_share)i;
    return fullest;
}

static void events_forget(struct events *ev, enum events_share share)
{
    list_for_each (node, &ev->list) {
        if (LIST_ENTRY(node, struct event, link)->share != share)
            continue;
        ev->n_of[share]--;
        list_remove(node);
        list_append(&ev->unused, node);
        return;
    }
}

struct event *events_new(struct events *ev, enum events_share share)
{
    struct event *e;

    if (list_empty(&ev->unused))
        events_forget(ev, events_fullest(ev, share));
    e = LIST_FIRST(&ev->unused, struct event, link);
    list_remove(&e->link);
    ev->n_of[share]++;
    *e = (struct event){.share = share};
    return e;
}

/* ---- any thread ---- */

static unsigned events_subject_bytes(const struct log_event *of)
{
    const char *end = of->text;
    unsigned parts = words[of->subject].parts;

    for (unsigned i = 0; i < parts; i++) {
        const char *next = strstr(i > 0 ? end + 2 : end, ": ");

        if (!next)
            break;
        end = next;
    }
    return (unsigned)(end - of->text);
}

/* What commands like this one have in common: who gave it, its method, path and result. */
static uint64_t events_like_command(const char *text, unsigned subject_bytes)
{
    const char *path = text + subject_bytes, *result = strstr(path, "}: ");
    uint64_t hash;

    while (subject_bytes > 0 && strchr("0123456789", text[subject_bytes - 1]))
        subject_bytes--; /* the number of a process or port */
    path += strspn(path, ": ");
    hash = hash_stable(text, subject_bytes) ^ hash_mix(hash_stable(path, strcspn(path, "{")));
    while (result && strstr(result + 1, "}: "))
        result = strstr(result + 1, "}: ");
    if (result)
        hash ^= hash_mix(~hash_stable(result + 3, strcspn(result + 3, ":")));
    return hash;
}

/* A number that events have in common of which many may come at once; 0: of other events. */
static uint64_t events_like(const struct log_event *of, unsigned subject_bytes)
{
    uint64_t hash;

    if (of->subject == LOG_ADMIN)
        return events_like_command(of->text, subject_bytes) | 1;
    if (of->subject != LOG_SERVER)
        return 0;
    hash = hash_stable(of->text, strcspn(of->text, ":")); /* of one upstream */
    return (hash ^ hash_mix((uintptr_t)of->format + (uint64_t)of->level)) | 1;
}

static struct event *events_last(const struct events *ev)
{
    return LIST_ENTRY(ev->list.prev, struct event, link);
}

static struct event *events_before(const struct events *ev, const struct event *e)
{
    return e->link.prev == &ev->list ? NULL : LIST_ENTRY(e->link.prev, struct event, link);
}

/* The event that ${of} repeats; NULL: none. */
static struct event *events_repeated(const struct events *ev, const struct log_event *of,
                                     unsigned n, int64_t now_ns)
{
    struct event *e = list_empty(&ev->list) ? NULL : events_last(ev);

    if (!of->is_repeated || n >= EVENTS_TEXT_BYTES)
        return NULL;
    for (unsigned back = 0; e && back < EVENTS_AGAIN_BACK; back++, e = events_before(ev, e))
        if (e->is_repeated && e->format == of->format && now_ns - e->at_ns < EVENTS_AGAIN_NS &&
            e->subject_bytes == n && memcmp(e->text, of->text, n) == 0)
            return e;
    return NULL;
}

/*
 * The event that stands for those like ${like}; NULL: none. ${folds}: is an event that comes now to
 * stand for those behind it?
 */
static struct event *events_folded(const struct events *ev, uint64_t like, enum log_level level,
                                   int64_t now_ns, bool *folds)
{
    unsigned n = 0, most = level <= LOG_LEVEL_WARNING ? EVENTS_FOLD_WARNINGS : EVENTS_FOLD_NOTICES;
    struct event *e = like == 0 || list_empty(&ev->list) ? NULL : events_last(ev);

    *folds = false;
    for (; e && now_ns - e->at_ns < EVENTS_FOLD_NS; e = events_before(ev, e)) {
        if (e->like != like)
            continue;
        *folds = e->is_folded || ++n >= most;
        if (e->is_folded && now_ns - e->first_at_ns < EVENTS_FOLD_LASTS_NS)
            return e;
        if (*folds)
            break;
    }
    return NULL;
}

static void events_set_text(struct event *e, const char *text, unsigned subject_bytes)
{
    size_t len = strlen(text);

    e->subject_bytes = subject_bytes < sizeof(e->text) ? subject_bytes : 0;
    if (len >= sizeof(e->text)) {
        memcpy(e->text, text, sizeof(e->text) - sizeof("..."));
        memcpy(e->text + sizeof(e->text) - sizeof("..."), "...", sizeof("..."));
    } else {
        memcpy(e->text, text, len + 1);
    }
}

/* The event for ${of}, in no list: a new one, or that which it repeats or is like. */
static struct event *events_take(struct events *ev, const struct log_event *of, unsigned n,
                                 int64_t now_ns)
{
    uint64_t like = events_like(of, n);
    struct event *e = events_repeated(ev, of, n, now_ns);
    bool folds = false;

    if (e) {
        list_remove(&e->link);
        e->lines++;
        return e;
    }
    e = events_folded(ev, like, of->level, now_ns, &folds);
    if (e) {
        list_remove(&e->link);
        e->others++;
        return e;
    }
    e = events_new(ev, events_share_of(of->subject, of->level));
    e->lines = 1;
    e->is_folded = folds;
    e->like = like;
    e->first_at_ns = now_ns;
    e->first_id = ev->last_id + 1;
    return e;
}

static void events_note(void *cookie, const struct log_event *of)
{
    struct events *ev = cookie;
    unsigned n = events_subject_bytes(of);
    int64_t now_ns;
    struct event *e;

    lock_take(&ev->lock);
    now_ns = clock_now_ns();
    e = events_take(ev, of, n, now_ns);
    e->id = ++ev->last_id;
    e->at_ns = now_ns;
    (void)clock_gettime(CLOCK_REALTIME, &e->time);
    e->format = of->format;
    e->is_repeated = of->is_repeated;
    e->subject = of->subject;
    e->level = of->level;
    events_set_text(e, of->text, n);
    list_append(&ev->list, &e->link);
    lock_release(&ev->lock);
}

/* ---- life ---- */

int events_create(struct events **out)
{
    struct events *ev = calloc(1, sizeof(*ev));

    if (!ev)
        return -ENOMEM;
    lock_init(&ev->lock);
    list_init(&ev->list);
    list_init(&ev->unused);
    for (unsigned i = 0; i < EVENTS_MAX; i++)
        list_append(&ev->unused, &ev->all[i].link);
    snprintf(ev->series, sizeof(ev->series), "%lld-%ld", (long long)time(NULL), (long)getpid());
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
