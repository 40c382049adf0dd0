/* net/dns_query: asks name servers. See dns_internal.h. */
#include <arpa/nameser.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "net/dns_internal.h"

/* Length in front of a message in TCP: RFC 1035, section 4.2.2. */
#define DNS_LENGTH_BYTES 2

/* The OPT record, for longer datagrams (RFC 6891), and its size, as libc has it. */
#define DNS_OPT_BYTES     11
#define DNS_DATAGRAM_SIZE 1200

#define DNS_ARCOUNT 10

static uint64_t dns_server_hash(const struct address *server)
{
    uint64_t hash = server->u.sa.sa_family == AF_INET
                        ? hash_stable(&server->u.in.sin_addr, sizeof(server->u.in.sin_addr))
                        : hash_stable(&server->u.in6.sin6_addr, sizeof(server->u.in6.sin6_addr));

    return hash_mix(hash + ntohs(server->u.in.sin_port)) | 1; /* not 0 */
}

void dns_servers_prefer(struct dns_servers *s)
{
    uint64_t first =
        s->preference ? atomic_load_explicit(&s->preference->server, memory_order_relaxed) : 0;

    for (unsigned i = 1; first != 0 && i < s->n; i++)
        if (dns_server_hash(&s->list[i]) == first) {
            struct address server = s->list[i];

            memmove(&s->list[1], &s->list[0], i * sizeof(server));
            s->list[0] = server;
        }
}

static unsigned char *dns_query_message(struct dns_query *q)
{
    return q->query + DNS_LENGTH_BYTES;
}

static void dns_query_set_len(struct dns_query *q, size_t len)
{
    q->query_len = len;
    q->query[0] = (unsigned char)(len >> 8);
    q->query[1] = (unsigned char)len;
}

static void dns_query_add_opt(struct dns_query *q)
{
    static const unsigned char opt[DNS_OPT_BYTES] = {0, 0, ns_t_opt, DNS_DATAGRAM_SIZE >> 8,
                                                     DNS_DATAGRAM_SIZE & 0xff};
    unsigned char *message = dns_query_message(q);

    memcpy(message + q->query_len, opt, sizeof(opt));
    message[DNS_ARCOUNT + 1] = 1;
    dns_query_set_len(q, q->query_len + sizeof(opt));
}

static void dns_query_remove_opt(struct dns_query *q)
{
    dns_query_message(q)[DNS_ARCOUNT + 1] = 0;
    dns_query_set_len(q, q->query_len - DNS_OPT_BYTES);
}

int dns_query_write(struct dns_query *q, const struct dns_servers *servers, const char *name,
                    uint16_t type)
{
    unsigned char *message = dns_query_message(q), *at = message + NS_HFIXEDSZ;
    uint64_t id = 0;
    int len = ns_name_compress(name, at, NS_MAXCDNAME, NULL, NULL);

    if (len < 0)
        return -EINVAL;
    if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
        id = hash_seed();
    memset(message, 0, NS_HFIXEDSZ);
    memcpy(message, &id, 2);
    message[2] = 1; /* recursion desired */
    message[5] = 1; /* one question */
    at += len;
    NS_PUT16(type, at);
    NS_PUT16(ns_c_in, at);
    q->type = type;
    dns_query_set_len(q, (size_t)(at - message));
    if (servers->sends_opt)
        dns_query_add_opt(q);
    return 0;
}

static void dns_query_close(struct dns_query *q)
{
    if (q->fd >= 0)
        close(q->fd);
    q->fd = -1;
}

static void dns_query_end(struct dns_query *q, int result)
{
    dns_query_close(q);
    q->result = result;
    q->is_done = true;
}

