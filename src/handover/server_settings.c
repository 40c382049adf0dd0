#include "handover/server_settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "listen/listener_generation.h"
#include "listen/listeners.h"
#include "server/server_admin.h"
#include "server/server_conf.h"
#include "server/server_parts.h"
#include "server/server_pause.h"
#include "server/upstreams.h"
#include "upstream/membership_admin.h"
#include "upstream/upstream.h"

struct server_setting {
    const char *kind, *name, *now, *configured;
    bool is_used;
};

/* Settings to use, and their task. */
struct server_settings {
    struct task task;
    struct server *sv;
    struct server_parts parts; /* of `sv` */
    bool is_first;
    char *text;                  /* cut into words */
    struct server_setting *list; /* sorted by name */
    unsigned n;
    unsigned scaled; /* workers, by load; 0: not told */
};

static int server_settings_compare(const void *a, const void *b)
{
    const struct server_setting *first = a, *second = b;
    int order = strcmp(first->name, second->name);

    return order != 0 ? order : strcmp(first->kind, second->kind);
}

static void server_settings_read_line(struct server_settings *s, char *line)
{
    struct server_setting setting = {.is_used = false};
    const char *word = strsep(&line, " ");

    if (line && strcmp(word, "scaled") == 0)
        (void)sscanf(line, "workers %u", &s->scaled);
    if (!line || strcmp(word, "set") != 0)
        return;
    setting.kind = strsep(&line, " ");
    setting.name = strsep(&line, " ");
    setting.now = strsep(&line, " ");
    setting.configured = line;
    if (line)
        s->list[s->n++] = setting;
}

static int server_settings_read(struct server_settings *s, const char *text)
{
    char *rest, *line;
    size_t n = 1;

    for (const char *c = text; *c; c++)
        n += *c == '\n';
    rest = s->text = strdup(text);
    s->list = calloc(n, sizeof(s->list[0]));
    if (!s->text || !s->list)
        return -ENOMEM;
    while ((line = strsep(&rest, "\n")))
        server_settings_read_line(s, line);
    qsort(s->list, s->n, sizeof(s->list[0]), server_settings_compare);
    return 0;
}

/* Find the setting ${kind} ${name}; NULL: not set. */
static struct server_setting *server_settings_find(const struct server_settings *s,
                                                   const char *kind, const char *name)
{
    const struct server_setting wanted = {.kind = kind, .name = name};

    return bsearch(&wanted, s->list, s->n, sizeof(s->list[0]), server_settings_compare);
}

/* ---- control loop, or main before start ---- */

static bool server_settings_read_state(const char *text, struct server_line_admin *out)
{
    size_t len = strcspn(text, ",");

    if (text[len] == '\0')
        return false;
    out->has_weight = sscanf(text + len, ",%u", &out->weight) == 1;
    out->has_max = sscanf(text + len, ",%*[^,],%u", &out->max_connections) == 1;
    for (unsigned i = 0; i < ARRAY_LEN(server_settings_states); i++)
        if (strncmp(text, server_settings_states[i], len) == 0 &&
            server_settings_states[i][len] == '\0') {
            out->state = (enum server_line_state)i;
            return !out->has_weight || out->weight <= BALANCER_MAX_WEIGHT;
        }
    return false;
}

/* Read ${setting}, for ${line}; false: NULL, or ${line} is configured otherwise now. */
static bool server_settings_read_admin(const struct server_setting *setting,
                                       const struct server_line *line,
                                       struct server_line_admin *admin)
{
    struct server_line_admin told = {.state = SERVER_LINE_AS_CONFIGURED};
    bool is_same;
    char *text;

    *admin = told;
    if (!setting || !server_settings_read_state(setting->now, &told))
        return false;
    text = server_line_text(line);
    is_same = text && strcmp(text, setting->configured) == 0;
    free(text);
    if (is_same)
        *admin = told;
    return is_same;
}

/* Use the settings of single servers of ${line}; ${prefix}: UPSTREAM/ID. */
static void server_settings_use_own(const struct server_settings *s, struct upstream *up,
                                    struct server_line *line, const char *prefix)
{
    size_t len = strlen(prefix), up_len = strlen(up->name);
    struct server_line_admin admin;

    for (unsigned i = 0; i < s->n; i++) {
        struct server_setting *setting = &s->list[i];

        if (strcmp(setting->kind, "server") == 0 && strncmp(setting->name, prefix, len) == 0 &&
            setting->name[len] == '@' && server_settings_read_admin(setting, line, &admin) &&
            membership_admin_set_one(&up->membership, line, setting->name + up_len + 1, &admin) ==
                0)
            setting->is_used = true;
    }
}

