/*
 * stress/drawn_conf: a configuration of a few upstreams, drawn at random, as the control loop reads
 * it: servers by address and by name, some with checks of their own.
 */
#ifndef STRESS_DRAWN_CONF_H
#define STRESS_DRAWN_CONF_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "server/server_conf.h"
#include "stress/stress.h"
#include "upstream/upstream.h"

#define UPSTREAMS 4
#define LINES     4
#define PORTS     6 /* of servers; half of them refuse */

static struct address ports[PORTS];
static unsigned seed = 1;
static struct server_conf conf;

static inline unsigned draw(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

static inline const char *text_of(struct arena *a, const char *format, unsigned n)
{
    char text[32];

    snprintf(text, sizeof(text), format, n);
    return arena_text(a, text, strlen(text));
}

static inline void draw_line(struct arena *a, struct upstream_server_conf *line, unsigned id)
{
    *line = (struct upstream_server_conf){.id = text_of(a, "s%u", id),
                                          .address_text = text_of(a, "%u.test", draw(3)),
                                          .names = (enum upstream_names)draw(3),
                                          .weight = draw(3),
                                          .max_connections = draw(2) * 5,
                                          .disabled = draw(8) == 0};
    if (draw(4) == 0) {
        struct address *at = arena_alloc(a, 1, sizeof(*at));

        *at = ports[draw(PORTS)];
        line->check_address = at;
    }
    if (line->names != UPSTREAM_LITERAL)
        return;
    line->addresses = arena_alloc(a, 1, sizeof(*line->addresses));
    line->addresses[0] = ports[draw(PORTS)];
    line->n_addresses = 1;
}

static inline void draw_upstream(struct upstream_conf *up, unsigned number)
{
    struct arena *a;

    STRESS_CHECK(arena_create(&a) == 0);
    *up = (struct upstream_conf){.memory = a,
                                 .name = text_of(a, "u%u", number),
                                 .servers = arena_alloc(a, LINES, sizeof(*up->servers)),
                                 .balance = (enum balancer_kind)draw(3),
                                 .slow_start_ns = draw(2) * NS_PER_MS,
                                 .connect_timeout_ns = NS_PER_S,
                                 .queue_length = draw(2),
                                 .queue_timeout_ns = NS_PER_S,
                                 .resolve_interval_ns = draw(3) * NS_PER_MS,
                                 .checks = {.kind = (enum upstream_check)draw(2),
                                            .check = {.timeout_ns = NS_PER_S},
                                            .health = {.initial = (enum health_initial)draw(3),
                                                       .rise = 1 + draw(2),
                                                       .fall = 1 + draw(2),
                                                       .interval_ns = (1 + draw(3)) * NS_PER_MS}}};
    for (unsigned i = 0; i < LINES; i++)
        if (draw(4))
            draw_line(a, &up->servers[up->n_servers++], i);
}

static inline void draw_conf(void)
{
    conf = (struct server_conf){.upstreams = calloc(UPSTREAMS, sizeof(*conf.upstreams))};
    for (unsigned i = 0; i < UPSTREAMS; i++)
        if (draw(4))
            draw_upstream(&conf.upstreams[conf.n_upstreams++], i);
}

static inline void free_conf(void)
{
    for (unsigned i = 0; i < conf.n_upstreams; i++)
        arena_release(conf.upstreams[i].memory);
    free(conf.upstreams);
    conf = (struct server_conf){0};
}

#endif