static bool dns_query_error_is_ours(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/* Connect to the name server whose turn it is; a datagram is sent at once. */
static int dns_query_open(struct dns_query *q, const struct dns_servers *servers)
{
    const struct address *server = &servers->list[q->turn % servers->n];
    int type = q->is_stream ? SOCK_STREAM : SOCK_DGRAM;

    q->moved = 0;
    q->until_ns = clock_add_ns(clock_now_ns(), servers->timeout_ns);
    q->fd = socket(server->u.sa.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (q->fd < 0)
        return -errno;
    if (connect(q->fd, &server->u.sa, server->len) < 0 && errno != EINPROGRESS)
        return -errno;
    if (!q->is_stream &&
        send(q->fd, dns_query_message(q), q->query_len, MSG_NOSIGNAL) != (ssize_t)q->query_len)
        return -errno;
    return 0;
}

/* Ask the name server whose turn it is, or the first one after it that can be asked. */
static void dns_query_ask(struct dns_query *q, const struct dns_servers *servers)
{
    while (q->turn < servers->n * servers->attempts) {
        int rc = dns_query_open(q, servers);

        if (rc == 0)
            return;
        dns_query_close(q);
        if (dns_query_error_is_ours(-rc)) {
            dns_query_end(q, rc);
            return;
        }
        q->turn++;
        q->is_stream = servers->by_tcp;
    }
    dns_query_end(q, q->has_failed ? -EREMOTEIO : -EAGAIN);
}

static void dns_query_next(struct dns_query *q, const struct dns_servers *servers, bool has_failed)
{
    dns_query_close(q);
    q->has_failed |= has_failed;
    q->turn++;
    q->is_stream = servers->by_tcp;
    dns_query_ask(q, servers);
}

static void dns_query_ask_again(struct dns_query *q, const struct dns_servers *servers, bool by_tcp)
{
    dns_query_close(q);
    q->is_stream = by_tcp;
    dns_query_ask(q, servers);
}

static void dns_query_judge(struct dns_query *q, const struct dns_servers *servers)
{
    enum dns_verdict verdict =
        dns_answer_check(q->answer, q->answer_len, dns_query_message(q), q->query_len);

    if (verdict == DNS_ANSWER_TRUNCATED && (q->is_stream || servers->takes_truncated))
        verdict = DNS_ANSWER_USABLE;
    if (verdict == DNS_ANSWER_USABLE &&
        dns_answer_read(q->answer, q->answer_len, q->type, NULL, NULL) == -EREMOTEIO)
        verdict = DNS_ANSWER_FAILED;
    switch (verdict) {
    case DNS_ANSWER_FOREIGN:
        if (q->is_stream)
            dns_query_next(q, servers, true);
        break; /* the answer may still come */
    case DNS_ANSWER_TRUNCATED: dns_query_ask_again(q, servers, true); break;
    case DNS_ANSWER_WITHOUT_OPT:
        dns_query_remove_opt(q);
        dns_query_ask_again(q, servers, q->is_stream);
        break;
    case DNS_ANSWER_FAILED: dns_query_next(q, servers, true); break;
    case DNS_ANSWER_USABLE:
        if (servers->preference)
            atomic_store_explicit(&servers->preference->server,
                                  dns_server_hash(&servers->list[q->turn % servers->n]),
                                  memory_order_relaxed);
        dns_query_end(q, 0);
    }
}

static void dns_query_receive(struct dns_query *q, const struct dns_servers *servers)
{
    ssize_t len = recv(q->fd, q->answer, NS_MAXMSG, 0);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len < 0) { /* such as ECONNREFUSED */
        dns_query_next(q, servers, false);
        return;
    }
    q->answer_len = (size_t)len;
    dns_query_judge(q, servers);
}

/* Move bytes of the stream, whose length and message are sent, then received. 1: all are there. */
static int dns_query_move(struct dns_query *q)
{
    size_t asked = DNS_LENGTH_BYTES + q->query_len, at = q->moved - asked;
    ssize_t len;

    if (q->moved < asked) {
        len = send(q->fd, q->query + q->moved, asked - q->moved, MSG_NOSIGNAL);
    } else if (at < DNS_LENGTH_BYTES) {
        len = recv(q->fd, q->answer + at, DNS_LENGTH_BYTES - at, 0);
    } else {
        at -= DNS_LENGTH_BYTES;
        len = recv(q->fd, q->answer + at, q->answer_len - at, 0);
    }
    if (len < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (len == 0)
        return -ECONNRESET;
    q->moved += (size_t)len;
    if (q->moved == asked + DNS_LENGTH_BYTES && at < DNS_LENGTH_BYTES) {
        q->answer_len = ns_get16(q->answer);
        return q->answer_len == 0 ? -EPROTO : 0;
    }
    return q->moved > asked + DNS_LENGTH_BYTES &&
           q->moved == asked + DNS_LENGTH_BYTES + q->answer_len;
}

static void dns_query_work(struct dns_query *q, const struct dns_servers *servers)
{
    int rc;

    if (!q->is_stream) {
        dns_query_receive(q, servers);
        return;
    }
    rc = dns_query_move(q);
    if (rc > 0)
        dns_query_judge(q, servers);
    else if (rc < 0)
        dns_query_next(q, servers, false);
}

static short dns_query_events(const struct dns_query *q)
{
    return q->is_stream && q->moved < DNS_LENGTH_BYTES + q->query_len ? POLLOUT : POLLIN;
}

/* Wait until something can be done; return when the wait began. */
static int64_t dns_query_wait(const struct dns_query *list, unsigned n, struct pollfd *polled)
{
    int64_t now_ns = clock_now_ns(), until_ns = CLOCK_NEVER;

    for (unsigned i = 0; i < n; i++) {
        polled[i] = (struct pollfd){.fd = -1};
        if (list[i].is_done)
            continue;
        polled[i] = (struct pollfd){.fd = list[i].fd, .events = dns_query_events(&list[i])};
        until_ns = list[i].until_ns < until_ns ? list[i].until_ns : until_ns;
    }
    if (poll(polled, n,
             until_ns > now_ns ? (int)((until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS) : 0) < 0)
        for (unsigned i = 0; i < n; i++)
            polled[i].revents = 0; /* EINTR */
    return now_ns;
}

/*
 * Is the time of the name server over? A process that was paused first reads what has come, and an
 * answer that is being received gets as much time again; not one that has no end.
 */
static bool dns_query_is_late(const struct dns_query *q, const struct dns_servers *servers,
                              int64_t began_ns, bool has_input)
{
    return !q->is_done &&
           clock_add_ns(q->until_ns, has_input ? servers->timeout_ns : 0) <= began_ns;
}

void dns_query_run(struct dns_query *list, unsigned n, const struct dns_servers *servers)
{
    struct pollfd polled[DNS_TYPES];

    MUST(n <= DNS_TYPES);
    for (unsigned i = 0; i < n; i++) {
        list[i].fd = -1;
        list[i].turn = 0;
        list[i].is_done = list[i].has_failed = false;
        list[i].is_stream = servers->by_tcp;
        dns_query_ask(&list[i], servers);
    }
    for (;;) {
        bool is_done = true;
        int64_t began_ns;

        for (unsigned i = 0; i < n; i++)
            is_done &= list[i].is_done;
        if (is_done)
            return;
        began_ns = dns_query_wait(list, n, polled);
        for (unsigned i = 0; i < n; i++) {
            bool has_input = polled[i].revents != 0;

            if (has_input)
                dns_query_work(&list[i], servers);
            if (dns_query_is_late(&list[i], servers, began_ns, has_input))
                dns_query_next(&list[i], servers, false);
        }
    }
}
