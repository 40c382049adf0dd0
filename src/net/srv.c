/* net/srv: see srv.h. */
#include "net/srv.h"

#include <ares.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SRV_CLASS_IN 1
#define SRV_TYPE     33

/* One lookup. */
struct srv_query {
    struct srv_record *out;
    size_t max;
    int result; /* as srv_resolve() */
    bool is_done;
};

int srv_open(void)
{
    return ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS ? 0 : -ENOMEM;
}

void srv_close(void)
{
    ares_library_cleanup();
}

static int srv_error(int status)
{
    switch (status) {
    case ARES_SUCCESS: return 0;
    case ARES_ENODATA:
    case ARES_ENOTFOUND:
    case ARES_EBADNAME: return -ENOENT;
    case ARES_ETIMEOUT:
    case ARES_ECONNREFUSED: return -EAGAIN;
    case ARES_ENOMEM: return -ENOMEM;
    default: return -EREMOTEIO;
    }
}

/*
 * Can it be a host? The root means that the service is decidedly not there; and whoever writes records is to name hosts and
 * none of the other things that an address may be: "*", or the path of a unix socket.
 */
static bool srv_accepts(const struct ares_srv_reply *record)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t len = strlen(record->host);

    return len > 0 && record->host[0] != '.' && strspn(record->host, allowed) == len &&
           len + sizeof(":65535") <= SRV_TARGET_BYTES && record->port != 0;
}

/* The same whatever order a name server gives them in, most of which turn it with each answer. */
static int srv_compare(const void *a, const void *b)
{
    const struct srv_record *one = a, *other = b;

    if (one->priority != other->priority)
        return one->priority < other->priority ? -1 : 1;
    if (one->weight != other->weight)
        return one->weight > other->weight ? -1 : 1;
    return strcmp(one->target, other->target);
}

static void srv_take(struct srv_record *out, const struct ares_srv_reply *record)
{
    (void)snprintf(out->target, sizeof(out->target), "%s:%u", record->host, record->port);
    out->priority = record->priority;
    out->weight = record->weight;
}

/* Put in order before any is left out. */
static int srv_sort(struct srv_query *q, const struct ares_srv_reply *records, size_t n)
{
    struct srv_record *all = malloc(n * sizeof(*all));
    size_t at = 0;

    if (!all)
        return -ENOMEM;
    for (const struct ares_srv_reply *r = records; r; r = r->next)
        if (srv_accepts(r))
            srv_take(&all[at++], r);
    qsort(all, n, sizeof(*all), srv_compare);
    n = n < q->max ? n : q->max;
    memcpy(q->out, all, n * sizeof(*all));
    free(all);
    return (int)n;
}

static int srv_read(struct srv_query *q, const unsigned char *answer, int len)
{
    struct ares_srv_reply *records = NULL;
    int rc = srv_error(ares_parse_srv_reply(answer, len, &records));
    size_t n = 0;

    for (const struct ares_srv_reply *r = records; rc == 0 && r; r = r->next)
        n += srv_accepts(r);
    if (rc == 0)
        rc = n > 0 ? srv_sort(q, records, n) : -ENOENT;
    if (records)
        ares_free_data(records);
    return rc;
}

static void srv_on_answer(void *arg, int status, int timeouts, unsigned char *answer, int len)
{
    struct srv_query *q = arg;

    (void)timeouts;
    q->result = srv_error(status);
    if (q->result == 0)
        q->result = srv_read(q, answer, len);
    q->is_done = true;
}

/* Until the answer is there, or c-ares has given up. */
static void srv_wait(ares_channel channel, const struct srv_query *q)
{
    while (!q->is_done) {
        ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
        struct pollfd polled[ARES_GETSOCK_MAXNUM];
        unsigned bits = (unsigned)ares_getsock(channel, sockets, ARES_GETSOCK_MAXNUM);
        struct timeval most = {.tv_sec = 1}, room, *left = ares_timeout(channel, &most, &room);
        nfds_t n = 0;

        for (int i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
            /* As ARES_GETSOCK_READABLE and _WRITABLE, which shift a signed 1 out of its range. */
            short events = (short)((bits >> i & 1 ? POLLIN : 0) |
                                   (bits >> (i + ARES_GETSOCK_MAXNUM) & 1 ? POLLOUT : 0));

            if (events != 0)
                polled[n++] = (struct pollfd){.fd = sockets[i], .events = events};
        }
        (void)poll(polled, n, (int)(left->tv_sec * 1000 + left->tv_usec / 1000 + 1));
        for (nfds_t i = 0; i < n; i++)
            ares_process_fd(channel,
                            (polled[i].revents & ~POLLOUT) ? polled[i].fd : ARES_SOCKET_BAD,
                            (polled[i].revents & POLLOUT) ? polled[i].fd : ARES_SOCKET_BAD);
        ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* what has timed out */
    }
}

int srv_resolve(struct srv_record *out, size_t max, const char *name)
{
    struct srv_query q = {.out = out, .max = max};
    ares_channel channel;
    int rc = srv_error(ares_init(&channel));

    if (rc < 0)
        return rc;
    ares_search(channel, name, SRV_CLASS_IN, SRV_TYPE, srv_on_answer, &q);
    srv_wait(channel, &q);
    ares_destroy(channel);
    return q.result;
}
