/*
 * ctl/ctl_report: messages of reactorctl on stderr.
 */
#ifndef CTL_CTL_REPORT_H
#define CTL_CTL_REPORT_H

#include "base/must.h"

/*
 * ctl_report(format, ...) / ctl_report_name(node):
 * Write "reactorctl: TEXT" and a newline, made harmless for a terminal / from now on write
 * "reactorctl: NODE: TEXT"; NULL: no longer.
 *
 * Owns:   ${node} must live until the next ctl_report_name()
 */
void ctl_report(const char *format, ...) PRINTF_LIKE(1, 2);
void ctl_report_name(const char *node);

#endif
