/* stats/events_internal: the kept events, for the files of stats/events. */
#ifndef STATS_EVENTS_INTERNAL_H
#define STATS_EVENTS_INTERNAL_H

#include <stdbool.h>
#include <time.h>

#include "base/list.h"
#include "engine/lock.h"
#include "stats/events.h"

/* Longer lines are cut. */
#define EVENTS_TEXT_BYTES 512

#define EVENTS_SERIES_BYTES 48

enum events_share {
    EVENTS_COMMANDS, /* of administrators */
    EVENTS_NOTICES,  /* of servers, listeners and so on */
    EVENTS_PROCESS,  /* reloads, upgrades, overload, signals */
    EVENTS_WARNINGS, /* and errors, of anything but commands */
    EVENTS_SHARES
};

struct event {
    struct list link; /* in `list` or `unused` */
    enum events_share share;
    uint64_t id;
    uint64_t first_id;   /* of its first line */
    int64_t first_at_ns; /* of clock_now_ns(), as `at_ns` */
    int64_t at_ns;
    struct timespec time;
    uint64_t lines;
    uint64_t others;    /* events like it that it stands for */
    bool is_folded;     /* further ones like it are added to `others` */
    uint64_t like;      /* the same for events like it; 0: none is */
    const char *format; /* NULL: of another process */
    bool is_repeated;
    enum log_subject subject;
    enum log_level level;
    unsigned subject_bytes;
    char text[EVENTS_TEXT_BYTES];
};

struct events {
    struct log_event_sink sink;
    struct lock lock;
    char series[EVENTS_SERIES_BYTES]; /* of the IDs */
    uint64_t last_id;
    struct list list, unused;
    unsigned n_of[EVENTS_SHARES];
    struct event all[EVENTS_MAX];
};

/* events_word(subject): the word for it. */
const char *events_word(enum log_subject subject);

/* events_new(ev, share): return an unused event, if need be the oldest; it is in no list. */
struct event *events_new(struct events *ev, enum events_share share);

/* events_share_of(subject, level): what an event counts as. */
enum events_share events_share_of(enum log_subject subject, enum log_level level);

#endif
