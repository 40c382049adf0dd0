#include "ctl/ctl_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/ctl_memory.h"
#include "ctl/ctl_text.h"

static const char *ctl_report_node;

void ctl_report_name(const char *node)
{
    ctl_report_node = node;
}

void ctl_report(const char *format, ...)
{
    struct ctl_memory_text text;
    va_list arguments;

    ctl_memory_text_open(&text);
    if (ctl_report_node)
        fprintf(text.file, "%s: ", ctl_report_node);
    va_start(arguments, format);
    vfprintf(text.file, format, arguments);
    va_end(arguments);
    ctl_memory_text_close(&text);
    fflush(stdout);
    fputs("reactorctl: ", stderr);
    ctl_text_put(stderr, text.bytes, text.len, true);
    fputc('\n', stderr);
    free(text.bytes);
}
