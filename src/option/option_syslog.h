/*
 * option/option_syslog: option kinds: targets of logs.
 *
 *   stderr   /path
 *   syslog [ADDRESS] [facility=F] [severity=S] [tag=T] [format=F] [host=H] [length=N]
 *   journal [facility=F] [severity=S] [tag=T]
 *
 * Words after the address, as those of a server; blanks between words are made single.
 */
#ifndef OPTION_OPTION_SYSLOG_H
#define OPTION_OPTION_SYSLOG_H

#include <stdbool.h>

#include "option/option.h"

/* Source: syslog(3); systemd.io/JOURNAL_NATIVE_PROTOCOL */
#define OPTION_SYSLOG_PATH         "/dev/log"
#define OPTION_SYSLOG_JOURNAL_PATH "/run/systemd/journal/socket"

struct syslog_conf;

/*
 * const char *: the target. One of option.words, a path, or a target with words / the same without
 * severity=, since lines of the log have their own.
 */
extern const struct option_kind option_syslog_target;
extern const struct option_kind option_syslog_log_target;

/* option_syslog_is(text): does ${text} begin with the word syslog or journal? */
bool option_syslog_is(const char *text);

/*
 * option_syslog_refuse_foreign(v):
 * Refuse ${v}->text if it is a target as other programs write it, such as `/dev/log local0`.
 *
 * Errors: 0; -EINVAL (see ${v}->problem)
 */
int option_syslog_refuse_foreign(struct option_value *v) NODISCARD;

/*
 * option_syslog_parse(out, v):
 * Parse ${v}->text, for which option_syslog_is().
 *
 * Errors: 0; -EINVAL (see ${v}->problem)
 */
int option_syslog_parse(struct syslog_conf *out, struct option_value *v) NODISCARD;

/*
 * option_syslog_set(v, conf, where):
 * Check ${v}->text, a target of this file. Set ${where} to it, with single blanks. ${conf}: as
 * option_syslog_parse(), unless it is a file.
 *
 * Errors: 0; -EINVAL (see ${v}->problem); -ENOMEM
 */
int option_syslog_set(struct option_value *v, struct syslog_conf *conf,
                      const char **where) NODISCARD;

#endif
