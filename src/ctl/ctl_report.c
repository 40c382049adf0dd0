#include "ctl/ctl_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/ctl_memory.h"
#include "ctl/ctl_text.h"

void ctl_report(const char *format, ...)
{
    struct ctl_memory_text text;
    va_list arguments;

    ctl_memory_text_open(&text);
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