static bool server_settings_is_same(const struct server_line_admin *a,
                                    const struct server_line_admin *b)
{
    return a->state == b->state && a->has_weight == b->has_weight &&
           (!a->has_weight || a->weight == b->weight) && a->has_max == b->has_max &&
           (!a->has_max || a->max_connections == b->max_connections);
}

static void server_settings_use_line(const struct server_settings *s, struct upstream *up,
                                     struct server_line *line)
{
    struct server_line_admin admin;
    struct server_setting *setting;
    bool is_told, is_used;
    char *name;

    if (asprintf(&name, "%s/%s", up->name, line->conf.id) < 0)
        return;
    setting = server_settings_find(s, "server", name);
    is_told = server_settings_read_admin(setting, line, &admin);
    is_used = (server_settings_is_same(&admin, &line->admin) && !line->own) ||
              membership_admin_set(&up->membership, line, &admin,
                                   SERVER_LINE_OWN_STATES | SERVER_LINE_OWN_WEIGHTS) == 0;
    if (is_told && is_used)
        setting->is_used = true;
    if (line->conf.names == UPSTREAM_NAME_EACH || line->conf.names == UPSTREAM_SERVICE)
        server_settings_use_own(s, up, line, name);
    free(name);
}

static void server_settings_use_servers(const struct server_settings *s)
{
    unsigned n;
    struct upstream **list = upstreams_hold_all(s->parts.upstreams, false, &n);

    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < list[i]->membership.n_lines; k++)
            server_settings_use_line(s, list[i], list[i]->membership.lines[k]);
        upstream_release(list[i]);
    }
    free(list);
}

static void server_settings_use_listeners(const struct server_settings *s)
{
    struct listeners *ls = s->parts.listeners;
    unsigned n, max, configured;
    struct listener_generation **list = listeners_hold_all(ls, &n);

    listeners_reset_max(ls);
    for (unsigned i = 0; list && i < n; i++) {
        const char *name = list[i]->conf.name;
        struct server_setting *setting = server_settings_find(s, "listener", name);

        if (setting && sscanf(setting->now, "%u", &max) == 1 &&
            sscanf(setting->configured, "%u", &configured) == 1 &&
            configured == list[i]->conf.quota.max_connections)
            setting->is_used = listeners_set_max(ls, name, max) == 0;
        listener_generation_release(list[i]);
    }
    free(list);
}

static void server_settings_use_io_ratio(const struct server_settings *s)
{
    struct server_setting *setting = server_settings_find(s, "process", "io_ratio");
    unsigned io_ratio, then, configured, before = server_admin_io_ratio(s->sv, &configured);

    if (setting && sscanf(setting->configured, "%u", &then) == 1 && then == configured &&
        sscanf(setting->now, "%u", &io_ratio) == 1)
        setting->is_used = server_admin_set_io_ratio(s->sv, io_ratio) == 0;
    else if (before > 0)
        MUST(server_admin_set_io_ratio(s->sv, 0) == 0);
}

/* Only before start: while an upgrade is under way the number does not change. */
static void server_settings_use_workers(const struct server_settings *s)
{
    struct server_setting *setting = server_settings_find(s, "process", "workers");
    struct server_workers_conf then, now;
    unsigned workers;

    (void)server_admin_threads(s->sv, &now);
    if (setting && s->is_first &&
        sscanf(setting->configured, "%u,%u,%u", &then.n, &then.min, &then.max) == 3 &&
        then.n == now.n && then.min == now.min && then.max == now.max &&
        sscanf(setting->now, "%u", &workers) == 1 && workers > 0 && workers <= SERVER_WORKERS_MAX)
        setting->is_used = server_admin_start_threads(s->sv, workers) == 0;
}

static void server_settings_use_scale(const struct server_settings *s)
{
    int rc = 0;

    if (s->is_first && s->scaled > 0 && s->scaled <= SERVER_WORKERS_MAX)
        rc = server_admin_start_scale(s->sv, s->scaled);
    if (rc < 0)
        log_warning("upgrade: the process before has %u worker threads, which cannot be had: %s",
                    s->scaled, strerror(-rc));
}

