/* net/sock: ports to connect from are tried one after the other, beside other threads too. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/sock.h"
#include "support/sockets.h"
#include "support/suite.h"

#define MANY  600 /* more than are tried while all are in use */
#define PORTS 10

static struct sock_ports ports;
static const struct sock_connect_conf conf = {.ports = &ports};
static struct address server;
static int listening;

/* A source of its own for this process: no other program has its ports. */
static union {
    struct sock_sources sources;
    uint8_t bytes[sizeof(struct sock_sources) + 2 * sizeof(struct address)];
} from;

static void setup(void)
{
    struct address *source = from.sources.list;

    listening = sockets_listen(&server, MANY);
    for (unsigned i = 0; i < 2; i++) {
        sockets_loopback(&source[i], 0);
        source[i].u.in.sin_addr.s_addr = htonl(0x7f800001 + 2 * (unsigned)getpid() % 0x7ffff0 + i);
    }
    from.sources.n = 1;
    ports = (struct sock_ports){.first = 20000, .n = MANY};
}

static void teardown(void)
{
    close(listening);
}

GROUP(sock_ports, setup, teardown);

static int connect_from_ports(int *out)
{
    struct sock_connect_conf with = conf;
    int rc;

    with.sources = &from.sources;
    rc = sock_connect(out, &server, &with);
    return rc == -EINPROGRESS ? 0 : rc;
}

static unsigned port_of(int fd)
{
    struct address a;

    ck_assert_int_eq(sock_local(&a, fd), 0);
    return address_port(&a);
}

/* Connect from all ports, into ${fds}. */
static void use_all(int *fds)
{
    for (unsigned i = 0; i < ports.n; i++)
        ck_assert_int_eq(connect_from_ports(&fds[i]), 0);
}

static void close_all(const int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sock_close_reset(fds[i]);
}

TEST(sock_ports, the_only_free_port_of_many_is_found)
{
    int fds[MANY], fd;

    use_all(fds);
    sock_close_reset(fds[MANY - 1]);
    ck_assert_int_eq(connect_from_ports(&fd), 0);
    ck_assert_uint_eq(port_of(fd), 20000 + MANY - 1);
    fds[MANY - 1] = fd;
    close_all(fds, MANY);
}

TEST(sock_ports, a_connect_goes_on_behind_the_port_of_the_last_one)
{
    int fds[MANY], fd;

    ports.n = PORTS;
    use_all(fds);
    sock_close_reset(fds[4]);
    sock_close_reset(fds[5]);
    for (unsigned i = 4; i < 6; i++) {
        ck_assert_int_eq(connect_from_ports(&fds[i]), 0);
        ck_assert_uint_eq(port_of(fds[i]), 20000 + i);
    }
    ck_assert_uint_eq(atomic_load(&ports.turn) % PORTS, 6);
    ck_assert_int_eq(connect_from_ports(&fd), -EADDRNOTAVAIL);
    close_all(fds, PORTS);
}

TEST(sock_ports, while_all_of_many_are_in_use_each_connect_tries_others)
{
    unsigned before;
    int fds[MANY], fd;

    use_all(fds);
    ck_assert_int_eq(connect_from_ports(&fd), -EADDRNOTAVAIL);

    ck_assert_int_ne(atomic_load(&ports.all_used_at_ns), 0);
    atomic_store(&ports.all_used_at_ns, clock_now_ns() + 3600 * NS_PER_S); /* however slow */
    before = atomic_load(&ports.turn);
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert_int_eq(connect_from_ports(&fd), -EADDRNOTAVAIL);
        ck_assert_uint_eq(atomic_load(&ports.turn), before + 256 * i);
    }
    close_all(fds, MANY);
}

TEST(sock_ports, every_source_has_all_ports)
{
    int fds[2 * MANY], fd;

    from.sources.n = 2;
    for (unsigned i = 0; i < 2 * MANY; i++)
        ck_assert_int_eq(connect_from_ports(&fds[i]), 0);
    ck_assert_int_eq(connect_from_ports(&fd), -EADDRNOTAVAIL);
    close_all(fds, 2 * MANY);
}

/* Take turns as other threads do that connect at the same time. */
static void *take_turns(void *done)
{
    while (!atomic_load((_Atomic bool *)done))
        atomic_fetch_add(&ports.turn, 1);
    return NULL;
}

TEST(sock_ports, turns_of_other_threads_leave_no_port_out)
{
    int fds[PORTS], fd;
    _Atomic bool done = false;
    pthread_t other;

    ports.n = PORTS;
    use_all(fds);
    ck_assert_int_eq(pthread_create(&other, NULL, take_turns, &done), 0);
    for (unsigned i = 0; i < 60 * PORTS; i++) {
        sock_close_reset(fds[i % PORTS]);
        fd = -1;
        (void)connect_from_ports(&fd);
        fds[i % PORTS] = fd;
        if (fd < 0)
            break;
    }
    atomic_store(&done, true);
    pthread_join(other, NULL);
    ck_assert_int_ge(fd, 0);
    close_all(fds, PORTS);
}
