#include "config/config_servers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/config_listen.h"
#include "config/config_memory.h"
#include "config/config_namespaces.h"
#include "ini/diagnostics.h"
#include "net/address.h"
#include "upstream/upstream.h"

struct config_servers {
    const struct config *config;
    struct diagnostics *diagnostics;
};

/* Return the next proxy listener after ${after} at an address of ${server} of ${up}, or NULL. */
static const struct listener_conf *config_servers_reached(const struct config_servers *c,
                                                          const struct upstream_conf *up,
                                                          const struct upstream_server_conf *server,
                                                          const struct listener_conf *after)
{
    const struct server_conf *conf = &c->config->server;

    for (unsigned l = after ? (unsigned)(after - conf->listeners) + 1 : 0; l < conf->n_listeners;
         l++) {
        const struct listener_conf *listener = &conf->listeners[l];

        if (listener->service != LISTENER_PROXY)
            continue;
        for (unsigned j = 0; j < server->n_addresses; j++)
            if (config_namespaces_reaches(up, &server->addresses[j], listener))
                return listener;
    }
    return NULL;
}

/* Queue of upstreams that were found and not searched yet; each enters the queue once. */
struct config_servers_queue {
    unsigned *list;
    bool *found;
    unsigned head, tail;
};

static void config_servers_follow(const struct config_servers *c, const struct listener_conf *proxy,
                                  struct config_servers_queue *q)
{
    for (unsigned i = 0; i < listener_conf_targets(proxy); i++) {
        const char *name = listener_conf_target(proxy, i);
        int next = name ? config_listen_find_upstream(c->config, name) : -1;

        if (next < 0 || q->found[next])
            continue;
        q->list[q->tail++] = (unsigned)next;
        q->found[next] = true;
    }
}

/* Does the proxy listener ${from} reach upstream ${goal}, directly or through other listeners? */
static bool config_servers_leads_to(const struct config_servers *c,
                                    const struct listener_conf *from, int goal,
                                    struct config_servers_queue *q)
{
    const struct server_conf *conf = &c->config->server;

    q->head = q->tail = 0;
    memset(q->found, 0, conf->n_upstreams * sizeof(*q->found));
    config_servers_follow(c, from, q);
    for (; q->head < q->tail && q->list[q->head] != (unsigned)goal; q->head++) {
        const struct upstream_conf *up = &conf->upstreams[q->list[q->head]];

        for (unsigned i = 0; i < up->n_servers; i++) {
            const struct listener_conf *proxy = NULL;

            while ((proxy = config_servers_reached(c, up, &up->servers[i], proxy)))
                config_servers_follow(c, proxy, q);
        }
    }
    return q->head < q->tail;
}

static const struct ini_entry *config_servers_entry(const struct section *section,
                                                    const struct upstream_server_conf *server)
{
    const struct option *o = option_find(OPTION_UPSTREAM, "server.ID");
    unsigned i = 0;

    while (i + 1 < section->source->n_entries &&
           (!option_matches(o, section->source->entries[i].key) ||
            strcmp(option_member(o, section->source->entries[i].key), server->id) != 0))
        i++;
    return &section->source->entries[i];
}

static void config_servers_refuse_loop(const struct config_servers *c,
                                       const struct section *section,
                                       const struct upstream_server_conf *server,
                                       const struct listener_conf *proxy)
{
    const struct ini_entry *entry = config_servers_entry(section, server);

    diagnostics_add(c->diagnostics, entry->line,
                    "[%s] %s: %s is where [listen %s] listens: a proxy loop "
                    "(a server that does not lead back here)",
                    section->source->name, entry->key, QUOTE_TEXT(server->address_text),
                    proxy->name);
}

/* A word of a server line, and what is missing for it. */
static void config_servers_word(const struct config_servers *c, const struct section *section,
                                const struct upstream_server_conf *server, const char *word,
                                const char *missing)
{
    const struct ini_entry *entry = config_servers_entry(section, server);

    diagnostics_add(c->diagnostics, entry->line, "[%s] %s: %s has no effect %s",
                    section->source->name, entry->key, word, missing);
}

static void config_servers_words(const struct config_servers *c, const struct section *section,
                                 const struct upstream_server_conf *s)
{
    const struct upstream_conf *conf = section->conf;
    const char *word = s->check_interval_ns > 0 ? "check_interval"
                       : s->rise > 0            ? "rise"
                       : s->fall > 0            ? "fall"
                                                : NULL;
    bool is_off = conf->checks.kind == UPSTREAM_CHECK_OFF; /* perhaps as `check` is refused */

    if (is_off && (s->unchecked || word) && !section_refused(section, "check"))
        config_servers_word(c, section, s, s->unchecked ? "check" : word,
                            "without health checks (set check = tcp)");
    else if (s->unchecked && word)
        config_servers_word(c, section, s, word, "with check=off (remove one of them)");
    if (s->never_ejected && conf->ejection.failures == 0)
        config_servers_word(c, section, s, "eject", "without ejection (set eject_failures)");
}

static void config_servers_loop(const struct config_servers *c, const struct section *section,
                                const struct upstream_server_conf *server,
                                struct config_servers_queue *q)
{
    const struct upstream_conf *up = section->conf;
    int goal = (int)(up - c->config->server.upstreams);
    const struct listener_conf *proxy = NULL;

    while ((proxy = config_servers_reached(c, up, server, proxy))) {
        if (!config_servers_leads_to(c, proxy, goal, q))
            continue;
        config_servers_refuse_loop(c, section, server, proxy);
        break;
    }
}

static int config_servers_open_queue(struct config_servers_queue *q, const struct config *config)
{
    size_t n = (size_t)config->server.n_upstreams + 1;

    q->list = calloc(n, sizeof(q->list[0]));
    q->found = calloc(n, sizeof(q->found[0]));
    return q->list && q->found ? 0 : -ENOMEM;
}

static void config_servers_close_queue(struct config_servers_queue *q)
{
    free(q->list);
    free(q->found);
}

int config_servers_check(const struct config *config, const struct section *section, unsigned first,
                         struct diagnostics *diagnostics)
{
    const struct config_servers c = {.config = config, .diagnostics = diagnostics};
    const struct upstream_conf *conf = section->conf;
    struct config_servers_queue q = {.head = 0};
    bool reaches = !section_refused(section, "namespace"); /* a look at all its entries */
    int rc = config_servers_open_queue(&q, config);

    for (unsigned i = first; rc == 0 && i < conf->n_servers; i++)
        config_servers_words(&c, section, &conf->servers[i]);
    for (unsigned i = first; rc == 0 && reaches && i < conf->n_servers; i++)
        config_servers_loop(&c, section, &conf->servers[i], &q);
    config_servers_close_queue(&q);
    return rc;
}
