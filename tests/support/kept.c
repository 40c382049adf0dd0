#include "support/kept.h"

#include <check.h>
#include <stdatomic.h>
#include <unistd.h>

#include "net/descriptor_budget.h"
#include "net/netloop.h"
#include "spare/spare_internal.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/until.h"

/* With UNTIL_LIMIT_NS, what a test waits for could be the age limit, which is a quarter shorter. */
#define NEVER_TOO_OLD_NS (100 * UNTIL_LIMIT_NS)

struct kept kept = {.server_conf = {.id = "a",
                                    .address_text = "there",
                                    .addresses = &kept.address,
                                    .n_addresses = 1,
                                    .weight = 1}};
static struct netloop *net;
static struct spare_pools *pools;

void kept_setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    kept.before = process_descriptors();
    kept.listening = sockets_listen(&kept.address, 64);
    kept.server_conf.max_connections = 0;
    kept.server_conf.backup = false;
    kept.conf = (struct upstream_conf){.name = "back",
                                       .servers = &kept.server_conf,
                                       .n_servers = 1,
                                       .connect_timeout_ns = 5 * NS_PER_S,
                                       .spare = {.keep = KEEP, .max_age_ns = NEVER_TOO_OLD_NS}};
    kept.descriptors = (struct descriptor_budget){.max = 1000, .reserve = 10};
    kept.n_accepted = 0;
}

void kept_open_pool(void)
{
    struct spare_pools_change *change;

    ck_assert_int_eq(upstream_create(&kept.upstream, &kept.conf,
                                     &(struct upstream_env){.spares = &spare_upstream_ops}),
                     0);
    kept.server = membership_now(&kept.upstream->membership)->servers[0];
    kept.loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, kept.loop), 0);
    net->descriptors = &kept.descriptors;
    ck_assert_int_eq(spare_pools_create(&pools, NULL), 0);
    ck_assert_int_eq(spare_pools_add(pools, net, 0, &kept.pool), 0);
    ck_assert_int_eq(spare_pools_prepare(pools, &kept.upstream, 1, &change), 0);
    spare_pools_commit(change);
    spare_pools_refresh(pools);
}

void kept_do_stop(void *arg)
{
    (void)arg;
    spare_pool_stop(kept.pool);
}

void kept_teardown(void)
{
    loop_runner_call(kept.loop, kept_do_stop, NULL);
    loop_runner_stop(kept.loop);
    ck_assert_uint_eq(ref_count(&kept.server->references), 1);
    ck_assert_uint_eq(atomic_load(&kept.descriptors.used) + atomic_load(&kept.descriptors.lent), 0);
    spare_pools_destroy(pools);
    netloop_destroy(net);
    loop_destroy(kept.loop);
    upstream_destroy(kept.upstream);
    while (kept.n_accepted > 0)
        close(kept.accepted[--kept.n_accepted]);
    if (kept.listening >= 0)
        close(kept.listening);
    ck_assert_uint_eq(process_descriptors(), kept.before);
}

uint64_t kept_counted(enum spare_count what)
{
    return atomic_load(&spare_of(kept.server)->base.counts[what]);
}

unsigned kept_idle(void)
{
    return spare_now(spare_of(kept.server));
}

void kept_accept_some(unsigned n)
{
    while (n-- > 0)
        kept.accepted[kept.n_accepted++] = sockets_accept(kept.listening);
}

void kept_close_accepted(void)
{
    while (kept.n_accepted > 0)
        close(kept.accepted[--kept.n_accepted]);
}

void kept_do_take(void *arg)
{
    struct take *t = arg;
    struct session_spare taken;

    t->fd = -1;
    if (!spare_take(kept.pool, kept.server, &taken))
        return;
    t->fd = taken.fd;
    t->address = taken.addresses->list[taken.which];
    endpoint_release_addresses(taken.addresses);
}

int kept_take(void)
{
    struct take t;

    loop_runner_call(kept.loop, kept_do_take, &t);
    if (t.fd >= 0)
        ck_assert(address_equal(&t.address, &kept.address));
    return t.fd;
}
