#include "failover/clients.h"

#include "common/die.h"
#include "common/net.h"
#include "failover/witness.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    REQUEST_BYTES = 160,
    HEAD_BYTES = 1024,
    BUFFER_BYTES = 64 << 10,
    LARGE_EVERY = 4,
    REST_MS = 10, /* after a failure, lest a proxy that fails at once be asked without end */
    NS_PER_MS = 1000000,
};

static const uint64_t ns_per_s = 1000000000;

/* A file is this text over and over. */
static const char text[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+\n";
enum { TEXT_BYTES = sizeof(text) - 1 };

const char *const client_kind_names[CLIENT_KINDS] = {"keeping", "fresh"};

struct client {
    enum client_kind kind;
    int fd; /* -1: none */
    bool is_resting;
    uint64_t rested_ns; /* when it may go on */
    uint64_t opened_ns;
    uint64_t begun_ns;
    unsigned request;
    char server;
    char line[REQUEST_BYTES];
    size_t line_len, sent;
    char head[HEAD_BYTES];
    size_t head_len;
    bool has_head;
    uint64_t body_len, received; /* of the body */
};

uint64_t clients_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * ns_per_s + (uint64_t)now.tv_nsec;
}

static void client_close(struct client *client)
{
    close(client->fd);
    client->fd = -1;
    client->server = '-';
}

/* The end of a request, good or bad, in the book. */
static uint64_t client_enter(struct clients *c, const struct client *client)
{
    struct client_book *book = &c->books[client->kind];
    uint64_t now_ns = clients_now_ns(), wait_ns = now_ns - client->begun_ns;

    histogram_add(&book->waits, wait_ns);
    if (wait_ns >= c->conf.slow_ns)
        book->slow++;
    return now_ns;
}

static void client_rest(struct client *client, uint64_t until_ns)
{
    client->is_resting = true;
    client->rested_ns = until_ns;
}

static void client_fail(struct clients *c, struct client *client, const char *what)
{
    uint64_t now_ns = client_enter(c, client);

    if (c->n_failures == c->max_failures) {
        c->max_failures = c->max_failures ? 2 * c->max_failures : 1024;
        c->failures = realloc(c->failures, c->max_failures * sizeof(*c->failures));
        if (!c->failures)
            die_errno("clients");
    }
    c->failures[c->n_failures++] = (struct failure){.kind = client->kind,
                                                    .request = client->request,
                                                    .opened_ns = client->opened_ns,
                                                    .begun_ns = client->begun_ns,
                                                    .ended_ns = now_ns,
                                                    .server = client->server,
                                                    .what = what};
    client_close(client);
    client_rest(client, now_ns + (uint64_t)REST_MS * NS_PER_MS);
}

static void client_fail_errno(struct clients *c, struct client *client)
{
    switch (errno) {
    case ECONNREFUSED: client_fail(c, client, "refused"); break;
    case ECONNRESET:
    case EPIPE: client_fail(c, client, "reset"); break;
    default: die_errno("a client");
    }
}

static void client_want(struct clients *c, struct client *client, uint32_t interest)
{
    struct epoll_event event = {.events = interest, .data.ptr = client};

    if (epoll_ctl(c->epfd, EPOLL_CTL_MOD, client->fd, &event) < 0)
        die_errno("epoll_ctl");
}

static void client_send(struct clients *c, struct client *client)
{
    ssize_t sent = send(client->fd, client->line + client->sent, client->line_len - client->sent,
                        MSG_NOSIGNAL);

    if (sent < 0 && errno == EAGAIN)
        return;
    if (sent < 0) {
        client_fail_errno(c, client);
        return;
    }
    client->sent += (size_t)sent;
    if (client->sent == client->line_len)
        client_want(c, client, EPOLLIN);
}

static void client_connect(struct clients *c, struct client *client)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = client};

    client->fd = net_connect(&c->conf.target);
    client->opened_ns = client->begun_ns;
    if (epoll_ctl(c->epfd, EPOLL_CTL_ADD, client->fd, &event) < 0)
        die_errno("epoll_ctl");
}

static void client_begin(struct clients *c, struct client *client)
{
    const char *file;
    const char *connection = client->kind == CLIENT_FRESH ? "Connection: close\r\n" : "";

    if (c->n_requests == WITNESS_REQUESTS_MAX)
        die("more than %d requests: a shorter run, please", WITNESS_REQUESTS_MAX);
    client->is_resting = false;
    client->request = c->n_requests++;
    file = client->request % LARGE_EVERY == 0 ? "large" : "small";
    client->line_len =
        (size_t)snprintf(client->line, REQUEST_BYTES, WITNESS_REQUEST "Host: failover\r\n%s\r\n",
                         file, client->request, connection);
    client->sent = client->head_len = 0;
    client->has_head = false;
    client->received = 0;
    client->begun_ns = clients_now_ns();
    if (client->fd < 0)
        client_connect(c, client);
    client_send(c, client);
}

