/*
 * base/log: log lines with a level, sent to one sink.
 *
 * daemon/ installs the sink (stderr until then). Formatting neither allocates nor locks: any thread
 * may log.
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

/* Longer lines are cut and end in "...". */
#define LOG_LINE_BYTES 1024

/*
 * Log target. write() gets the text without level, time or newline, from several threads at once;
 * it must not log.
 */
struct log_sink {
    void (*write)(void *cookie, enum log_level level, const char *text);
    void *cookie;
};

/* Rate limit of one kind of line, for all threads; zero-initialised. */
struct log_limit {
    _Atomic int64_t next_at_ns;
    atomic_uint suppressed;
};

/*
 * log_set_sink(sink) / log_set_level(level):
 * Send lines to ${sink}, borrowed (NULL: stderr) / suppress lines less severe than ${level}.
 *
 * Thread: before start (sink); any (level)
 */
void log_set_sink(const struct log_sink *sink);
void log_set_level(enum log_level level);

/*
 * log_unset_sink(sink):
 * Return to stderr if lines go to ${sink}.
 *
 * Thread: before start, or after all other threads have ended
 */
void log_unset_sink(const struct log_sink *sink);

/*
 * log_wanted(level):
 * Is ${level} logged? Ask before work for a log line.
 *
 * Thread: any
 */
bool log_wanted(enum log_level level);

/*
 * log_level_name(level):
 * Return the configuration's name of ${level}.
 *
 * Thread: any
 */
const char *log_level_name(enum log_level level);

/*
 * log_write(level, format, ...):
 * Log one line if ${level} is wanted; lost if it cannot be written. Use log_error() ...
 * log_debug().
 *
 * Thread: any
 */
void log_write(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * log_allowed(limit, interval_ns, suppressed):
 * Allow one line per ${interval_ns}; if true, sets ${suppressed} to the lines held back.
 *
 * Thread: any
 */
bool log_allowed(struct log_limit *limit, int64_t interval_ns, unsigned *suppressed);

struct log_held_back {
    char text[sizeof(" (4294967295 more such lines held back)")];
};

/*
 * log_held_back_text(h, suppressed):
 * Format the suffix of a line after log_allowed(): ` (3 more such lines held back)`, or "" for 0.
 * Returns ${h}->text.
 *
 * Thread: any
 */
const char *log_held_back_text(struct log_held_back *h, unsigned suppressed);

/* As log_held_back_text(), with memory of the enclosing block. */
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
