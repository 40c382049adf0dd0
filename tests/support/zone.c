/* support/zone: see zone.h. */
#include "support/zone.h"

#include <arpa/nameser.h>
#include <check.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/names.h"

#define ENTRIES      8
#define ANSWER_BYTES 8192

/* Sockets that get lies without end. */
#define LIED_TO 4

static struct {
    int datagrams, listener;
    enum zone_way way;
    unsigned rcode, port;
    pthread_t thread;
    struct sockaddr_in lied_to[LIED_TO];
    unsigned n_lied_to;
    unsigned char lie[ANSWER_BYTES];
    size_t lie_bytes;
} servers[ZONE_SERVERS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct zone_entry entries[ENTRIES];
static unsigned n_entries, n_servers;
static char asked[4096];
static atomic_bool is_over;

struct question {
    char name[256];
    unsigned type;
    size_t len; /* of the question section */
    bool has_opt;
};

static struct question question_read(const unsigned char *query, size_t len)
{
    struct question q = {.len = 0};
    size_t at = NS_HFIXEDSZ;

    while (at < len && query[at] > 0) {
        size_t used = strlen(q.name);

        snprintf(q.name + used, sizeof(q.name) - used, "%s%.*s", used > 0 ? "." : "", query[at],
                 (const char *)query + at + 1);
        at += 1u + query[at];
    }
    ck_assert_uint_le(at + 5, len);
    q.type = ns_get16(query + at + 1);
    q.len = at + 5 - NS_HFIXEDSZ;
    q.has_opt = ns_get16(query + 10) == 1;
    return q;
}

static const struct zone_entry *find(const struct question *q)
{
    for (unsigned i = 0; i < n_entries; i++)
        if (entries[i].type == (int)q->type && strcmp(entries[i].name, q->name) == 0)
            return &entries[i];
    return NULL;
}

/* Write the answer; 0: none. */
static size_t answer(unsigned char *out, const unsigned char *query, size_t len, unsigned server,
                     bool by_tcp, enum zone_way *way)
{
    struct question q = question_read(query, len);
    size_t used = strlen(asked), end = NS_HFIXEDSZ + q.len;
    const struct zone_entry *e = find(&q);
    unsigned rcode = e ? e->rcode : ns_r_nxdomain;
    bool records;

    snprintf(asked + used, sizeof(asked) - used, "%s/%u@%u%s ", q.name, q.type, server,
             by_tcp ? "+tcp" : "");
    *way = servers[server].way == ZONE_ANSWERS && e ? e->way : servers[server].way;
    rcode = servers[server].rcode > 0 ? servers[server].rcode : rcode;
    rcode = *way == ZONE_NO_OPT && q.has_opt ? ns_r_formerr : rcode;
    records = e && rcode == 0 && *way != ZONE_REFERS && (*way != ZONE_TRUNCATES || by_tcp);
    memcpy(out, query, end);
    out[2] = *way == ZONE_TRUNCATES && !by_tcp ? 0x83 : 0x81;
    out[3] = (unsigned char)((*way == ZONE_REFERS ? 0 : 0x80) | rcode);
    memset(out + 6, 0, 6);
    if (records) {
        out[7] = (unsigned char)e->count;
        memcpy(out + end, e->records, e->len);
        end += e->len - e->cut;
    }
    return *way == ZONE_SILENT ? 0 : end;
}

static void send_lies(int fd, const struct sockaddr_in *to, const unsigned char *truth, size_t len)
{
    unsigned char lie[ANSWER_BYTES];

    for (unsigned at = 0; at < 3; at++) {
        static const unsigned char places[] = {0, NS_HFIXEDSZ + 1, 4};

        memcpy(lie, truth, len);
        lie[places[at]] ^= 1;
        lie[len - 1] ^= 0xff;
        sendto(fd, lie, at == 2 ? 5 : len, 0, (const struct sockaddr *)to, sizeof(*to));
    }
}

static void serve_datagram(unsigned server)
{
    unsigned char query[512], out[ANSWER_BYTES];
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from);
    int fd = servers[server].datagrams;
    ssize_t len = recvfrom(fd, query, sizeof(query), 0, (struct sockaddr *)&from, &from_len);
    enum zone_way way;
    size_t n;

    if (len < NS_HFIXEDSZ)
        return;
    pthread_mutex_lock(&lock);
    n = answer(out, query, (size_t)len, server, false, &way);
    pthread_mutex_unlock(&lock);
    if (way == ZONE_LIES_FIRST)
        send_lies(fd, &from, out, n);
    if (way == ZONE_ONLY_LIES && servers[server].n_lied_to < LIED_TO) {
        servers[server].lied_to[servers[server].n_lied_to++] = from;
        memcpy(servers[server].lie, out, servers[server].lie_bytes = n);
        return;
    }
    if (n > 0)
        sendto(fd, out, n, 0, (struct sockaddr *)&from, from_len);
}

