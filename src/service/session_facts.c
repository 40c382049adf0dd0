#include "service/session_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/must.h"
#include "net/sock.h"
#include "net/tcp_figures.h"
#include "stats/access_log_format.h"
#include "stats/access_log_record.h"

/* What is known of one leg. */
struct session_facts_leg {
    bool is_measured;
    struct tcp_figures tcp;
    uint64_t bytes_in, bytes_out;
    bool is_counted;
    int64_t fin_at_ns; /* 0: no end of file so far */
};

struct session_facts {
    unsigned asks;
    uint64_t numbers[SESSION_FACTS_LOGS]; /* in each access log */
    struct session_facts_leg legs[SESSION_FACTS_LEGS];
    struct address source; /* ours, towards the server; len 0: unknown */
    size_t result_at;      /* in `attempts`: the last result */
    char *attempts;        /* of ACCESS_LOG_RECORD_ATTEMPTS_BYTES; NULL: none so far */
};

struct session_facts *session_facts_create(void)
{
    return calloc(1, sizeof(struct session_facts));
}

void session_facts_destroy(struct session_facts *f)
{
    if (!f)
        return;
    free(f->attempts);
    free(f);
}

void session_facts_keep(struct session_facts *f, unsigned asks)
{
    f->asks = asks;
}

void session_facts_set_number(struct session_facts *f, unsigned i, uint64_t number)
{
    MUST(i < SESSION_FACTS_LOGS);
    f->numbers[i] = number;
}

uint64_t session_facts_number(const struct session_facts *f, unsigned i)
{
    MUST(i < SESSION_FACTS_LOGS);
    return f->numbers[i];
}

void session_facts_measure(struct session_facts *f, unsigned leg, int fd)
{
    static const unsigned ask[] = {ACCESS_LOG_ASK_CLIENT_TCP, ACCESS_LOG_ASK_SERVER_TCP};

    MUST(leg < SESSION_FACTS_LEGS);
    if (f && (f->asks & ask[leg]))
        f->legs[leg].is_measured = tcp_figures_read(&f->legs[leg].tcp, fd);
}

void session_facts_linked(struct session_facts *f, int fd)
{
    if (!f)
        return;
    f->legs[1] = (struct session_facts_leg){.fin_at_ns = 0}; /* not those of a lost spare */
    if (!(f->asks & ACCESS_LOG_ASK_SOURCE) || sock_local(&f->source, fd) < 0)
        f->source.len = 0;
}

void session_facts_fin(struct session_facts *f, unsigned leg)
{
    MUST(leg < SESSION_FACTS_LEGS);
    if (f)
        f->legs[leg].fin_at_ns = clock_now_ns();
}

int64_t session_facts_fin_at_ns(const struct session_facts *f, unsigned leg)
{
    return f ? f->legs[leg].fin_at_ns : 0;
}

void session_facts_set_fin(struct session_facts *f, unsigned leg, int64_t at_ns)
{
    if (f)
        f->legs[leg].fin_at_ns = at_ns;
}

void session_facts_count(struct session_facts *f, uint64_t bytes_in, uint64_t bytes_out)
{
    struct session_facts_leg *server = &f->legs[1];

    server->is_counted = true;
    server->bytes_in = bytes_in;
    server->bytes_out = bytes_out;
}

static const char *session_facts_result(int error)
{
    switch (error) {
    case 0: return "ok";
    case -ECONNREFUSED: return "refused";
    case -ECONNRESET: return "reset";
    case -ETIMEDOUT: return "timeout";
    case -EHOSTUNREACH:
    case -ENETUNREACH: return "unreachable";
    case -EAGAIN: return "busy"; /* unix socket with a full backlog */
    case -ENOENT: return "missing";
    case -EACCES:
    case -EPERM: return "denied";
    case -ECANCELED: return "canceled";
    default: return "error";
    }
}

