#include "handover/server_bans_state.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "limits/ban.h"
#include "net/cidr.h"
#include "server/server_bans.h"

/* Bans added at a time. */
#define BATCH 256

#define SHARED "limits:" /* of an owner that is a [limits NAME] */
#define SHARE  "ban_share "
#define DRY    "dry"

/* A line: `ban`, owner, block, offence, five numbers and DRY; or SHARE and two names. */
#define LINE_BYTES (SERVER_BANS_OWNER_BYTES + CIDR_TEXT_BYTES + 128)

/* ---- writing ---- */

struct server_bans_state_writing {
    FILE *file;
    int64_t since_ns;
    int64_t *ends_ns; /* of all bans that began since then */
    size_t n, n_space;
    bool lacks_memory;
    int64_t least_ns; /* bans that end earlier are left out */
    unsigned written, max;
};

static void server_bans_state_note_end(void *cookie, const struct server_bans_owner *owner,
                                       const struct ban *ban)
{
    struct server_bans_state_writing *w = cookie;

    (void)owner;
    if (ban->since_ns < w->since_ns)
        return;
    if (w->n == w->n_space && !w->lacks_memory) {
        size_t n_space = w->n_space > 0 ? 2 * w->n_space : BATCH;
        int64_t *larger = realloc(w->ends_ns, n_space * sizeof(*larger));

        w->lacks_memory = larger == NULL;
        w->ends_ns = larger ? larger : w->ends_ns;
        w->n_space = larger ? n_space : w->n_space;
    }
    if (!w->lacks_memory)
        w->ends_ns[w->n] = ban->until_ns;
    w->n++;
}

static int server_bans_state_compare(const void *a, const void *b)
{
    const int64_t *first = a, *second = b;

    return (*first > *second) - (*first < *second);
}

/* Leave out bans above the limit. */
static void server_bans_state_choose(struct server_bans_state_writing *w)
{
    w->least_ns = 0;
    if (w->n <= w->max)
        return;
    log_warning("upgrade: %zu bans are not handed over, those with the least time left: %u is the "
                "limit",
                w->n - w->max, w->max);
    if (w->lacks_memory)
        return;
    qsort(w->ends_ns, w->n, sizeof(*w->ends_ns), server_bans_state_compare);
    w->least_ns = w->ends_ns[w->n - w->max];
}

static void server_bans_state_write_share(void *cookie, const struct server_bans_owner *owner)
{
    struct server_bans_state_writing *w = cookie;

    fprintf(w->file, SHARE "%s %s\n", owner->limits, owner->listener);
}

static void server_bans_state_write_one(void *cookie, const struct server_bans_owner *owner,
                                        const struct ban *ban)
{
    struct server_bans_state_writing *w = cookie;
    char block[CIDR_TEXT_BYTES];

    if (ban->since_ns < w->since_ns || ban->until_ns < w->least_ns || w->written == w->max)
        return;
    w->written++;
    fprintf(w->file, "ban %s%s %s %u %s %" PRId64 " %" PRId64 " %" PRIu64 "%s\n",
            owner->limits ? SHARED : "", owner->limits ? owner->limits : owner->listener,
            cidr_format(block, sizeof(block), &ban->block), ban->zone,
            ban_offence_word(ban->offence), ban->since_ns, ban->until_ns, ban->refused,
            ban->is_dry ? " " DRY : "");
}

unsigned server_bans_state_write(struct server *sv, FILE *f, int64_t since_ns, unsigned max)
{
    const struct server_bans_filter all = {.listener = NULL};
    struct server_bans_state_writing w = {.file = f, .since_ns = since_ns, .max = max};
    int rc = server_bans_each(sv, &all, server_bans_state_note_end, &w);

    if (rc == 0 && w.n > 0) {
        server_bans_state_choose(&w);
        rc = server_bans_each_share(sv, server_bans_state_write_share, &w);
    }
    if (rc == 0 && w.n > 0)
        rc = server_bans_each(sv, &all, server_bans_state_write_one, &w);
    if (rc < 0)
        log_warning("upgrade: bans are lost: out of memory");
    free(w.ends_ns);
    return w.written;
}

/* ---- reading ---- */

/* A listener that shared [limits NAME]. */
struct server_bans_state_share {
    char limits[SERVER_BANS_OWNER_BYTES];
    char listener[SERVER_BANS_OWNER_BYTES];
};

/* Bans of one owner, read so far. */
struct server_bans_state {
    struct server *server;
    struct server_bans_state_share *shares;
    unsigned n_shares;
    char owner[SERVER_BANS_OWNER_BYTES];
    bool is_shared; /* `owner` is a [limits NAME], else a listener */
    struct ban list[BATCH];
    unsigned n, unread;
    struct server_bans_losses lost;
};

static unsigned server_bans_state_lost(const struct ban_losses *lost)
{
    return lost->ended + lost->prefix + lost->dry + lost->full;
}

/* Add to ${to}; if ${to} has a table, and has lost fewer bans than ${least}, set ${least}. */
static void server_bans_state_add_to(const struct server_bans_state *s,
                                     const struct server_bans_owner *to,
                                     struct server_bans_losses *least)
{
    struct server_bans_losses lost = {.no_table = 0};

    server_bans_add(s->server, to, s->list, s->n, &lost);
    if (lost.no_table == 0 && (least->no_table > 0 || server_bans_state_lost(&lost.table) <
                                                          server_bans_state_lost(&least->table)))
        *least = lost;
}

