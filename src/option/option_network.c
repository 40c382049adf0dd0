#include "option/option_network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "option/process_conf.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"
#include "net/address.h"

/* Refuse ${word}; ${names}: host names are allowed. */
static int option_network_refuse_incomplete(struct option_value *v, const char *word, bool names)
{
    struct address a;
    int rc = address_parse_host(&a, word);

    if (word[strspn(word, "0123456789")] == '\0')
        return option_refuse(v, "%s is a port without an address", QUOTE_TEXT(word));
    if (rc == 0 && strchr(word, ':') && word[0] != '[')
        return option_refuse(v, "%s has no port, as in [::1]:7", QUOTE_TEXT(word));
    if (rc == 0 || (rc == -ENOENT && names) || strcmp(word, "*") == 0)
        return option_refuse(v, "%s has no port", QUOTE_TEXT(word));
    return option_refuse(v, "%s is not an address", QUOTE_TEXT(word));
}

int option_network_refuse_address(struct option_value *v, int rc, const char *word, bool names)
{
    switch (rc) {
    case -ERANGE: return option_refuse(v, "the port of %s is not 1 to 65535", QUOTE_TEXT(word));
    case -ENAMETOOLONG:
        return option_refuse(v, "%s is too long for a unix socket, which takes 107 characters",
                             QUOTE_TEXT(word));
    default: return option_network_refuse_incomplete(v, word, names);
    }
}

/* Addresses that are being read: one listener's, and the two that an item may add. */
struct found {
    struct address list[OPTION_NETWORK_LISTEN_ADDRESSES + 2];
    unsigned n;
    bool ranges; /* of ports are allowed */
};

static int option_network_add(struct option_value *v, struct found *found, const char *item)
{
    int rc = address_parse(found->list + found->n, 2, item);

    if (rc == -ENOENT)
        return option_refuse(v, "%s is a host name, and a listener needs a numeric address",
                             QUOTE_TEXT(item));
    if (rc < 0)
        return option_network_refuse_address(v, rc, item, false);
    if (found->n + (unsigned)rc > OPTION_NETWORK_LISTEN_ADDRESSES)
        return option_refuse(v, "too many addresses, at most %d for one listener",
                             OPTION_NETWORK_LISTEN_ADDRESSES);
    found->n += (unsigned)rc;
    return 0;
}

/* Return the `7000-7010` of a TCP address, or NULL. */
static const char *option_network_range_of(const char *item)
{
    const char *colon = strrchr(item, ':');

    if (!colon || strchr("/@", item[0]) || strncmp(item, "abns@", 5) == 0)
        return NULL;
    return colon[1 + strspn(colon + 1, "0123456789")] == '-' ? colon + 1 : NULL;
}

/* Add an address for each port of ${range}, the end of ${item}. */
static int option_network_add_range(struct option_value *v, struct found *found, const char *item,
                                    const char *range)
{
    char text[ADDRESS_TEXT_BYTES];
    const char *dash = strchr(range, '-');
    uint64_t first, last;
    int rc = 0;

    snprintf(text, sizeof(text), "%.*s", (int)(dash - range), range);
    rc = parse_uint(&first, text, UINT16_MAX);
    if (rc == 0)
        rc = parse_uint(&last, dash + 1, UINT16_MAX);
    if (rc == -ERANGE || (rc == 0 && (first == 0 || last == 0)))
        return option_refuse(v, "a port of %s is not 1 to 65535", QUOTE_TEXT(item));
    if (rc < 0)
        return option_refuse(v, "%s has no range of ports, as in *:7000-7010", QUOTE_TEXT(item));
    if (first > last)
        return option_refuse(v, "the range of %s ends before it begins", QUOTE_TEXT(item));
    for (uint64_t port = first; port <= last && rc == 0; port++) {
        int len = snprintf(text, sizeof(text), "%.*s%u", (int)(range - item), item, (unsigned)port);

        if ((size_t)len >= sizeof(text))
            return option_network_refuse_address(v, -EINVAL, item, false);
        rc = option_network_add(v, found, text);
    }
    return rc;
}

static int option_network_add_item(struct option_value *v, struct found *found, const char *item)
{
    const char *range = found->ranges ? option_network_range_of(item) : NULL;

    if (*item == '\0')
        return option_refuse(v, "an address is missing beside a comma");
    return range ? option_network_add_range(v, found, item, range)
                 : option_network_add(v, found, item);
}

struct address *option_network_keep_addresses(struct option_value *v, const struct address *from,
                                              unsigned n)
{
    struct address *kept = arena_alloc(v->arena, n, sizeof(*kept));

    if (kept)
        memcpy(kept, from, n * sizeof(*kept));
    return kept;
}

static int option_network_read_addresses(struct option_value *v, bool ranges, struct address **out,
                                         unsigned *out_n)
{
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    struct found *found = calloc(1, sizeof(*found));
    struct address *kept = NULL;
    int rc = list && found ? 0 : -ENOMEM;

    if (rc == 0)
        found->ranges = ranges;
    while (rc == 0 && list)
        rc = option_network_add_item(v, found, option_kind_next_item(&list));
    if (rc == 0) {
        kept = option_network_keep_addresses(v, found->list, found->n);
        rc = kept ? 0 : -ENOMEM;
    }
    if (rc == 0) {
        *out = kept;
        *out_n = found->n;
    }
    free(found);
    return rc;
}

static int option_network_set_addresses(const struct option *o, struct option_value *v)
{
    struct listener_conf *conf = v->conf;

    (void)o;
    return option_network_read_addresses(v, true, &conf->addresses, &conf->n_addresses);
}

static int option_network_set_admin_addresses(const struct option *o, struct option_value *v)
{
    struct admin_conf *conf = v->conf;

    (void)o;
    return option_network_read_addresses(v, false, &conf->addresses, &conf->n_addresses);
}

const struct option_kind option_network_admin_addresses = {option_network_set_admin_addresses, "",
                                                           0, NULL};
const struct option_kind option_network_addresses = {option_network_set_addresses, "", 0, NULL};
