/* option/option_spare: options of spare connections, in [upstream NAME]. */
#include <stddef.h>

#include "base/clock.h"
#include "option/option_internal.h"
#include "option/option_kind.h"
#include "option/option_need.h"
#include "upstream/upstream.h"

static const struct upstream_conf *option_spare_conf(const struct section *section)
{
    return section->conf;
}

static bool option_spare_is_set(const struct section *section)
{
    return option_spare_conf(section)->spare.keep > 0;
}

static bool option_spare_is_possible(const struct section *section)
{
    const struct upstream_conf *conf = option_spare_conf(section);
    bool possible =
        !conf->tls.name || conf->send_proxy.version == PROXY_HEADER_NONE || conf->spare.keep == 0;

    for (unsigned i = 0; i < conf->n_servers && !possible; i++)
        possible = upstream_send_proxy(conf, &conf->servers[i]).version == PROXY_HEADER_NONE;
    return possible;
}

static bool option_spare_is_anonymous(const struct section *section)
{
    const struct upstream_conf *conf = option_spare_conf(section);

    return conf->spare.keep == 0 || !conf->connect.sock.options.transparent;
}

static const struct option_need needs_spares = {
    option_spare_is_set, "spare", "has no effect without spare connections (set spare)", NULL};
static const struct option_need needs_no_header_before_tls = {
    option_spare_is_possible, NULL,
    "has no effect with tls and send_proxy: the PROXY header comes before TLS, and names the "
    "client",
    NULL};
static const struct option_need needs_anonymous_clients = {
    option_spare_is_anonymous, NULL,
    "has no effect with transparent: servers are connected from the address of the client",
    &needs_no_header_before_tls};

#define SPARE(field) offsetof(struct upstream_conf, spare.field)

/* clang-format off */
static const struct option spare_rows[] = {
    {"spare", &option_kind_number, 0, OPTION_LIVE, "0",
     "0 to 10000",
     "number of idle connections to keep open to each server, all workers together; 0: none",
     SPARE(keep), 0, 10000, NULL, &needs_anonymous_clients},
    {"spare_max_age", &option_kind_duration, 0, OPTION_LIVE, "60s",
     "100ms to 1d", "maximum age of a spare connection, before it is replaced",
     SPARE(max_age_ns), 100 * NS_PER_MS, NS_PER_DAY, NULL, &needs_spares},
};
/* clang-format on */

const struct option_rows option_spare = {spare_rows, ARRAY_LEN(spare_rows)};
