#include "upstream/server_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_stream.h"

/* A line and all that its pointers refer to, in one allocation. */
struct server_line_memory {
    struct server_line line;
    struct address addresses[];
};

static const char *server_line_copy_text(char **to, const char *text)
{
    const char *copy = *to;
    size_t bytes = strlen(text) + 1;

    memcpy(*to, text, bytes);
    *to += bytes;
    return copy;
}

int server_line_create(struct server_line **out, const struct upstream_server_conf *conf)
{
    size_t n =
        (size_t)conf->n_addresses + (conf->check_address != NULL) + (conf->agent_address != NULL);
    size_t text_bytes = strlen(conf->id) + 1 + strlen(conf->address_text) + 1;
    struct server_line_memory *m = calloc(1, sizeof(*m) + n * sizeof(m->addresses[0]) + text_bytes);
    char *text;

    if (!m)
        return -ENOMEM;
    ref_init(&m->line.references);
    m->line.conf = *conf;
    m->line.is_by_hand = conf->by_hand;
    text = (char *)&m->addresses[n];
    m->line.conf.id = server_line_copy_text(&text, conf->id);
    m->line.conf.address_text = server_line_copy_text(&text, conf->address_text);
    if (conf->n_addresses > 0)
        memcpy(m->addresses, conf->addresses, conf->n_addresses * sizeof(m->addresses[0]));
    m->line.conf.addresses = m->addresses;
    if (conf->check_address) {
        m->addresses[conf->n_addresses] = *conf->check_address;
        m->line.conf.check_address = &m->addresses[conf->n_addresses];
    }
    if (conf->agent_address) {
        m->addresses[n - 1] = *conf->agent_address;
        m->line.conf.agent_address = &m->addresses[n - 1];
    }
    *out = &m->line;
    return 0;
}

static bool server_line_agents_are(const struct upstream_server_conf *a,
                                   const struct upstream_server_conf *b)
{
    if (a->agent_port != b->agent_port || a->has_no_agent != b->has_no_agent ||
        !a->agent_address != !b->agent_address)
        return false;
    return !a->agent_address || address_equal(a->agent_address, b->agent_address);
}

static bool server_line_has_addresses(const struct upstream_server_conf *a,
                                      const struct upstream_server_conf *b)
{
    if (a->n_addresses != b->n_addresses || !a->check_address != !b->check_address)
        return false;
    for (unsigned i = 0; i < a->n_addresses; i++)
        if (!address_equal(&a->addresses[i], &b->addresses[i]))
            return false;
    return !a->check_address || address_equal(a->check_address, b->check_address);
}

static bool server_line_checks_are(const struct upstream_server_conf *a,
                                   const struct upstream_server_conf *b)
{
    return a->unchecked == b->unchecked && a->check_interval_ns == b->check_interval_ns &&
           a->rise == b->rise && a->fall == b->fall;
}

bool server_line_is(const struct server_line *line, const struct upstream_server_conf *conf)
{
    const struct upstream_server_conf *own = &line->conf;

    return strcmp(own->id, conf->id) == 0 && strcmp(own->address_text, conf->address_text) == 0 &&
           own->names == conf->names && own->weight == conf->weight &&
           own->max_connections == conf->max_connections && own->check_port == conf->check_port &&
           own->backup == conf->backup && own->disabled == conf->disabled &&
           server_line_checks_are(own, conf) && server_line_agents_are(own, conf) &&
           own->never_ejected == conf->never_ejected &&
           own->has_send_proxy == conf->has_send_proxy && own->send_proxy == conf->send_proxy &&
           server_line_has_addresses(own, conf);
}

bool server_line_admin_is_disabled(const struct server_line_admin *admin,
                                   const struct upstream_server_conf *conf)
{
    return admin->state == SERVER_LINE_DISABLED ||
           (admin->state == SERVER_LINE_AS_CONFIGURED && conf->disabled);
}

unsigned server_line_admin_weight(const struct server_line_admin *admin,
                                  const struct upstream_server_conf *conf, unsigned found)
{
    if (server_line_admin_is_disabled(admin, conf) || admin->state == SERVER_LINE_DRAIN)
        return 0;
    if (admin->has_weight)
        return admin->weight;
    return conf->weight > 0 ? found : 0;
}

bool server_line_is_disabled(const struct server_line *line)
{
    return server_line_admin_is_disabled(&line->admin, &line->conf);
}

unsigned server_line_weight(const struct server_line *line, unsigned found)
{
    return server_line_admin_weight(&line->admin, &line->conf, found);
}

unsigned server_line_admin_max(const struct server_line_admin *admin,
                               const struct upstream_server_conf *conf)
{
    return admin->has_max ? admin->max_connections : conf->max_connections;
}

bool server_line_is_changed(const struct server_line *line)
{
    return line->admin.state != SERVER_LINE_AS_CONFIGURED || line->admin.has_weight ||
           line->admin.has_max || (line->own && line->own->n > 0);
}

/* Words added since the first release are written only if they are given, as older processes do. */
static void server_line_write_more(const struct upstream_server_conf *conf, FILE *f)
{
    char agent[ADDRESS_TEXT_BYTES];

    if (conf->unchecked)
        fputs(" check=off", f);
    if (conf->check_interval_ns > 0)
        fprintf(f, " interval=%" PRId64, conf->check_interval_ns);
    if (conf->rise > 0)
        fprintf(f, " rise=%u", conf->rise);
    if (conf->fall > 0)
        fprintf(f, " fall=%u", conf->fall);
    if (conf->agent_address)
        fprintf(f, " agent=%s", address_format(agent, sizeof(agent), conf->agent_address));
    if (conf->agent_port > 0 || conf->has_no_agent)
        fprintf(f, " agent_port=%u", conf->agent_port);
    if (conf->never_ejected)
        fputs(" eject=off", f);
    if (conf->has_send_proxy)
        fprintf(f, " send_proxy=%d", (int)conf->send_proxy);
}

char *server_line_text(const struct server_line *line)
{
    const struct upstream_server_conf *conf = &line->conf;
    char check[ADDRESS_TEXT_BYTES] = "-", *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    if (conf->check_address)
        address_format(check, sizeof(check), conf->check_address);
    fprintf(f, "%s names=%d weight=%u max_connections=%u check=%s:%u backup=%d disabled=%d",
            conf->address_text, conf->names, conf->weight, conf->max_connections, check,
            conf->check_port, conf->backup, conf->disabled);
    server_line_write_more(conf, f);
    return text_stream_close(f, &text) == 0 ? text : NULL;
}

struct server_line *server_line_hold(struct server_line *line)
{
    ref_hold(&line->references);
    return line;
}

void server_line_release(struct server_line *line)
{
    if (!line || !ref_release(&line->references))
        return;
    server_line_own_free(line->own);
    free(CONTAINER_OF(line, struct server_line_memory, line));
}
