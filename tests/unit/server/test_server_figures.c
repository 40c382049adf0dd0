/*
 * server/server_figures: a walk that may be interrupted at any object while the configuration
 * changes.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/server.h"
#include "server/server_conf.h"
#include "server/server_figures.h"
#include "stats/figure.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define SERVERS 3

static struct server *server;
static struct address addresses[2], back;
static struct upstream_server_conf servers[2][SERVERS];
static struct upstream_conf upstreams[2][2];
static struct listener_conf listeners[2][2];
static struct server_conf confs[2];
static int holders[2];
static int listening, done_fd;
static unsigned before;

/* What was shown: `metric name|` for each object. */
static char shown[4096];
static struct figure_object last;

static void see(struct figure_visitor *v, const struct figure_table *table,
                const struct figure_object *object, const void *values)
{
    char word[128];

    (void)v;
    (void)table;
    (void)values;
    if (object->subject == last.subject && object->name == last.name && object->owner == last.owner)
        return;
    last = *object;
    snprintf(word, sizeof(word), "%s %s%s%s|", figure_words(object->subject)->metric,
             object->owner ? object->owner : "", object->owner ? "/" : "",
             object->name ? object->name : "");
    ck_assert_ptr_null(strstr(shown, object->name ? word : "no such word"));
    strcat(shown, word);
}

static struct figure_visitor visitor = {.visit = see};

static void done(void *cookie, int rc)
{
    (void)cookie;
    ck_assert_int_eq(rc, 0);
    (void)eventfd_write(done_fd, 1);
}

static void reload(unsigned which)
{
    const struct server_reload to = {.conf = &confs[which], .done = done};
    eventfd_t n;

    ck_assert_int_eq(server_reload(server, &to), 0);
    ck_assert_int_eq(eventfd_read(done_fd, &n), 0);
}

/* The second has other servers of "one", "three" for "two", another listener, and one more worker. */
static void configure(void)
{
    static const char *const ids[2][SERVERS] = {{"a", "b", "c"}, {"c", "d", "e"}};

    for (unsigned w = 0; w < 2; w++) {
        for (unsigned i = 0; i < SERVERS; i++)
            servers[w][i] = (struct upstream_server_conf){.id = ids[w][i],
                                                          .address_text = "there",
                                                          .addresses = &back,
                                                          .n_addresses = 1,
                                                          .weight = 1};
        for (unsigned i = 0; i < 2; i++) {
            upstreams[w][i] = (struct upstream_conf){.name = i == 0   ? "one"
                                                             : w == 0 ? "two"
                                                                      : "three",
                                                     .servers = servers[w],
                                                     .n_servers = SERVERS,
                                                     .connect_timeout_ns = NS_PER_S};
            listeners[w][i] = (struct listener_conf){.name = i == 0   ? "front"
                                                             : w == 0 ? "old"
                                                                      : "new",
                                                     .addresses = &addresses[i],
                                                     .n_addresses = 1,
                                                     .service = LISTENER_PROXY,
                                                     .upstream = upstreams[w][i].name,
                                                     .backlog = 128,
                                                     .reuseport = 1};
        }
        confs[w] = (struct server_conf){SMALL_LOOPS(2 + w),        SMALL_EXECUTORS(1),
                                        .listeners = listeners[w], .n_listeners = 2,
                                        .upstreams = upstreams[w], .n_upstreams = 2};
    }
}

static void setup(void)
{
    struct server_events events = {.drained = NULL};

    log_lines_capture(LOG_LEVEL_NOTICE);
    before = process_descriptors();
    done_fd = eventfd(0, EFD_CLOEXEC);
    listening = sockets_listen(&back, 64);
    for (int i = 0; i < 2; i++)
        holders[i] = sockets_bound(&addresses[i]);
    configure();
    ck_assert_int_eq(server_create(&server, &confs[0], &events), 0);
    ck_assert_int_eq(server_start(server), 0);
    shown[0] = '\0';
    last = (struct figure_object){.subject = FIGURE_SUBJECTS};
}

