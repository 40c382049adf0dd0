/* handover/server_settings_write: writes the settings: see server_settings.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/loop_group.h"
#include "handover/server_settings.h"
#include "listen/listeners.h"
#include "server/server_admin.h"
#include "server/server_conf.h"
#include "server/server_parts.h"
#include "server/server_pause.h"
#include "server/upstreams.h"
#include "upstream/membership_admin.h"
#include "upstream/upstream.h"

const char *const server_settings_states[] = {[SERVER_LINE_AS_CONFIGURED] = "-",
                                              [SERVER_LINE_READY] = "ready",
                                              [SERVER_LINE_DRAIN] = "drain",
                                              [SERVER_LINE_DISABLED] = "disabled"};

struct server_settings_line {
    const struct upstream *upstream;
    const char *text; /* of the line */
    FILE *file;
};

static void server_settings_write_admin(void *cookie, const char *name,
                                        const struct server_line_admin *admin)
{
    const struct server_settings_line *line = cookie;

    if (admin->state == SERVER_LINE_AS_CONFIGURED && !admin->has_weight && !admin->has_max)
        return;
    fprintf(line->file, "set server %s/%s %s,", line->upstream->name, name,
            server_settings_states[admin->state]);
    fprintf(line->file, admin->has_weight ? "%u" : "-", admin->weight);
    if (admin->has_max)
        fprintf(line->file, ",%u", admin->max_connections);
    fprintf(line->file, " %s\n", line->text);
}

static void server_settings_write_line(struct upstream *up, const struct server_line *line, FILE *f)
{
    const struct server_line_admin admin = membership_admin_get(&up->membership, line);
    char *text = server_line_text(line);
    struct server_settings_line to = {.upstream = up, .text = text, .file = f};

    if (!text)
        return;
    server_settings_write_admin(&to, line->conf.id, &admin);
    membership_admin_each_own(&up->membership, line, server_settings_write_admin, &to);
    free(text);
}

static void server_settings_write_servers(struct upstreams *all, FILE *f)
{
    unsigned n;
    struct upstream **list = upstreams_hold_all(all, false, &n);

    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < list[i]->membership.n_lines; k++)
            server_settings_write_line(list[i], list[i]->membership.lines[k], f);
        upstream_release(list[i]);
    }
    free(list);
}

static void server_settings_write_max(void *f, const struct listeners_max *max)
{
    fprintf(f, "set listener %s %u %u\n", max->name, max->max, max->configured);
}

static void server_settings_write_pause(void *f, const struct server_pause_status *pause)
{
    const struct server_pause_target *target = &pause->target;

    fprintf(f, "set pause %s/%s %" PRId64 ",%u,%u -\n", target->listener ? "listener" : "upstream",
            target->listener ? target->listener : target->upstream, pause->until_ns,
            pause->max_held, pause->rate);
}

void server_settings_write(struct server *sv, FILE *f)
{
    const struct server_parts parts = server_parts(sv);
    unsigned configured_io_ratio, io_ratio = server_admin_io_ratio(sv, &configured_io_ratio);
    struct server_workers_conf threads;
    unsigned workers = server_admin_threads(sv, &threads);
    enum log_level level, configured;

    server_settings_write_servers(parts.upstreams, f);
    listeners_each_max(parts.listeners, server_settings_write_max, f);
    if (io_ratio > 0)
        fprintf(f, "set process io_ratio %u %u\n", io_ratio, configured_io_ratio);
    if (workers > 0)
        fprintf(f, "set process workers %u %u,%u,%u\n", workers, threads.n, threads.min,
                threads.max);
    log_get_levels(&level, &configured);
    if (level != configured)
        fprintf(f, "set process log_level %s %s\n", log_level_name(level),
                log_level_name(configured));
    server_pause_each(sv, server_settings_write_pause, f);
    if (server_admin_scale(sv).max > 0)
        fprintf(f, "scaled workers %u\n", loop_group_in_use(parts.loops));
}