/* The length and the query, byte by byte; the answer in three parts, and something behind it. */
static void serve_stream(unsigned server)
{
    unsigned char query[512], out[2 + ANSWER_BYTES + 1];
    int fd = accept(servers[server].listener, NULL, NULL);
    size_t len = 0, n;
    enum zone_way way;

    if (fd < 0)
        return;
    while ((len < 2 || len < 2u + ns_get16(query)) && read(fd, query + len, 1) == 1)
        len++;
    pthread_mutex_lock(&lock);
    n = len > 2 ? answer(out + 2, query + 2, len - 2, server, true, &way) : 0;
    pthread_mutex_unlock(&lock);
    out[0] = (unsigned char)(n >> 8);
    out[1] = (unsigned char)n;
    out[2 + n] = 0;
    if (n > 0 && write(fd, out, 1) == 1) {
        usleep(1000);
        ck_assert_int_eq(write(fd, out + 1, n / 2), (ssize_t)n / 2);
        usleep(1000);
        ck_assert_int_eq(write(fd, out + 1 + n / 2, n - n / 2 + 2), (ssize_t)(n - n / 2 + 2));
    }
    close(fd);
}

static void go_on_lying(unsigned server)
{
    for (unsigned i = 0; i < servers[server].n_lied_to; i++)
        for (unsigned times = 0; times < 20; times++)
            send_lies(servers[server].datagrams, &servers[server].lied_to[i], servers[server].lie,
                      servers[server].lie_bytes);
}

static void *serve(void *arg)
{
    unsigned server = (unsigned)(size_t)arg;

    while (!atomic_load(&is_over)) {
        struct pollfd polled[2] = {{.fd = servers[server].datagrams, .events = POLLIN},
                                   {.fd = servers[server].listener, .events = POLLIN}};

        go_on_lying(server);
        poll(polled, 2, servers[server].n_lied_to > 0 ? 0 : 20);
        if (polled[0].revents)
            serve_datagram(server);
        if (polled[1].revents)
            serve_stream(server);
    }
    return NULL;
}

static void open_server(unsigned i)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    for (;;) { /* until a port is free for both */
        at.sin_port = 0;
        servers[i].datagrams = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        servers[i].listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(servers[i].datagrams, (struct sockaddr *)&at, sizeof(at)), 0);
        ck_assert_int_eq(getsockname(servers[i].datagrams, (struct sockaddr *)&at, &len), 0);
        if (bind(servers[i].listener, (struct sockaddr *)&at, sizeof(at)) == 0)
            break;
        close(servers[i].datagrams);
        close(servers[i].listener);
    }
    ck_assert_int_eq(listen(servers[i].listener, 4), 0);
    servers[i].port = ntohs(at.sin_port);
    ck_assert_int_eq(pthread_create(&servers[i].thread, NULL, serve, (void *)(size_t)i), 0);
}

void zone_open(unsigned n)
{
    ck_assert_uint_le(n, ZONE_SERVERS);
    n_servers = n;
    for (unsigned i = 0; i < n; i++)
        open_server(i);
    zone_revive();
}

void zone_close(void)
{
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < n_servers; i++) {
        pthread_join(servers[i].thread, NULL);
        close(servers[i].datagrams);
        close(servers[i].listener);
    }
}

void zone_server(unsigned i, enum zone_way way, unsigned rcode)
{
    pthread_mutex_lock(&lock);
    servers[i].way = way;
    servers[i].rcode = rcode;
    pthread_mutex_unlock(&lock);
}

static void use_servers(unsigned without)
{
    unsigned ports[ZONE_SERVERS];

    for (unsigned i = 0; i < n_servers; i++)
        ports[i] = i == without ? 1 : servers[i].port; /* tcpmux: nobody listens there */
    names_use_servers(ports, n_servers);
}

void zone_kill(unsigned i)
{
    use_servers(i);
}

void zone_revive(void)
{
    use_servers(n_servers);
}

struct zone_entry *zone_add(const char *name, int type)
{
    struct zone_entry *e = &entries[n_entries];

    ck_assert_uint_lt(n_entries, ENTRIES);
    *e = (struct zone_entry){.type = type};
    snprintf(e->name, sizeof(e->name), "%s", name);
    pthread_mutex_lock(&lock);
    n_entries++;
    pthread_mutex_unlock(&lock);
    return e;
}

static void put(struct zone_entry *e, const void *data, size_t len)
{
    ck_assert_uint_le(e->len + len, sizeof(e->records));
    if (len > 0)
        memcpy(e->records + e->len, data, len);
    e->len += len;
}

static void put16(struct zone_entry *e, unsigned value)
{
    unsigned char data[2] = {(unsigned char)(value >> 8), (unsigned char)value};

    put(e, data, sizeof(data));
}

void zone_put(struct zone_entry *e, const char *owner, int type, unsigned ttl_s, const void *data,
              size_t len)
{
    pthread_mutex_lock(&lock);
    e->count++;
    if (owner)
        put(e, owner, strlen(owner) + 1);
    else
        put16(e, 0xc00c);
    put16(e, (unsigned)type);
    put16(e, ns_c_in);
    put16(e, 0);
    put16(e, ttl_s);
    put16(e, (unsigned)len);
    put(e, data, len);
    pthread_mutex_unlock(&lock);
}

const char *zone_asked(void)
{
    static char copy[sizeof(asked)];

    pthread_mutex_lock(&lock);
    memcpy(copy, asked, sizeof(copy));
    pthread_mutex_unlock(&lock);
    return copy;
}

unsigned zone_count(const char *text)
{
    unsigned count = 0;

    for (const char *at = zone_asked(); (at = strstr(at, text)); at++)
        count++;
    return count;
}

void zone_forget(void)
{
    pthread_mutex_lock(&lock);
    asked[0] = '\0';
    pthread_mutex_unlock(&lock);
}
