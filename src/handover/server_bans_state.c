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

/* A line: `ban`, listener, block, offence, and five numbers. */
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

static void server_bans_state_note_end(void *cookie, const char *listener, const struct ban *ban)
{
    struct server_bans_state_writing *w = cookie;

    (void)listener;
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

static void server_bans_state_write_one(void *cookie, const char *listener, const struct ban *ban)
{
    struct server_bans_state_writing *w = cookie;
    char block[CIDR_TEXT_BYTES];

    if (ban->since_ns < w->since_ns || ban->until_ns < w->least_ns || w->written == w->max)
        return;
    w->written++;
    fprintf(w->file, "ban %s %s %u %s %" PRId64 " %" PRId64 " %" PRIu64 "\n", listener,
            cidr_format(block, sizeof(block), &ban->block), ban->zone,
            ban_offence_word(ban->offence), ban->since_ns, ban->until_ns, ban->refused);
}

unsigned server_bans_state_write(struct server *sv, FILE *f, int64_t since_ns, unsigned max)
{
    const struct server_bans_filter all = {.listener = NULL};
    struct server_bans_state_writing w = {.file = f, .since_ns = since_ns, .max = max};
    int rc = server_bans_each(sv, &all, server_bans_state_note_end, &w);

    if (rc == 0 && w.n > 0) {
        server_bans_state_choose(&w);
        rc = server_bans_each(sv, &all, server_bans_state_write_one, &w);
    }
    if (rc < 0)
        log_warning("upgrade: bans are lost: out of memory");
    free(w.ends_ns);
    return w.written;
}

/* ---- reading ---- */

/* Bans of one listener, read so far. */
struct server_bans_state {
    struct server *server;
    char listener[SERVER_BANS_OWNER_BYTES];
    struct ban list[BATCH];
    unsigned n, unread;
    struct server_bans_losses lost;
};

static void server_bans_state_add(struct server_bans_state *s)
{
    if (s->n > 0)
        server_bans_add(s->server, s->listener, s->list, s->n, &s->lost);
    s->n = 0;
}

/* Cut ${line} into words; false: the ban is not complete, or wrong. */
static bool server_bans_state_read(char *line, const char **listener, struct ban *out)
{
    enum { KIND, LISTENER, BLOCK, ZONE, OFFENCE, SINCE, UNTIL, REFUSED, WORDS };
    const char *words[WORDS];
    uint64_t zone, since_ns, until_ns;

    for (unsigned i = 0; i < WORDS; i++)
        if (!(words[i] = strsep(&line, " ")))
            return false;
    *out = (struct ban){.zone = 0};
    if (line || strcmp(words[KIND], "ban") != 0 ||
        strlen(words[LISTENER]) >= SERVER_BANS_OWNER_BYTES ||
        cidr_parse(&out->block, words[BLOCK]) < 0 || out->block.len == 0 ||
        parse_uint(&zone, words[ZONE], UINT32_MAX) < 0 ||
        !ban_offence_of(words[OFFENCE], &out->offence) ||
        parse_uint(&since_ns, words[SINCE], INT64_MAX) < 0 ||
        parse_uint(&until_ns, words[UNTIL], INT64_MAX) < 0 ||
        parse_uint(&out->refused, words[REFUSED], UINT64_MAX) < 0)
        return false;
    *listener = words[LISTENER];
    out->zone = (uint32_t)zone;
    out->since_ns = (int64_t)since_ns;
    out->until_ns = (int64_t)until_ns;
    return true;
}

static void server_bans_state_take(struct server_bans_state *s, char *line)
{
    const char *listener;
    struct ban ban;

    line[strcspn(line, "\n")] = '\0';
    if (!server_bans_state_read(line, &listener, &ban)) {
        s->unread++;
        return;
    }
    if (s->n == BATCH || (s->n > 0 && strcmp(listener, s->listener) != 0))
        server_bans_state_add(s);
    memcpy(s->listener, listener, strlen(listener) + 1);
    s->list[s->n++] = ban;
}

static void server_bans_state_log(const struct server_bans_state *s)
{
    const struct server_bans_losses *lost = &s->lost;
    const struct ban_losses *table = &lost->table;
    unsigned n = lost->no_table + table->ended + table->prefix;

    if (n > 0)
        log_notice(
            "upgrade: %u bans ended: the time of %u is over, %u are of other prefixes, %u of "
            "listeners without bans",
            n, table->ended, table->prefix, lost->no_table);
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
    free(s);
}