static void server_settings_use_log_level(const struct server_settings *s)
{
    struct server_setting *setting = server_settings_find(s, "process", "log_level");
    enum log_level now, configured, wanted;

    log_get_levels(&now, &configured);
    if (setting && strcmp(setting->configured, log_level_name(configured)) == 0 &&
        log_level_of(setting->now, &wanted)) {
        log_override_level(wanted);
        setting->is_used = true;
    } else if (now != configured) {
        log_restore_level();
    }
}

static int server_settings_use_pause(struct server *sv, const struct server_setting *setting)
{
    const char *name = strchr(setting->name, '/');
    struct server_pause_target target = {.listener = NULL};
    struct server_pause_conf conf;
    int64_t until_ns, now_ns = clock_now_ns();
    unsigned rate;
    int rc;

    if (!name || sscanf(setting->now, "%" SCNd64 ",%u,%u", &until_ns, &conf.max_held, &rate) != 3)
        return -EINVAL;
    if (strncmp(setting->name, "listener/", strlen("listener/")) == 0)
        target.listener = name + 1;
    else
        target.upstream = name + 1;
    if (until_ns <= now_ns && rate == 0)
        return 0; /* the pause has ended meanwhile */
    conf.for_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    rc = server_pause_begin(sv, &target, &conf);
    return rc == 0 && rate > 0 ? server_pause_resume(sv, &target, rate) : rc;
}

struct server_settings_search {
    const struct server_settings *settings;
    struct server_pause_target found; /* both names NULL: no pause found */
};

static void server_settings_find_ended(void *cookie, const struct server_pause_status *pause)
{
    struct server_settings_search *search = cookie;
    const struct server_pause_target *target = &pause->target;
    char *name;

    if (asprintf(&name, "%s/%s", target->listener ? "listener" : "upstream",
                 target->listener ? target->listener : target->upstream) < 0)
        return;
    if (!server_settings_find(search->settings, "pause", name))
        search->found = *target;
    free(name);
}

static void server_settings_use_pauses(const struct server_settings *s)
{
    struct server_settings_search search = {.settings = s};

    for (unsigned i = 0; i < s->n; i++)
        if (strcmp(s->list[i].kind, "pause") == 0)
            s->list[i].is_used = server_settings_use_pause(s->sv, &s->list[i]) == 0;
    do {
        search.found = (struct server_pause_target){.listener = NULL};
        server_pause_each(s->sv, server_settings_find_ended, &search);
    } while ((search.found.listener || search.found.upstream) &&
             server_pause_resume(s->sv, &search.found, 0) == 0);
}

static void server_settings_log(const struct server_settings *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->n; i++) {
        const struct server_setting *setting = &s->list[i];

        n += setting->is_used;
        if (!setting->is_used)
            log_notice("upgrade: %s %s: settings made by an administrator are dropped: the new "
                       "configuration changed or removed what they apply to",
                       setting->kind, setting->name);
    }
    if (n > 0)
        log_notice("upgrade: %u settings made by an administrator stay in force", n);
}

static void server_settings_apply(const struct server_settings *s)
{
    server_settings_use_servers(s);
    server_settings_use_listeners(s);
    server_settings_use_io_ratio(s);
    server_settings_use_workers(s);
    server_settings_use_scale(s);
    server_settings_use_log_level(s);
    server_settings_use_pauses(s);
    if (s->is_first)
        server_settings_log(s);
}

static void server_settings_free(struct server_settings *s)
{
    free(s->list);
    free(s->text);
    free(s);
}

static void server_settings_run(struct task *t)
{
    struct server_settings *s = CONTAINER_OF(t, struct server_settings, task);

    server_settings_apply(s);
    server_settings_free(s);
}

static void server_settings_drop(struct task *t)
{
    server_settings_free(CONTAINER_OF(t, struct server_settings, task));
}

static const struct task_type server_settings_type = {.name = "settings of another process",
                                                      .run = server_settings_run,
                                                      .drop = server_settings_drop};

/* ---- main ---- */

int server_settings_use(struct server *sv, const char *text)
{
    struct server_settings *s = calloc(1, sizeof(*s));
    int rc = -ENOMEM;

    if (!s)
        return rc;
    s->task.type = &server_settings_type;
    s->sv = sv;
    s->parts = server_parts(sv);
    s->is_first = loop_state(s->parts.control) == LOOP_NOT_STARTED;
    rc = server_settings_read(s, text);
    if (rc == 0 && s->is_first)
        server_settings_run(&s->task);
    else if (rc == 0)
        rc = loop_submit(s->parts.control, LOOP_CONTROL, &s->task);
    if (rc < 0)
        server_settings_free(s);
    return rc;
}