static void client_finish(struct clients *c, struct client *client)
{
    uint64_t now_ns = client_enter(c, client);

    c->books[client->kind].done++;
    if (client->kind == CLIENT_FRESH)
        client_close(client);
    if (c->conf.pause_ns > 0)
        client_rest(client, now_ns + c->conf.pause_ns);
    else
        client_begin(c, client);
}

/* The value of a field of the head, which ends with a NUL. */
static const char *client_field(const struct client *client, const char *name)
{
    const char *field = strstr(client->head, name);

    if (!field)
        die("an answer without %s:\n%s", name, client->head);
    return field + strlen(name);
}

static void client_check(struct client *client, const char *data, size_t len)
{
    if (len > client->body_len - client->received)
        die("request %u: more came than was announced", client->request);
    while (len > 0) {
        size_t offset = client->received % TEXT_BYTES;
        size_t n = len < TEXT_BYTES - offset ? len : TEXT_BYTES - offset;

        if (memcmp(data, text + offset, n) != 0)
            die("request %u: a wrong byte", client->request);
        client->received += n;
        data += n;
        len -= n;
    }
}

/* Take what belongs to the head; how many bytes that was. */
static size_t client_take_head(struct client *client, const char *data, size_t len)
{
    size_t before = client->head_len, room = HEAD_BYTES - 1 - before;
    size_t n = len < room ? len : room;
    char *end;

    memcpy(client->head + before, data, n);
    client->head_len += n;
    client->head[client->head_len] = '\0';
    end = strstr(client->head, "\r\n\r\n");
    if (!end && n < len)
        die("an endless head:\n%s", client->head);
    if (!end)
        return n;
    end[4] = '\0';
    if (strncmp(client->head, "HTTP/1.1 200 ", 13) != 0)
        die("no answer, but:\n%s", client->head);
    client->has_head = true;
    client->body_len = strtoull(client_field(client, "Content-Length: "), NULL, 10);
    client->server = *client_field(client, "X-Server: ");
    return (size_t)(end + 4 - client->head) - before;
}

static void client_receive(struct clients *c, struct client *client)
{
    static char buffer[BUFFER_BYTES];
    ssize_t got = recv(client->fd, buffer, sizeof(buffer), 0);
    size_t head_len = 0;

    if (got < 0 && errno == EAGAIN)
        return;
    if (got < 0) {
        client_fail_errno(c, client);
        return;
    }
    if (got == 0) {
        client_fail(c, client, "closed");
        return;
    }
    if (!client->has_head)
        head_len = client_take_head(client, buffer, (size_t)got);
    if (!client->has_head)
        return;
    client_check(client, buffer + head_len, (size_t)got - head_len);
    if (client->received == client->body_len)
        client_finish(c, client);
}

/*
 * Something came between two requests: the end of the connection, which is no failure: the next one
 * is opened in time.
 */
static void client_idle(struct client *client)
{
    char byte;
    ssize_t got = recv(client->fd, &byte, 1, 0);

    if (got < 0 && errno == EAGAIN)
        return;
    if (got > 0)
        die("request %u: something came behind the answer", client->request);
    client_close(client);
}

void clients_event(struct clients *c, void *cookie, uint32_t events)
{
    struct client *client = cookie;

    if (client->fd >= 0 && (events & EPOLLOUT) && !client->is_resting &&
        client->sent < client->line_len)
        client_send(c, client);
    if (client->fd >= 0 && client->is_resting)
        client_idle(client);
    else if (client->fd >= 0 && (events & ~(uint32_t)EPOLLOUT))
        client_receive(c, client);
}

void clients_look(struct clients *c)
{
    uint64_t now_ns = clients_now_ns();

    for (unsigned i = 0; i < c->n; i++) {
        struct client *client = &c->all[i];

        if (client->is_resting && now_ns >= client->rested_ns)
            client_begin(c, client);
        else if (!client->is_resting && now_ns >= client->begun_ns + c->conf.limit_ns)
            client_fail(c, client, "timeout");
    }
}

void clients_open(struct clients *c, const struct clients_conf *conf, int epfd)
{
    c->conf = *conf;
    c->epfd = epfd;
    c->n = CLIENT_KINDS * conf->of_each_kind;
    c->all = calloc(c->n, sizeof(*c->all));
    if (!c->all)
        die_errno("clients");
    for (unsigned i = 0; i < c->n; i++) {
        c->all[i].kind = (enum client_kind)(i % CLIENT_KINDS);
        c->all[i].fd = -1;
        c->all[i].server = '-';
        client_begin(c, &c->all[i]);
    }
}
