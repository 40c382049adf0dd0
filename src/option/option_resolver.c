/* option/option_resolver: options of [resolver NAME], and their kinds. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "option/option_internal.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "net/name_servers.h"

#define OPTION_RESOLVER_PORT 53

/* Parse `IP` or `IP:PORT`. */
static int option_resolver_parse(struct option_value *v, struct address *out, const char *item)
{
    struct address found[2];
    int rc;

    if (*item == '\0')
        return option_refuse(v, "an address is missing beside a comma");
    if (address_parse_host(out, item) == 0) {
        address_set_port(out, OPTION_RESOLVER_PORT);
        return 0;
    }
    rc = address_parse(found, ARRAY_LEN(found), item);
    if (rc == -ERANGE)
        return option_refuse(v, "the port of %s is not 1 to 65535", QUOTE_TEXT(item));
    if (rc != 1 || address_is_unix(&found[0]))
        return option_refuse(v, "%s is not an IP address", QUOTE_TEXT(item));
    *out = found[0];
    return 0;
}

static int option_resolver_add(struct option_value *v, struct address *list, unsigned n,
                               const char *item)
{
    struct address a;
    int rc = option_resolver_parse(v, &a, item);

    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < n; i++)
        if (address_equal(&list[i], &a))
            return option_refuse(v, "%s is given twice", QUOTE_TEXT(item));
    if (n == NAME_SERVERS_MAX)
        return option_refuse(v, "too many name servers, at most %d", NAME_SERVERS_MAX);
    list[n] = a;
    return 0;
}

static int option_resolver_set_servers(const struct option *o, struct option_value *v)
{
    struct name_servers_conf *conf = v->conf;
    struct address *found = arena_alloc(v->arena, NAME_SERVERS_MAX, sizeof(*found));
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    unsigned n = 0;

    (void)o;
    if (!list || !found)
        return -ENOMEM;
    while (list) {
        int rc = option_resolver_add(v, found, n, option_kind_next_item(&list));

        if (rc < 0)
            return rc;
        n++;
    }
    conf->addresses = found;
    conf->n_addresses = n;
    return 0;
}

/* addresses and n_addresses of a name_servers_conf */
static const struct option_kind option_resolver_servers = {option_resolver_set_servers, "", 0,
                                                           NULL};

#define RESOLVER(field) offsetof(struct name_servers_conf, field)

/* clang-format off */
static const struct option resolver_rows[] = {
    {"servers", &option_resolver_servers, OPTION_REQUIRED, OPTION_LIVE, NULL,
     "IP[:PORT] of 1 to 8 name servers, comma-separated",
     "name servers to ask, the next one if one fails or is silent",
     RESOLVER(addresses), 0, 0, NULL, NULL},
    {"timeout", &option_kind_duration, 0, OPTION_LIVE, "1s",
     "100ms to 60s", "maximum time to wait for the answer to a query",
     RESOLVER(timeout_ns), 100 * NS_PER_MS, 60 * NS_PER_S, NULL, NULL},
    {"tries", &option_kind_number, 0, OPTION_LIVE, "2",
     "1 to 10", "queries to each name server before the lookup fails",
     RESOLVER(tries), 1, 10, NULL, NULL},
};
/* clang-format on */

const struct option_rows option_resolver = {resolver_rows, ARRAY_LEN(resolver_rows)};