static void teardown(void)
{
    unsigned cut;

    ck_assert_int_eq(server_stop(server, &cut), 0);
    server_destroy(server);
    close(done_fd);
    close(listening);
    for (int i = 0; i < 2; i++)
        close(holders[i]);
    UNTIL(process_loops() == 0);
    ck_assert_uint_eq(process_descriptors(), before);
}

static struct server_figures *begin(unsigned max_servers)
{
    const struct server_figures_conf conf = {.max_servers = max_servers};
    struct server_figures *w;

    ck_assert_int_eq(server_figures_begin(&w, server, &conf), 0);
    return w;
}

static void walk(unsigned max_servers)
{
    struct server_figures *w = begin(max_servers);

    while (server_figures_step(w, &visitor))
        continue;
    server_figures_end(w);
}

static const char all[] =
    "process |loop boss-1-1|loop work-2-1|loop work-2-2|loop ctrl-4-1|executor |lookups |handshakes |"
    "rebalance |listener front|listener old|upstream one|server one/a|server one/b|server one/c|"
    "upstream two|server two/a|server two/b|server two/c|process |";

GROUP(figures, setup, teardown);

TEST(figures, a_walk_shows_each_object_once_in_the_order_of_the_configuration)
{
    walk(UINT_MAX);
    ck_assert_str_eq(shown, all);
}

TEST(figures, servers_beyond_a_maximum_are_left_out)
{
    walk(4);
    ck_assert_ptr_nonnull(strstr(
        shown,
        "upstream one|server one/a|server one/b|server one/c|upstream two|server two/a|process |"));
}

/* Steps before the change: everywhere between the first and the last object. */
#define STEPS 25

TEST_EACH(figures, walk_continues_over_a_reload_and_visits_nothing_twice, STEPS)
{
    struct server_figures *w = begin(UINT_MAX);
    bool more = true;

    for (int i = 0; i < _i && more; i++)
        more = server_figures_step(w, &visitor);
    reload(1);
    while (more)
        more = server_figures_step(w, &visitor);
    ck_assert_ptr_nonnull(strstr(shown, "|listener front|listener old|upstream one|"));
    ck_assert_ptr_nonnull(strstr(shown, "|upstream two|"));
    ck_assert_ptr_null(strstr(shown, "three"));
    server_figures_end(w);
    shown[0] = '\0';
    walk(UINT_MAX);
    ck_assert_ptr_nonnull(strstr(shown, "loop work-2-3|"));
    ck_assert_ptr_nonnull(strstr(
        shown, "listener front|listener new|upstream one|server one/c|server one/d|server one/e|"
               "upstream three|"));
}

TEST_EACH(figures, abandoned_walk_holds_no_reference, STEPS)
{
    struct server_figures *w = begin(UINT_MAX);

    for (int i = 0; i < _i && server_figures_step(w, &visitor); i++)
        continue;
    server_figures_end(w);
    reload(1);
}

TEST(figures, ending_a_walk_that_is_null_is_allowed)
{
    server_figures_end(NULL);
}

static int attempt(void *cookie)
{
    const struct server_figures_conf conf = {.max_servers = 1};
    struct server_figures *w;
    int rc = server_figures_begin(&w, server, &conf);

    (void)cookie;
    if (rc == 0)
        server_figures_end(w);
    return rc;
}

TEST(figures, walk_without_memory_fails)
{
    ck_assert_uint_ge(fault_each_allocation(attempt, NULL), 4);
}

static atomic_bool over;

static void ignore(struct figure_visitor *v, const struct figure_table *table,
                   const struct figure_object *object, const void *values)
{
    (void)v;
    (void)table;
    (void)object;
    (void)values;
}

static void *walk_often(void *arg)
{
    struct figure_visitor nothing = {.visit = ignore};

    (void)arg;
    while (!atomic_load(&over)) {
        struct server_figures *w = begin(UINT_MAX);

        while (server_figures_step(w, &nothing))
            continue;
        server_figures_end(w);
    }
    return NULL;
}

TEST(figures, any_thread_walks_while_reloads_follow_each_other)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, walk_often, NULL), 0);
    for (unsigned i = 0; i < 20; i++)
        reload(1 - i % 2);
    atomic_store(&over, true);
    pthread_join(thread, NULL);
}