static void server_bans_state_count(struct server_bans_losses *sum,
                                    const struct server_bans_losses *lost)
{
    sum->no_table += lost->no_table;
    sum->table.ended += lost->table.ended;
    sum->table.prefix += lost->table.prefix;
    sum->table.dry += lost->table.dry;
    sum->table.full += lost->table.full;
}

/* Add to the owner and, as a reload does, to listeners that shared it, and do no longer. */
static void server_bans_state_add(struct server_bans_state *s)
{
    struct server_bans_owner to = {.listener = s->is_shared ? NULL : s->owner,
                                   .limits = s->is_shared ? s->owner : NULL};
    struct server_bans_losses least = {.no_table = s->n};

    if (s->n == 0)
        return;
    server_bans_state_add_to(s, &to, &least);
    for (unsigned i = 0; s->is_shared && i < s->n_shares; i++) {
        to.listener = s->shares[i].listener;
        if (strcmp(s->shares[i].limits, s->owner) == 0)
            server_bans_state_add_to(s, &to, &least);
    }
    server_bans_state_count(&s->lost, &least);
    s->n = 0;
}

/* Read the rest of a line SHARE; false: it is wrong, or memory is short. */
static bool server_bans_state_read_share(struct server_bans_state *s, char *line)
{
    const char *limits = strsep(&line, " ");
    struct server_bans_state_share *larger;

    if (!line || strlen(limits) >= SERVER_BANS_OWNER_BYTES ||
        strlen(line) >= SERVER_BANS_OWNER_BYTES)
        return false;
    larger = realloc(s->shares, (s->n_shares + 1) * sizeof(*larger));
    if (!larger)
        return false;
    s->shares = larger;
    memcpy(s->shares[s->n_shares].limits, limits, strlen(limits) + 1);
    memcpy(s->shares[s->n_shares].listener, line, strlen(line) + 1);
    s->n_shares++;
    return true;
}

/* Cut ${line} into words; false: the ban is not complete, or wrong. */
static bool server_bans_state_read(char *line, const char **owner, struct ban *out)
{
    enum { KIND, OWNER, BLOCK, ZONE, OFFENCE, SINCE, UNTIL, REFUSED, WORDS };
    const char *words[WORDS];
    uint64_t zone, since_ns, until_ns;

    for (unsigned i = 0; i < WORDS; i++)
        if (!(words[i] = strsep(&line, " ")))
            return false;
    *out = (struct ban){.is_dry = line != NULL};
    if ((line && strcmp(line, DRY) != 0) || strcmp(words[KIND], "ban") != 0 ||
        cidr_parse(&out->block, words[BLOCK]) < 0 || out->block.len == 0 ||
        parse_uint(&zone, words[ZONE], UINT32_MAX) < 0 ||
        !ban_offence_of(words[OFFENCE], &out->offence) ||
        parse_uint(&since_ns, words[SINCE], INT64_MAX) < 0 ||
        parse_uint(&until_ns, words[UNTIL], INT64_MAX) < 0 ||
        parse_uint(&out->refused, words[REFUSED], UINT64_MAX) < 0)
        return false;
    *owner = words[OWNER];
    out->zone = (uint32_t)zone;
    out->since_ns = (int64_t)since_ns;
    out->until_ns = (int64_t)until_ns;
    return true;
}

static bool server_bans_state_read_ban(struct server_bans_state *s, char *line)
{
    const char *owner;
    struct ban ban;
    bool is_shared;

    if (!server_bans_state_read(line, &owner, &ban))
        return false;
    is_shared = strncmp(owner, SHARED, strlen(SHARED)) == 0;
    owner += is_shared ? strlen(SHARED) : 0;
    if (strlen(owner) >= SERVER_BANS_OWNER_BYTES)
        return false;
    if (s->n == BATCH || is_shared != s->is_shared || strcmp(owner, s->owner) != 0)
        server_bans_state_add(s);
    memcpy(s->owner, owner, strlen(owner) + 1);
    s->is_shared = is_shared;
    s->list[s->n++] = ban;
    return true;
}

static void server_bans_state_take(struct server_bans_state *s, char *line)
{
    bool is_share = strncmp(line, SHARE, strlen(SHARE)) == 0;

    line[strcspn(line, "\n")] = '\0';
    if (!(is_share ? server_bans_state_read_share(s, line + strlen(SHARE))
                   : server_bans_state_read_ban(s, line)))
        s->unread++;
}

static void server_bans_state_log(const struct server_bans_state *s)
{
    const struct server_bans_losses *lost = &s->lost;
    const struct ban_losses *table = &lost->table;
    unsigned n = lost->no_table + table->ended + table->prefix + table->dry;

    if (n > 0)
        log_notice(
            "upgrade: %u bans ended: the time of %u is over, %u are of other prefixes, %u of "
            "listeners without bans, %u of a dry run",
            n, table->ended, table->prefix, lost->no_table, table->dry);
    if (table->full > 0)
        log_warning("upgrade: client_table_size is too small: %u bans ended, those with the least "
                    "time left",
                    table->full);
    if (s->unread > 0)
        log_warning("upgrade: %u bans of the process before are incomplete, or of another version",
                    s->unread);
}

void server_bans_state_use(struct server *sv, FILE *f)
{
    struct server_bans_state *s = calloc(1, sizeof(*s));
    char line[LINE_BYTES];

    if (!s) {
        log_warning("upgrade: bans are lost: out of memory");
        return;
    }
    s->server = sv;
    while (fgets(line, sizeof(line), f))
        server_bans_state_take(s, line);
    server_bans_state_add(s);
    server_bans_state_log(s);
    if (ferror(f))
        log_warning("upgrade: some bans are lost: they cannot be read");
    free(s->shares);
    free(s);
}
