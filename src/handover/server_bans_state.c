#include "handover/server_bans_state.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "limits/ban.h"
#include "net/cidr.h"
#include "server/server_bans.h"

/* Bans added at a time. */
#define BATCH 256

static void server_bans_state_write_one(void *cookie, const char *listener, const struct ban *ban)
{
    char block[CIDR_TEXT_BYTES];

    fprintf(cookie, "ban %s %s %u %s %" PRId64 " %" PRId64 " %" PRIu64 "\n", listener,
            cidr_format(block, sizeof(block), &ban->block), ban->zone,
            ban_offence_word(ban->offence), ban->since_ns, ban->until_ns, ban->refused);
}

void server_bans_state_write(struct server *sv, FILE *f)
{
    const struct server_bans_filter all = {.listener = NULL};

    if (server_bans_each(sv, &all, server_bans_state_write_one, f) < 0)
        log_warning("upgrade: bans are lost: out of memory");
}

/* Bans of one listener, read so far. */
struct server_bans_state {
    struct server *server;
    char listener[SERVER_BANS_OWNER_BYTES];
    struct ban list[BATCH];
    unsigned n;
    struct server_bans_losses lost;
};

static void server_bans_state_add(struct server_bans_state *s)
{
    if (s->n > 0)
        server_bans_add(s->server, s->listener, s->list, s->n, &s->lost);
    s->n = 0;
}

static bool server_bans_state_read(const char *line, char *listener, struct ban *out)
{
    char block[CIDR_TEXT_BYTES], offence[16];

    *out = (struct ban){.zone = 0};
    return sscanf(line, "ban %63s %49s %" SCNu32 " %15s %" SCNd64 " %" SCNd64 " %" SCNu64, listener,
                  block, &out->zone, offence, &out->since_ns, &out->until_ns, &out->refused) == 7 &&
           cidr_parse(&out->block, block) == 0 && ban_offence_of(offence, &out->offence);
}

static void server_bans_state_take(struct server_bans_state *s, const char *line)
{
    char listener[sizeof(s->listener)];
    struct ban ban;

    if (!server_bans_state_read(line, listener, &ban))
        return;
    if (s->n == BATCH || (s->n > 0 && strcmp(listener, s->listener) != 0))
        server_bans_state_add(s);
    memcpy(s->listener, listener, sizeof(listener));
    s->list[s->n++] = ban;
}

static void server_bans_state_log(const struct server_bans_losses *lost)
{
    const struct ban_losses *table = &lost->table;

    if (lost->no_table + table->ended + table->prefix > 0)
        log_notice(
            "upgrade: %u bans ended: the time of %u is over, %u are of other prefixes, %u of "
            "listeners without bans",
            lost->no_table + table->ended + table->prefix, table->ended, table->prefix,
            lost->no_table);
    if (table->full > 0)
        log_warning("upgrade: client_table_size is too small: %u bans ended, those with the least "
                    "time left",
                    table->full);
}

void server_bans_state_use(struct server *sv, const char *text)
{
    struct server_bans_state *s = calloc(1, sizeof(*s));

    if (!s) {
        log_warning("upgrade: bans are lost: out of memory");
        return;
    }
    s->server = sv;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "ban ", 4) == 0)
            server_bans_state_take(s, line);
    }
    server_bans_state_add(s);
    server_bans_state_log(&s->lost);
    free(s);
}
