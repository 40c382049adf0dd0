#include "support/timed.h"

#include <check.h>
#include <stdalign.h>
#include <stdlib.h>
#include <unistd.h>

#include "service/relay.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/until.h"

struct timed timed;
static unsigned n_pairs, before;

static int pair_create(struct session **out, const struct service *service)
{
    struct pair *p = aligned_alloc(alignof(struct pair), sizeof(*p));

    ck_assert_ptr_nonnull(p);
    session_init(&p->session, service);
    timed.pairs[n_pairs++] = p;
    *out = &p->session;
    return 0;
}

void timed_pair_connect(struct pair *p, int fd)
{
    struct session *s = &p->session;

    channel_init(&p->server, s->owner->net, fd);
    session_leg_open(s, 1, &p->server);
    relay_init(&p->to_server, s, &p->client, &p->server);
    relay_init(&p->to_client, s, &p->server, &p->client);
    channel_start(&p->server);
    channel_start(&p->client);
}

static void pair_open(struct session *s)
{
    struct pair *p = CONTAINER_OF(s, struct pair, session);

    channel_init(&p->client, s->owner->net, s->client_fd);
    s->client_fd = -1;
    session_leg_open(s, 0, &p->client);
    relay_init(&p->to_server, s, &p->client, &p->client);
}

static void pair_start(struct session *s)
{
    struct pair *p = CONTAINER_OF(s, struct pair, session);

    if (timed.server_fd >= 0)
        timed_pair_connect(p, timed.server_fd);
}

static int64_t pair_server_closed_timeout_ns(const struct session *s)
{
    (void)s;
    return timed.server_closed_timeout_ns;
}

static int64_t pair_server_idle_timeout_ns(const struct session *s)
{
    (void)s;
    return timed.server_idle_timeout_ns;
}

static void pair_cancel(struct session *s)
{
    (void)s;
}

static void pair_free(struct session *s)
{
    free(CONTAINER_OF(s, struct pair, session));
}

static const struct service_ops pair_ops = {.name = "pair",
                                            .descriptors = 2,
                                            .create = pair_create,
                                            .open = pair_open,
                                            .start = pair_start,
                                            .server_idle_timeout_ns = pair_server_idle_timeout_ns,
                                            .server_closed_timeout_ns =
                                                pair_server_closed_timeout_ns,
                                            .cancel = pair_cancel,
                                            .free = pair_free};

void timed_setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    host_open(&timed.host, &pair_ops, NULL);
    n_pairs = 0;
    timed.server_idle_timeout_ns = 0;
    timed.server_closed_timeout_ns = 0;
    timed.client = timed.server = -1;
}

void timed_teardown(void)
{
    host_close(&timed.host);
    if (timed.client >= 0)
        close(timed.client);
    if (timed.server >= 0)
        close(timed.server);
    ck_assert_uint_eq(process_descriptors(), before);
}

void timed_connect_both(void)
{
    sockets_tcp(&timed.server_fd, &timed.server);
    timed.client = host_client(&timed.host);
}

void timed_expect_end_after(int64_t at_ns, int least_ms, enum session_reason reason)
{
    sockets_hear_end(timed.client);
    ck_assert_int_ge(since_ms(at_ns), least_ms - 20); /* the loop's clock is that of its turn */
    ck_assert_int_lt(since_ms(at_ns), least_ms + 5000);
    sockets_hear_end(timed.server);
    close(timed.client);
    close(timed.server);
    timed.client = timed.server = -1;
    host_expect_end(&timed.host, reason);
}