static void session_facts_put(struct session_facts *f, const struct address *a, const char *result)
{
    char text[ADDRESS_TEXT_BYTES];
    size_t len, space;
    int n;

    if (!f || !(f->asks & ACCESS_LOG_ASK_ATTEMPTS))
        return;
    if (!f->attempts && !(f->attempts = calloc(1, ACCESS_LOG_RECORD_ATTEMPTS_BYTES)))
        return;
    len = strlen(f->attempts);
    space = ACCESS_LOG_RECORD_ATTEMPTS_BYTES - len;
    n = snprintf(f->attempts + len, space, "%s%s=%s", len > 0 ? "," : "",
                 address_format(text, sizeof(text), a), result);
    if ((size_t)n < space)
        f->result_at = len + (size_t)n - strlen(result);
    else
        f->attempts[len] = '\0'; /* no space: the first attempts stay */
}

void session_facts_tried(struct session_facts *f, const struct address *a, int error)
{
    session_facts_put(f, a, session_facts_result(error));
}

void session_facts_spare(struct session_facts *f, const struct address *a)
{
    session_facts_put(f, a, "spare");
}

void session_facts_undone(struct session_facts *f, int error)
{
    static const char tls[] = "tls", timeout[] = "timeout";

    if (f && f->attempts && strcmp(f->attempts + f->result_at, "ok") == 0 &&
        f->result_at + sizeof(timeout) <= ACCESS_LOG_RECORD_ATTEMPTS_BYTES)
        strcpy(f->attempts + f->result_at, error == -ETIMEDOUT ? timeout : tls);
}

/* ${value}, which is known if ${measured} is not 0. */
static const uint64_t *session_facts_if(uint64_t measured, const uint64_t *value)
{
    return measured > 0 ? value : NULL;
}

static int64_t session_facts_fin_ns(const struct session_facts_leg *leg, int64_t began_at_ns)
{
    return leg->fin_at_ns > 0 ? leg->fin_at_ns - began_at_ns : ACCESS_LOG_RECORD_NONE_NS;
}

/* Time with one end of file only: until the other one, or now. */
static int64_t session_facts_half_closed_ns(const struct session_facts *f)
{
    int64_t a_ns = f->legs[0].fin_at_ns, b_ns = f->legs[1].fin_at_ns;

    if (a_ns == 0 && b_ns == 0)
        return ACCESS_LOG_RECORD_NONE_NS;
    if (a_ns > 0 && b_ns > 0)
        return a_ns < b_ns ? b_ns - a_ns : a_ns - b_ns;
    return clock_now_ns() - (a_ns > 0 ? a_ns : b_ns);
}

void session_facts_describe(const struct session_facts *f, struct access_log_record *r,
                            int64_t began_at_ns)
{
    const struct session_facts_leg *client = &f->legs[0], *server = &f->legs[1];

    if (client->is_measured) {
        r->client_rtt_us = session_facts_if(client->tcp.rtt_us, &client->tcp.rtt_us);
        r->client_rtt_var_us = session_facts_if(client->tcp.rtt_us, &client->tcp.rtt_var_us);
        r->client_retransmits = &client->tcp.retransmits;
        r->client_delivery_rate =
            session_facts_if(client->tcp.delivery_rate, &client->tcp.delivery_rate);
    }
    if (server->is_measured) {
        r->server_rtt_us = session_facts_if(server->tcp.rtt_us, &server->tcp.rtt_us);
        r->server_rtt_var_us = session_facts_if(server->tcp.rtt_us, &server->tcp.rtt_var_us);
        r->server_retransmits = &server->tcp.retransmits;
        r->server_delivery_rate =
            session_facts_if(server->tcp.delivery_rate, &server->tcp.delivery_rate);
    }
    if (server->is_counted) {
        r->server_bytes_in = &server->bytes_in;
        r->server_bytes_out = &server->bytes_out;
    }
    r->source_address = &f->source;
    r->attempts = f->attempts;
    r->client_fin_ns = session_facts_fin_ns(client, began_at_ns);
    r->server_fin_ns = session_facts_fin_ns(server, began_at_ns);
    r->half_closed_ns = session_facts_half_closed_ns(f);
}
