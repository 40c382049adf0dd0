#include "daemon/log_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"

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
static const char *log_line_stamp(time_t now_s, enum log_line_layout layout)
{
    static _Thread_local char text[STAMP_BYTES];
    static _Thread_local time_t text_s = -1;
    static _Thread_local enum log_line_layout text_layout;
    bool local = layout == LOG_LINE_SYSLOG;
    struct tm tm;

    if (text_s == now_s && text_layout == layout)
        return text;
    if (!(local ? localtime_r(&now_s, &tm) : gmtime_r(&now_s, &tm)) ||
        strftime(text, sizeof(text), local ? "%b %e %H:%M:%S" : "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return "-";
    text_s = now_s;
    text_layout = layout;
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

static void log_line_end(struct log_line *line, const char *text)
{
    static const char cut[] = "...\n";

    for (; *text != '\0'; text++) {
        char out[ESCAPE_BYTES];
        size_t n = log_line_escape(out, (unsigned char)*text);

        if (line->len + n + sizeof(cut) > sizeof(line->data)) {
            memcpy(line->data + line->len, cut, sizeof(cut) - 1);
            line->len += sizeof(cut) - 1;
            return;
        }
        memcpy(line->data + line->len, out, n);
        line->len += n;
    }
    line->data[line->len++] = '\n';
}

void log_line_head(struct log_line *line, enum log_line_layout layout, enum log_level level,
                   const char *thread)
{
    int priority = LOG_ERR + (int)level; /* enum log_level has the same order */
    struct timespec now;

    line->len = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    switch (layout) {
    case LOG_LINE_PLAIN:
        line_print(line, "%s.%03ldZ reactord[%ld] %s ", log_line_stamp(now.tv_sec, layout),
                   now.tv_nsec / (long)NS_PER_MS, (long)getpid(), log_level_name(level));
        break;
    case LOG_LINE_PRIORITY: line_print(line, "<%d>", priority); break;
    case LOG_LINE_SYSLOG:
        line_print(line, "<%d>%s reactord[%ld]: ", LOG_DAEMON | priority,
                   log_line_stamp(now.tv_sec, layout), (long)getpid());
        break;
    case LOG_LINE_JOURNAL:
        line_print(line, "PRIORITY=%d\nSYSLOG_FACILITY=%d\nSYSLOG_IDENTIFIER=reactord\n", priority,
                   LOG_FAC(LOG_DAEMON));
        if (thread)
            line_print(line, "REACTORD_THREAD=%s\n", thread);
        line_print(line, "MESSAGE=");
        return;
    }
    if (thread)
        line_print(line, "%s: ", thread);
}

void log_line_build(struct log_line *line, enum log_line_layout layout, enum log_level level,
                    const char *text)
{
    log_line_head(line, layout, level, log_line_thread_name());
    log_line_end(line, text);
    if (layout == LOG_LINE_SYSLOG)
        line->len--;
}
