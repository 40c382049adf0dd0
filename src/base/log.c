#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARNING] = "warning", [LOG_LEVEL_NOTICE] = "notice",
    [LOG_LEVEL_INFO] = "info",   [LOG_LEVEL_DEBUG] = "debug",
};

static void log_stderr_write(void *cookie, enum log_level level, const char *text)
{
    char line[LOG_LINE_BYTES + 32];
    int len;

    (void)cookie;
    len = snprintf(line, sizeof(line), "reactord: %s: %s\n", level_names[level], text);
    if (write(STDERR_FILENO, line, (size_t)len) < 0)
        return;
}

static const struct log_sink stderr_sink = {.write = log_stderr_write};
static const struct log_sink *current_sink = &stderr_sink;
static _Atomic(const struct log_sink *) copy_sink;
static _Atomic(const struct log_event_sink *) event_sink;
static atomic_int configured_level = LOG_LEVEL_INFO;
static atomic_int current_level = LOG_LEVEL_INFO;

void log_set_sink(const struct log_sink *sink)
{
    current_sink = sink ? sink : &stderr_sink;
}

void log_unset_sink(const struct log_sink *sink)
{
    if (current_sink == sink)
        log_set_sink(NULL);
}

void log_set_copy(const struct log_sink *sink)
{
    atomic_store_explicit(&copy_sink, sink, memory_order_release);
}

void log_set_events(const struct log_event_sink *sink)
{
    atomic_store_explicit(&event_sink, sink, memory_order_release);
}

void log_set_level(enum log_level level)
{
    if (atomic_exchange(&configured_level, (int)level) != (int)level)
        log_override_level(level);
}

void log_override_level(enum log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

void log_restore_level(void)
{
    log_override_level((enum log_level)atomic_load(&configured_level));
}

void log_get_levels(enum log_level *now, enum log_level *configured)
{
    *now = (enum log_level)atomic_load(&current_level);
    *configured = (enum log_level)atomic_load(&configured_level);
}

bool log_wanted(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

const char *log_level_name(enum log_level level)
{
    return level_names[level];
}

bool log_level_of(const char *name, enum log_level *out)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
        if (strcmp(name, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    return false;
}

/* Format a line into LOG_LINE_BYTES of ${text}; false: the format cannot be used. */
static bool log_format(char *text, const char *format, va_list args)
{
    int len = vsnprintf(text, LOG_LINE_BYTES, format, args);

    if (len >= LOG_LINE_BYTES)
        memcpy(text + LOG_LINE_BYTES - sizeof("..."), "...", sizeof("..."));
    return len >= 0;
}

static void log_send(enum log_level level, const char *text)
{
    const struct log_sink *copy = atomic_load_explicit(&copy_sink, memory_order_acquire);

    current_sink->write(current_sink->cookie, level, text);
    if (copy && level <= LOG_LEVEL_WARNING)
        copy->write(copy->cookie, level, text);
}

void log_write(enum log_level level, const char *format, ...)
{
    char text[LOG_LINE_BYTES];
    int saved_errno = errno; /* callers log between a failed call and their use of errno */
    va_list args;

    if (!log_wanted(level))
        return;
    va_start(args, format);
    if (log_format(text, format, args))
        log_send(level, text);
    va_end(args);
    errno = saved_errno;
}

static void log_event_give(struct log_event event, va_list args)
{
    const struct log_event_sink *events = atomic_load_explicit(&event_sink, memory_order_acquire);
    char text[LOG_LINE_BYTES];
    int saved_errno = errno;

    if (!events && !log_wanted(event.level))
        return;
    if (log_format(text, event.format, args)) {
        event.text = text;
        if (log_wanted(event.level))
            log_send(event.level, text);
        if (events)
            events->note(events->cookie, &event);
    }
    errno = saved_errno;
}

void log_event(enum log_subject subject, enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_event_give((struct log_event){.subject = subject, .level = level, .format = format}, args);
    va_end(args);
}

void log_event_again(enum log_subject subject, enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_event_give(
        (struct log_event){
            .subject = subject, .level = level, .is_repeated = true, .format = format},
        args);
    va_end(args);
}

bool log_allowed(struct log_limit *limit, int64_t interval_ns, unsigned *suppressed)
{
    int64_t now_ns = clock_now_ns();
    int64_t next_at_ns = atomic_load_explicit(&limit->next_at_ns, memory_order_relaxed);

    if (now_ns < next_at_ns ||
        !atomic_compare_exchange_strong_explicit(&limit->next_at_ns, &next_at_ns,
                                                 clock_add_ns(now_ns, interval_ns),
                                                 memory_order_relaxed, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&limit->suppressed, 1, memory_order_relaxed);
        return false;
    }
    *suppressed = atomic_exchange_explicit(&limit->suppressed, 0, memory_order_relaxed);
    return true;
}

const char *log_held_back_text(struct log_held_back *h, unsigned suppressed)
{
    h->text[0] = '\0';
    if (suppressed > 0)
        snprintf(h->text, sizeof(h->text), " (%u more such line%s held back)", suppressed,
                 suppressed > 1 ? "s" : "");
    return h->text;
}
