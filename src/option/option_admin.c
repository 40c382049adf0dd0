/* option/option_admin: options of [admin]. */
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "option/process_conf.h"
#include "option/option_internal.h"
#include "option/option_kind.h"
#include "option/option_need.h"
#include "option/option_network.h"
#include "option/option_unix.h"

static int option_admin_set_token_file(const struct option *o, struct option_value *v)
{
    return option_kind_path.set(o, v);
}

static bool option_admin_same_token(const struct option *o, const void *from, const void *to)
{
    const char *a = ((const struct admin_conf *)from)->token;
    const char *b = ((const struct admin_conf *)to)->token;

    (void)o;
    return !a || !b || strcmp(a, b) == 0;
}

static const struct option_content token = {option_admin_same_token, NULL,
                                            "the token in the file has changed"};
static const struct option_kind token_file = {option_admin_set_token_file, "", 0, &token};

#define ADMIN(field) offsetof(struct admin_conf, field)

/* clang-format off */
static const struct option admin_rows[] = {
    {"address", &option_network_admin_addresses, OPTION_EMPTY, OPTION_UPGRADE, "",
     "/run/x.sock, @name, 127.0.0.1:7 or [::1]:7, comma-separated",
     "addresses of the admin interface; empty: none",
     0, 0, 0, NULL, NULL},
    {"mode", &option_unix_mode, 0, OPTION_UPGRADE, "0600",
     "000 to 777, in octal", "permissions of the unix sockets (a client needs write permission)",
     ADMIN(file), 0, 0, NULL, &option_need_admin_unix},
    {"token_file", &token_file, OPTION_EMPTY, OPTION_LIVE, "",
     "an absolute path such as /etc/reactord/admin.token",
     "file with the token for clients over TCP; empty: none, and no TCP addresses",
     ADMIN(token_file), 0, 0, NULL, &option_need_admin_tcp},
    {"allow_remote", &option_kind_bool, 0, OPTION_LIVE, "no",
     "yes or no", "allow TCP addresses other than loopback; nothing is encrypted",
     ADMIN(allow_remote), 0, 0, NULL, &option_need_admin_tcp},
    {"request_timeout", &option_kind_duration, 0, OPTION_LIVE, "10s",
     "100ms to 1h", "time for a request, from its first byte to the last byte of the answer",
     ADMIN(request_timeout_ns), 100 * NS_PER_MS, 3600 * NS_PER_S, NULL, &option_need_admin},
    {"max_connections", &option_kind_number, 0, OPTION_LIVE, "64",
     "1 to 1024",
     "maximum number of open connections; above it only /, /healthz and /readyz are served",
     ADMIN(max_connections), 1, 1024, NULL, &option_need_admin},
    {"metrics_servers", &option_kind_number, 0, OPTION_LIVE, "1000",
     "0 to 65535",
     "maximum number of servers with metrics of their own; others count for their upstream only",
     ADMIN(metrics_servers), 0, 65535, NULL, &option_need_admin},
    {"history", &option_kind_duration, OPTION_ZERO, OPTION_LIVE, "1h",
     "0, or 1m to 7d", "how far back the page and /v1/history show what was gained; 0: nothing is kept",
     ADMIN(history_ns), 60 * NS_PER_S, 7 * NS_PER_DAY, NULL, &option_need_admin},
    {"write", &option_kind_bool, 0, OPTION_LIVE, "yes",
     "yes or no", "allow clients to make changes; no: read only",
     ADMIN(write), 0, 0, NULL, &option_need_admin},
};
/* clang-format on */

const struct option_rows option_admin = {admin_rows, ARRAY_LEN(admin_rows)};
