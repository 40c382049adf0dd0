/*
 * base/log: leveled lines to one sink.
 *
 * This module decides whether a line is wanted and formats its text; where it goes is the business
 * of the sink that daemon/ installs (stderr until then). Formatting and writing never allocate and
 * never take a lock, so that any thread may log at any moment.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

/* In syslog's order, most severe first. */
enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_NOTICE,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG
};

/* The longest line; a longer one is cut and ends in "...". */
#define LOG_LINE_BYTES 1024

/*
 * Where lines go. write() gets the text without level, time or newline, and is called from any
 * thread, several at once; it must not call log_write().
 */
struct log_sink {
    void (*write)(void *cookie, enum log_level level, const char *text);
    void *cookie;
};

/*
 * How many lines of one kind were held back; zero-initialised, shared by all threads that use it.
 */
struct log_limit {
    _Atomic int64_t next_at_ns;
    atomic_uint suppressed;
};

/*
 * log_set_sink(sink) / log_set_level(level):
 * Send lines to ${sink} (NULL: stderr) from now on; leave out those below ${level}.
 *
 * Thread: before start (the sink); any (the level)
 * Owns:   nothing; ${sink} must live as long as the process logs
 */
void log_set_sink(const struct log_sink *sink);
void log_set_level(enum log_level level);

/*
 * log_unset_sink(sink):
 * If lines go to ${sink}, which is about to end, send them to stderr again.
 *
 * Thread: before start, or after every other thread has ended
 */
void log_unset_sink(const struct log_sink *sink);

/*
 * log_wanted(level):
 * Would a line at ${level} be written? Ask before work that only a log line needs.
 *
 * Thread: any
 */
bool log_wanted(enum log_level level);

/*
 * log_level_name(level) / log_level_parse(out, name):
 * The configuration's word for ${level}, and back.
 *
 * Thread: any
 * Errors: 0; -EINVAL (no such level, ${out} unchanged)
 */
const char *log_level_name(enum log_level level);
int log_level_parse(enum log_level *out, const char *name) NODISCARD;

/*
 * log_write(level, format, ...):
 * Write one line if ${level} is wanted. The log_error() ... log_debug() forms are for callers.
 *
 * Thread: any
 * Errors: none (a line that cannot be written is lost)
 */
void log_write(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * log_allowed(limit, interval_ns, suppressed):
 * May a line of this kind be written now, at most one each ${interval_ns}? If so ${suppressed}
 * tells how many were held back since the last.
 *
 * Thread: any
 * Units:  ${interval_ns} ns
 */
bool log_allowed(struct log_limit *limit, int64_t interval_ns, unsigned *suppressed);

struct log_held_back {
    char text[sizeof(" (4294967295 more such lines held back)")];
};

/*
 * log_held_back_text(h, suppressed):
 * The end of a line that log_allowed() let through: ` (3 more such lines held back)`, or "" when
 * none were. Returns ${h}->text, so that it can stand in an argument list.
 *
 * Thread: any
 */
const char *log_held_back_text(struct log_held_back *h, unsigned suppressed);

/* log_held_back_text() with memory of its own, which lasts until the end of the enclosing block. */
#define LOG_HELD_BACK(suppressed) log_held_back_text(&(struct log_held_back){{0}}, (suppressed))

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
