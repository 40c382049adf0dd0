/*
 * option/option_need: what options depend on, such as a handler in the pipeline. Each option's row
 * names its need.
 *
 * config_load() refuses an option without effect, even with its default value; config_dump()
 * comments it out, so that a dump can be loaded.
 */
#ifndef OPTION_OPTION_NEED_H
#define OPTION_OPTION_NEED_H

#include "option/section.h"

struct diagnostics;

struct option_need {
    bool (*is_met)(const struct section *section);
    const char *key;                 /* the option to set; if it was refused, all is met; or NULL */
    const char *missing;             /* the error */
    const struct option_need *first; /* another need, which comes first; NULL: none */
};

extern const struct option_need option_need_admin_unix;
extern const struct option_need option_need_admin_tcp;
extern const struct option_need option_need_admin;
extern const struct option_need option_need_proxy;
extern const struct option_need option_need_connect_on;
extern const struct option_need option_need_denials;
extern const struct option_need option_need_frame;
extern const struct option_need option_need_frame_length;
extern const struct option_need option_need_frame_any_length;
extern const struct option_need option_need_frame_text_length;
extern const struct option_need option_need_frame_delimiter;
extern const struct option_need option_need_idle;
extern const struct option_need option_need_executor;
extern const struct option_need option_need_socket_file;
extern const struct option_need option_need_client_hello;
extern const struct option_need option_need_proxy_header;
extern const struct option_need option_need_own_limits;
extern const struct option_need option_need_ban;
extern const struct option_need option_need_shared_ban;
extern const struct option_need option_need_access_log;
extern const struct option_need option_need_own_access_log;
extern const struct option_need option_need_every_connection;
extern const struct option_need option_need_client_tls;
extern const struct option_need option_need_hash;
extern const struct option_need option_need_ejection;
extern const struct option_need option_need_checks;
extern const struct option_need option_need_agent;
extern const struct option_need option_need_checks_or_agent;
extern const struct option_need option_need_check_tls;
extern const struct option_need option_need_http_checks;
extern const struct option_need option_need_send_checks;
extern const struct option_need option_need_expect_checks;
extern const struct option_need option_need_step_checks;
extern const struct option_need option_need_user_checks;
extern const struct option_need option_need_tlvs;
extern const struct option_need option_need_server_tls;
extern const struct option_need option_need_certificate;
extern const struct option_need option_need_verify;
extern const struct option_need option_need_client_ca;

/*
 * option_need_missing(need, section):
 * Return why an option of ${section} with ${need} has no effect; NULL: it has an effect, or depends
 * on an option that was refused. ${need} may be NULL.
 */
const char *option_need_missing(const struct option_need *need, const struct section *section);

/*
 * option_need_check(section, diagnostics):
 * Report options of the file that have no effect.
 *
 * Thread: as config_reload()
 */
void option_need_check(const struct section *section, struct diagnostics *diagnostics);

#endif
