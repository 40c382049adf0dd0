#include "config/option_network.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "config/config.h"
#include "config/diagnostics.h"
#include "config/option_kind.h"
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

/* Parse ${item} into one or two addresses at ${out}[${n}]; return their number. */
static int option_network_parse_item(struct option_value *v, struct address *out, unsigned n,
                                     const char *item)
{
    int rc;

    if (*item == '\0')
        return option_refuse(v, "an address is missing beside a comma");
    rc = address_parse(out + n, 2, item);
    if (rc == -ENOENT)
        return option_refuse(v, "%s is a host name, and a listener needs a numeric address",
                             QUOTE_TEXT(item));
    if (rc < 0)
        return option_network_refuse_address(v, rc, item, false);
    if (n + (unsigned)rc > OPTION_NETWORK_LISTEN_ADDRESSES)
        return option_refuse(v, "too many addresses, at most %d for one listener",
                             OPTION_NETWORK_LISTEN_ADDRESSES);
    return rc;
}

struct address *option_network_keep_addresses(struct option_value *v, const struct address *from,
                                              unsigned n)
{
    struct address *kept = arena_alloc(v->arena, n, sizeof(*kept));

    if (kept)
        memcpy(kept, from, n * sizeof(*kept));
    return kept;
}

static int option_network_read_addresses(struct option_value *v, struct address **out,
                                         unsigned *out_n)
{
    struct address found[OPTION_NETWORK_LISTEN_ADDRESSES + 2]; /* an item may add two */
    struct address *kept;
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    unsigned n = 0;

    if (!list)
        return -ENOMEM;
    while (list) {
        int rc = option_network_parse_item(v, found, n, option_kind_next_item(&list));

        if (rc < 0)
            return rc;
        n += (unsigned)rc;
    }
    kept = option_network_keep_addresses(v, found, n);
    if (!kept)
        return -ENOMEM;
    *out = kept;
    *out_n = n;
    return 0;
}

static int option_network_set_addresses(const struct option *o, struct option_value *v)
{
    struct listener_conf *conf = v->conf;

    (void)o;
    return option_network_read_addresses(v, &conf->addresses, &conf->n_addresses);
}

static int option_network_set_admin_addresses(const struct option *o, struct option_value *v)
{
    struct admin_conf *conf = v->conf;

    (void)o;
    return option_network_read_addresses(v, &conf->addresses, &conf->n_addresses);
}

const struct option_kind option_network_admin_addresses = {option_network_set_admin_addresses, "",
                                                           0, NULL};
const struct option_kind option_network_addresses = {option_network_set_addresses, "", 0, NULL};
