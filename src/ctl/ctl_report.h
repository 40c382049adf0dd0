/*
 * ctl/ctl_report: messages of reactorctl on stderr.
 */
#ifndef CTL_CTL_REPORT_H
#define CTL_CTL_REPORT_H

#include "base/must.h"

/* ctl_report(format, ...): write "reactorctl: TEXT" and a newline, made harmless for a terminal. */
void ctl_report(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
