#include "net/name_servers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int name_servers_create(struct name_servers **out, const struct name_servers_conf *conf)
{
    size_t bytes = strlen(conf->name) + 1;
    struct name_servers *s = calloc(1, sizeof(*s) + bytes);

    MUST(conf->n_addresses > 0 && conf->n_addresses <= NAME_SERVERS_MAX);
    if (!s)
        return -ENOMEM;
    ref_init(&s->ref);
    memcpy(s->name, conf->name, bytes);
    memcpy(s->list, conf->addresses, conf->n_addresses * sizeof(s->list[0]));
    s->n = conf->n_addresses;
    s->tries = conf->tries;
    s->timeout_ns = conf->timeout_ns;
    *out = s;
    return 0;
}

struct name_servers *name_servers_hold(struct name_servers *s)
{
    if (s)
        ref_hold(&s->ref);
    return s;
}

void name_servers_release(struct name_servers *s)
{
    if (s && ref_release(&s->ref))
        free(s);
}

bool name_servers_same(const struct name_servers *a, const struct name_servers *b)
{
    if (!a || !b)
        return a == b;
    if (strcmp(a->name, b->name) != 0 || a->n != b->n || a->tries != b->tries ||
        a->timeout_ns != b->timeout_ns)
        return false;
    for (unsigned i = 0; i < a->n; i++)
        if (!address_equal(&a->list[i], &b->list[i]))
            return false;
    return true;
}
