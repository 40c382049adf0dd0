#include "log/log_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "stats/syslog_conf.h"

#define STAMP_BYTES  32
#define NAME_BYTES   16 /* thread name, see prctl(2) */
#define ESCAPE_BYTES 4  /* \xNN */

static const char *log_line_thread_name(void)
{
    static _Thread_local char name[NAME_BYTES];

    if (name[0] != '\0')
        return name;
    if (gettid() == getpid())
        memcpy(name, "main", sizeof("main"));
    else if (prctl(PR_GET_NAME, name) < 0 || name[0] == '\0')
        memcpy(name, "?", sizeof("?"));
    return name;
}

/* The time, cached for a second because libc takes its time zone lock. */
static const char *log_line_stamp(time_t now_s, bool local)
{
    static _Thread_local char text[STAMP_BYTES];
    static _Thread_local time_t text_s = -1;
    static _Thread_local bool text_local;
    struct tm tm;

    if (text_s == now_s && text_local == local)
        return text;
    if (!(local ? localtime_r(&now_s, &tm) : gmtime_r(&now_s, &tm)) ||
        strftime(text, sizeof(text), local ? "%b %e %H:%M:%S" : "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return "-";
    text_s = now_s;
    text_local = local;
    return text;
}

static void PRINTF_LIKE(2, 3) line_print(struct log_line *line, const char *format, ...)
{
    size_t space = sizeof(line->data) - line->len;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line->data + line->len, space, format, args);
    va_end(args);
    MUST(len >= 0 && (size_t)len < space); /* all parts are short */
    line->len += (size_t)len;
}

static size_t log_line_escape(char out[ESCAPE_BYTES], unsigned char c)
{
    static const char digits[] = "0123456789abcdef";

    if (c >= 0x20 && c < 0x7f && c != '\\') {
        out[0] = (char)c;
        return 1;
    }
    out[0] = '\\';
    out[1] = c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : c == '\\' ? '\\' : 'x';
    if (out[1] != 'x')
        return 2;
    out[2] = digits[c >> 4];
    out[3] = digits[c & 0xf];
    return 4;
}

/* Write ${text} behind the head, in lines of ${max_bytes} at most. */
static void log_line_end(struct log_line *line, size_t max_bytes, const char *text)
{
    static const char cut[] = "...\n";

    for (; *text != '\0'; text++) {
        char out[ESCAPE_BYTES];
        size_t n = log_line_escape(out, (unsigned char)*text);

        if (line->len + n + sizeof(cut) > max_bytes) {
            memcpy(line->data + line->len, cut, sizeof(cut) - 1);
            line->len += sizeof(cut) - 1;
            return;
        }
        memcpy(line->data + line->len, out, n);
        line->len += n;
    }
    line->data[line->len++] = '\n';
}

/* Source: RFC 3164, section 4.1; RFC 5424, section 6; systemd.io/JOURNAL_NATIVE_PROTOCOL */
static void log_line_syslog_head(struct log_line *line, const struct syslog_conf *conf,
                                 const struct timespec *now, int severity, const char *thread)
{
    unsigned priority = conf->facility << 3 | (unsigned)severity;

    switch (conf->protocol) {
    case SYSLOG_RFC3164:
        line_print(line, "<%u>%s %s%s%s[%ld]: ", priority, log_line_stamp(now->tv_sec, true),
                   conf->host, conf->host[0] != '\0' ? " " : "", conf->tag, (long)getpid());
        break;
    case SYSLOG_RFC5424:
        line_print(line, "<%u>1 %s.%03ldZ %s %s %ld - - ", priority,
                   log_line_stamp(now->tv_sec, false), now->tv_nsec / (long)NS_PER_MS,
                   conf->host[0] != '\0' ? conf->host : "-", conf->tag, (long)getpid());
        break;
    case SYSLOG_JOURNAL:
        line_print(line, "PRIORITY=%d\nSYSLOG_FACILITY=%u\nSYSLOG_IDENTIFIER=%s\n", severity,
                   conf->facility, conf->tag);
        if (thread)
            line_print(line, "REACTORD_THREAD=%s\n", thread);
        line_print(line, "MESSAGE=");
        return;
    }
    if (thread)
        line_print(line, "%s: ", thread);
}

void log_line_head(struct log_line *line, const struct log_line_form *form, enum log_level level,
                   const char *thread)
{
    int severity = LOG_ERR + (int)level; /* enum log_level has the same order */
    struct timespec now;

    line->len = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    switch (form->layout) {
    case LOG_LINE_PLAIN:
        line_print(line, "%s.%03ldZ reactord[%ld] %s ", log_line_stamp(now.tv_sec, false),
                   now.tv_nsec / (long)NS_PER_MS, (long)getpid(), log_level_name(level));
        break;
    case LOG_LINE_PRIORITY: line_print(line, "<%d>", severity); break;
    case LOG_LINE_SYSLOG:
        if (form->syslog->severity >= 0)
            severity = form->syslog->severity;
        log_line_syslog_head(line, form->syslog, &now, severity, thread);
        return;
    }
    if (thread)
        line_print(line, "%s: ", thread);
}

bool log_line_has_newline(const struct log_line_form *form)
{
    return form->layout != LOG_LINE_SYSLOG || form->syslog->protocol == SYSLOG_JOURNAL;
}

void log_line_build(struct log_line *line, const struct log_line_form *form, enum log_level level,
                    const char *text)
{
    size_t max_bytes = sizeof(line->data);

    if (form->syslog && form->syslog->max_bytes > 0 && form->syslog->max_bytes < max_bytes)
        max_bytes = form->syslog->max_bytes;
    log_line_head(line, form, level, log_line_thread_name());
    log_line_end(line, max_bytes, text);
    if (!log_line_has_newline(form))
        line->len--;
}
