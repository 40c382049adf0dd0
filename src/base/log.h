/*
 * base/log: log lines with a level, sent to one or two sinks.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

/* syslog's order, most severe first. */
enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_NOTICE,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG
};

/* Longer lines are truncated and end in "...". */
#define LOG_LINE_BYTES 1024

/*
 * A destination of log lines. Several threads may call write() at once; write() must not log.
 * ${text} contains no level, time or newline.
 */
struct log_sink {
    void (*write)(void *cookie, enum log_level level, const char *text);
    void *cookie;
};

/* What a line is about, if it is an event: the last of these are kept (stats/events). */
enum log_subject {
    LOG_SERVER,      /* `upstream NAME: server NAME: ...` */
    LOG_UPSTREAM,    /* `upstream NAME: ...` */
    LOG_LISTENER,    /* `listen NAME: ...` */
    LOG_LOOP,        /* `loop NAME: ...` */
    LOG_CERTIFICATE, /* `tls NAME: ...` */
    LOG_RELOAD,
    LOG_UPGRADE,
    LOG_OVERLOAD,
    LOG_PROCESS,
    LOG_ADMIN, /* `admin: CLIENT: ...` */
    LOG_SUBJECTS
};

struct log_event {
    enum log_subject subject;
    enum log_level level;
    bool is_repeated;   /* by log_event_again() */
    const char *format; /* of the line: the same for the same event */
    const char *text;   /* the line, valid during the call */
};

/* Receives events, whatever the level. Several threads may call note() at once; it must not log. */
struct log_event_sink {
    void (*note)(void *cookie, const struct log_event *event);
    void *cookie;
};

/* Rate limit of one kind of line, shared by all threads; zero-initialised. */
struct log_limit {
    _Atomic int64_t next_at_ns;
    atomic_uint suppressed;
};

/*
 * log_set_sink(sink) / log_set_level(level):
 * Send lines to ${sink}, which must stay alive (NULL: stderr) / set the configured level: less
 * severe lines are suppressed. A changed level ends log_override_level().
 *
 * Thread: main, before start / any
 */
void log_set_sink(const struct log_sink *sink);
void log_set_level(enum log_level level);

/*
 * log_override_level(level) / log_restore_level():
 * Use ${level} instead of the configured level / use the configured level again.
 */
void log_override_level(enum log_level level);
void log_restore_level(void);

/* log_get_levels(now, configured): return the level in use and the configured level. */
void log_get_levels(enum log_level *now, enum log_level *configured);

/*
 * log_unset_sink(sink):
 * Send lines to stderr again if ${sink} is the current sink.
 *
 * Thread: main, before start or after all other threads have ended
 */
void log_unset_sink(const struct log_sink *sink);

/*
 * log_set_copy(sink):
 * Send warnings and errors to ${sink}, too; NULL: stop. A line that another thread is
 * logging may still go to the previous sink.
 *
 * Owns:   ${sink} must live as long as the process
 */
void log_set_copy(const struct log_sink *sink);

/*
 * log_set_events(sink):
 * Give events to ${sink}, too; NULL: stop.
 *
 * Thread: main, before start or after all other threads have ended
 */
void log_set_events(const struct log_event_sink *sink);

/* log_wanted(level): are lines of ${level} logged? */
bool log_wanted(enum log_level level);

/*
 * log_level_name(level) / log_level_of(name, out):
 * Return the name of ${level} in the configuration / find the level called ${name}; false: unknown
 * name.
 */
const char *log_level_name(enum log_level level);
bool log_level_of(const char *name, enum log_level *out) NODISCARD;

/* log_write(level, format, ...): log one line, if log_wanted(). */
void log_write(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * log_event(subject, level, format, ...) / log_event_again(subject, level, format, ...):
 * Log one line, which is also an event / one behind log_allowed(), an event that may go on.
 */
void log_event(enum log_subject subject, enum log_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);
void log_event_again(enum log_subject subject, enum log_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);

/*
 * log_allowed(limit, interval_ns, suppressed):
 * Allow one line per ${interval_ns}. On true, ${suppressed} receives the number of lines refused
 * since the last allowed line.
 */
bool log_allowed(struct log_limit *limit, int64_t interval_ns, unsigned *suppressed);

struct log_held_back {
    char text[sizeof(" (4294967295 more such lines held back)")];
};

/*
 * log_held_back_text(h, suppressed):
 * Format the suffix of a line after log_allowed(): ` (3 more such lines held back)`, or "" for 0.
 * Returns ${h}->text.
 */
const char *log_held_back_text(struct log_held_back *h, unsigned suppressed);

/* Call log_held_back_text() with a buffer that lives until the enclosing block ends. */
#define LOG_SUPPRESSED(suppressed) log_held_back_text(&(struct log_held_back){{0}}, (suppressed))

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_write(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                               \
    do {                                             \
        if (log_wanted(LOG_LEVEL_DEBUG))             \
            log_write(LOG_LEVEL_DEBUG, __VA_ARGS__); \
    } while (0)

#endif
