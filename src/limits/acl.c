#include "limits/acl.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "limits/prefix_table.h"
#include "net/address.h"
#include "net/cidr.h"

#define ACL_LOG_INTERVAL_NS (1 * NS_PER_S)

struct acl {
    struct acl_conf conf;
    struct prefix_table *table;
    struct log_limit log_limit;
};

int acl_create(struct acl **out, const struct acl_conf *conf)
{
    struct acl *a;
    int rc;

    *out = NULL;
    if (conf->n == 0 && !conf->deny_others)
        return 0;
    a = calloc(1, sizeof(*a));
    if (!a)
        return -ENOMEM;
    a->conf = *conf;
    rc = prefix_table_create(&a->table, conf->blocks, conf->n);
    if (rc < 0) {
        free(a);
        return rc;
    }
    *out = a;
    return 0;
}

static void acl_log_denied(struct acl *a, const char *listener, const struct address *client,
                           uint32_t rule)
{
    char peer[ADDRESS_TEXT_BYTES], block[CIDR_TEXT_BYTES];
    unsigned suppressed;

    if (!log_wanted(LOG_LEVEL_INFO) ||
        !log_allowed(&a->log_limit, ACL_LOG_INTERVAL_NS, &suppressed))
        return;
    log_info(
        "listen %s: client %s: denied%s%s%s", listener, address_format(peer, sizeof(peer), client),
        rule == PREFIX_TABLE_NONE ? ": no rule matched" : " by rule ",
        rule == PREFIX_TABLE_NONE ? "" : cidr_format(block, sizeof(block), &a->conf.blocks[rule]),
        LOG_SUPPRESSED(suppressed));
}

bool acl_allows(struct acl *a, const char *listener, const struct address *client)
{
    uint32_t rule;

    if (!a)
        return true;
    rule = prefix_table_find(a->table, client);
    if (rule == PREFIX_TABLE_NONE ? !a->conf.deny_others : a->conf.allow[rule])
        return true;
    acl_log_denied(a, listener, client, rule);
    return false;
}

void acl_destroy(struct acl *a)
{
    if (!a)
        return;
    prefix_table_destroy(a->table);
    free(a);
}
