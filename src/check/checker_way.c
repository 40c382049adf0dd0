/* check/checker_way: where a check connects, and whether it sends a PROXY header. */
#include <string.h>

#include "check/checker_internal.h"

static bool checker_is_session_way(const struct endpoint_addresses *at, const struct address *list,
                                   unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned k = 0;

        while (k < at->n && !address_equal(&at->list[k], &list[i]))
            k++;
        if (k == at->n)
            return false;
    }
    return true;
}

unsigned checker_copy_addresses(const struct checker_target *t, struct checker_slot *slot)
{
    const struct checker_target_conf *conf = &t->conf;
    struct endpoint_addresses *at = endpoint_hold_addresses(conf->endpoint);
    const struct address *list = conf->address ? conf->address : at ? at->list : NULL;
    bool is_absent =
        !at || (!t->group->conf.with_absent && endpoint_load(conf->endpoint) & ENDPOINT_ABSENT);
    unsigned n = is_absent ? 0 : conf->address ? 1 : at->n;

    n = n < ENDPOINT_ADDRESSES ? n : ENDPOINT_ADDRESSES;
    if (n > 0)
        memcpy(slot->addresses, list, n * sizeof(*list));
    for (unsigned i = 0; i < n; i++)
        if (conf->port > 0)
            address_set_port(&slot->addresses[i], (uint16_t)conf->port);
        else if (conf->address && address_port(conf->address) == 0)
            address_set_port(&slot->addresses[i], address_port(&at->list[0]));
    slot->as_sessions = at && checker_is_session_way(at, slot->addresses, n);
    endpoint_release_addresses(at);
    return n;
}

void checker_choose_header(const struct checker_target *t, struct checker_slot *slot)
{
    const struct checker_rules_conf *rules = &slot->rules->conf;
    struct proxy_header_conf *header = &slot->send_proxy;

    *header = rules->check.send_proxy;
    if (t->conf.has_send_proxy)
        header->version = t->conf.send_proxy;
    switch (rules->header) {
    case CHECKER_HEADER_AUTO:
        if (!slot->as_sessions)
            header->version = PROXY_HEADER_NONE;
        break;
    case CHECKER_HEADER_YES:
        if (header->version == PROXY_HEADER_NONE)
            header->version = PROXY_HEADER_V1;
        break;
    case CHECKER_HEADER_NO: header->version = PROXY_HEADER_NONE; break;
    }
    slot->check.send_proxy = header;
}
