#include "support/logged.h"

#include <check.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "service/proxy.h"
#include "stats/access_log.h"
#include "stats/access_log_format.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/until.h"
#include "upstream/upstream.h"

static struct arena *arena;
static struct access_log *al;

struct logged logged = {.servers = {{.id = "a",
                                     .address_text = "there",
                                     .addresses = &logged.address[0],
                                     .n_addresses = 1,
                                     .weight = 1},
                                    {.id = "b",
                                     .address_text = "there",
                                     .addresses = &logged.address[1],
                                     .n_addresses = 1,
                                     .weight = 1}},
                        .conf = {.name = "back",
                                 .servers = logged.servers,
                                 .n_servers = 2,
                                 .balance = BALANCER_FIRST,
                                 .retries = 3,
                                 .connect_timeout_ns = 5 * NS_PER_S},
                        .listening = -1,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
static size_t text_len;

static ssize_t keep(void *cookie, const char *lines, size_t len)
{
    (void)cookie;
    pthread_mutex_lock(&logged.lock);
    ck_assert_uint_lt(text_len + len, sizeof(logged.text));
    memcpy(logged.text + text_len, lines, len);
    text_len += len;
    pthread_mutex_unlock(&logged.lock);
    return (ssize_t)len;
}

unsigned logged_lines(void)
{
    unsigned n = 0;

    pthread_mutex_lock(&logged.lock);
    for (size_t i = 0; i < text_len; i++)
        n += logged.text[i] == '\n';
    pthread_mutex_unlock(&logged.lock);
    return n;
}

void logged_add_log(const char *format)
{
    struct service *service = &logged.host.service;
    struct service_access_log *to = &logged.logs[service->n_access_logs++];
    struct access_log_format_problem problem;

    to->log = al;
    ck_assert_int_eq(access_log_format_parse(&to->format, format, arena, &problem), 0);
    service->access_logs = logged.logs;
}

void logged_open_host(const struct service_ops *ops, const char *format)
{
    const struct access_log_conf log = {
        .name = "x", .sink = {.write = keep}, .pool = 5, .max_bytes = 1 << 17};

    log_lines_capture(LOG_LEVEL_INFO);
    ck_assert_int_eq(arena_create(&arena), 0);
    ck_assert_int_eq(access_log_create(&al, &log), 0);
    host_open(&logged.host, ops, logged.upstream);
    logged.host.service.listener = "front";
    logged_add_log(format);
}

void logged_open_proxy(const char *format)
{
    logged.listening = sockets_listen(&logged.address[1], 64);
    close(sockets_bound(&logged.address[0])); /* refuses */
    ck_assert_int_eq(upstream_create(&logged.upstream, &logged.conf, NULL), 0);
    logged_open_host(&proxy_ops, format);
}

void logged_teardown(void)
{
    host_close(&logged.host);
    ck_assert_int_eq(access_log_finish(al, clock_now_ns() + 10 * NS_PER_S), 0);
    access_log_destroy(al);
    arena_release(arena);
    upstream_destroy(logged.upstream);
    if (logged.listening >= 0)
        close(logged.listening);
}

void logged_expect(const char *wanted)
{
    UNTIL(logged_lines() > 0);
    ck_assert_str_eq(logged.text, wanted);
}
