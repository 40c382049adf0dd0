/* support/proxied: see proxied.h. */
#include "support/proxied.h"

#include <check.h>
#include <unistd.h>

#include "base/clock.h"
#include "service/proxy.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/sockets.h"

struct proxied proxied;

static unsigned descriptors_before;

void proxied_enter(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    descriptors_before = process_descriptors();
    proxied.conf = (struct upstream_conf){.name = "back",
                                          .servers = proxied.servers,
                                          .connect_timeout_ns = 5 * NS_PER_S,
                                          .retries = 3};
    for (unsigned i = 0; i < PROXIED_SERVERS; i++)
        proxied.fds[i] = -1;
    proxied.client = proxied.server = -1;
}

void proxied_enter_with_server(void)
{
    proxied_enter();
    proxied.conf.retries = 0;
    proxied_add(0, PROXIED_ANSWERS);
    proxied_open(1);
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

void proxied_leave(void)
{
    host_close(&proxied.host);
    upstream_destroy(proxied.upstream);
    for (unsigned i = 0; i < PROXIED_SERVERS; i++)
        close_if_open(proxied.fds[i]);
    close_if_open(proxied.client);
    close_if_open(proxied.server);
    ck_assert_uint_eq(process_descriptors(), descriptors_before);
}

void proxied_add(unsigned i, enum proxied_server behaviour)
{
    static const char *const ids[] = {"a", "b", "c"};
    struct address *at = &proxied.addresses[i];

    proxied.fds[i] = behaviour == PROXIED_REFUSES ? sockets_bound(at) : sockets_listen(at, 64);
    proxied.servers[i] =
        (struct upstream_server_conf){.id = ids[i],
                                      .address_text = "there",
                                      .addresses = at,
                                      .n_addresses = behaviour == PROXIED_UNKNOWN ? 0 : 1,
                                      .weight = 1};
}

void proxied_open(unsigned n)
{
    proxied.conf.n_servers = n;
    ck_assert_int_eq(upstream_create(&proxied.upstream, &proxied.conf, NULL), 0);
    host_open(&proxied.host, &proxy_ops, proxied.upstream);
}

void proxied_connect(void)
{
    proxied.client = host_client(&proxied.host);
    proxied.server = sockets_accept(proxied.fds[0]);
    /* What comes through shows that the session knows the connection, too. */
    sockets_say(proxied.client, "x");
    sockets_hear(proxied.server, "x");
}

void proxied_expect_served_by(unsigned i)
{
    int client = host_client(&proxied.host), server = sockets_accept(proxied.fds[i]);

    sockets_say(client, "x");
    sockets_hear(server, "x");
    close(client);
    close(server);
}

void proxied_expect_reset(enum session_reason reason)
{
    int client = host_client(&proxied.host);

    sockets_hear_reset(client);
    close(client);
    host_expect_end(&proxied.host, reason);
}

struct upstream_server *proxied_state(unsigned i)
{
    return membership_now(&proxied.upstream->membership)->servers[i];
}
