#include "service/session_access_log.h"

#include <time.h>

#include "base/clock.h"
#include "engine/loop.h"
#include "service/session.h"
#include "service/session_facts.h"
#include "service/session_header.h"
#include "service/session_hello.h"
#include "service/session_tls.h"
#include "stats/access_log.h"
#include "stats/access_log_format.h"
#include "stats/access_log_record.h"
#include "upstream/upstream.h"

_Static_assert(SESSION_FACTS_LOGS == SERVICE_ACCESS_LOGS, "each log has its number");

/* Keep what the logs ask for, and numbers in all of them; without memory only the first number. */
static void session_access_log_ask(struct session *s)
{
    const struct service *service = s->service;
    struct session_facts *f = session_facts_of(s);
    unsigned asks = 0;

    for (unsigned i = 0; i < service->n_access_logs; i++)
        asks |= access_log_format_asks(service->access_logs[i].format);
    if ((asks != 0 || service->n_access_logs > 1) && !f && (f = session_facts_create())) {
        session_facts_set_number(f, 0, s->logged.number);
        s->logged.facts = f;
        s->has_facts = true;
    }
    if (f)
        session_facts_keep(f, asks);
}

static void session_access_log_set_number(struct session *s, unsigned i, uint64_t number)
{
    if (s->has_facts)
        session_facts_set_number(s->logged.facts, i, number);
    else if (i == 0)
        s->logged.number = number;
}

static uint64_t session_access_log_number(const struct session *s, unsigned i)
{
    if (s->has_facts)
        return session_facts_number(s->logged.facts, i);
    return i == 0 ? s->logged.number : 0;
}

void session_access_log_begin(struct session *s)
{
    const struct service *service = s->service;

    if (service->n_access_logs == 0)
        return;
    session_access_log_ask(s);
    for (unsigned i = 0; i < service->n_access_logs; i++)
        session_access_log_set_number(s, i, access_log_number(service->access_logs[i].log));
}

void session_access_log_save(const struct session *s, uint64_t *numbers)
{
    for (unsigned i = 0; i < SESSION_FACTS_LOGS; i++)
        numbers[i] = i < s->service->n_access_logs ? session_access_log_number(s, i) : 0;
}

void session_access_log_restore(struct session *s, const uint64_t *numbers)
{
    const struct service *service = s->service;

    if (service->n_access_logs == 0)
        return;
    session_access_log_ask(s);
    for (unsigned i = 0; i < service->n_access_logs; i++)
        session_access_log_set_number(
            s, i, numbers[i] > 0 ? numbers[i] : access_log_number(service->access_logs[i].log));
}

static int64_t session_access_log_time_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* The upstream of a route is known once it was chosen. */
static struct access_log_record session_access_log_record(const struct service *service)
{
    const struct upstream *only = service->routes ? NULL : service->upstream;

    return (struct access_log_record){
        .time_ns = session_access_log_time_ns(),
        .listener = service->listener,
        .upstream = only ? only->name : NULL,
        .queue_ns = ACCESS_LOG_RECORD_NONE_NS,
        .connect_ns = ACCESS_LOG_RECORD_NONE_NS,
        .first_byte_ns = ACCESS_LOG_RECORD_NONE_NS,
        .tls_handshake_ns = ACCESS_LOG_RECORD_NONE_NS,
        .client_fin_ns = ACCESS_LOG_RECORD_NONE_NS,
        .server_fin_ns = ACCESS_LOG_RECORD_NONE_NS,
        .half_closed_ns = ACCESS_LOG_RECORD_NONE_NS,
    };
}

static void session_access_log_put(const struct service_access_log *to,
                                   const struct access_log_record *r)
{
    char line[ACCESS_LOG_LINE_BYTES];

    if (access_log_filter_takes(&to->filter, r))
        access_log_put(to->log, line, access_log_format_write(to->format, r, line));
}

/* Write a line in each log; ${at_connect}: in those that have one at connect. */
static void session_access_log_write(struct session *s, enum session_reason reason, bool at_connect)
{
    struct access_log_record r = session_access_log_record(s->service);
    bool counts = reason != SESSION_OPEN || !s->preface; /* bytes of a preface do not count */
    const struct channel *client = counts ? s->legs[0] : NULL;
    struct session_facts *facts = session_facts_of(s);

    r.id = session_id(s);
    r.client = &s->peer;
    r.listen = s->listen;
    r.proxy = session_header_proxy(s);
    session_header_describe(s, &r);
    session_hello_describe(s, &r);
    session_tls_describe(s, &r);
    if (facts && s->legs[1])
        session_facts_count(facts, s->legs[1]->bytes_in, s->legs[1]->bytes_out);
    if (facts)
        session_facts_describe(facts, &r, s->began_at_ns);
    r.reason = reason;
    if (client) {
        r.bytes_in = client->bytes_in;
        r.bytes_out = client->bytes_out;
    }
    if (s->owner) {
        r.worker = loop_name(s->owner->net->loop);
        r.duration_ns = clock_now_ns() - s->began_at_ns;
        if (s->service->ops->describe)
            s->service->ops->describe(s, &r);
    }
    for (unsigned i = 0; i < s->service->n_access_logs; i++) {
        r.connection = session_access_log_number(s, i);
        if (!at_connect || s->service->access_logs[i].at_connect)
            session_access_log_put(&s->service->access_logs[i], &r);
    }
}

void session_access_log_turned_away(const struct service *service, const struct address *client,
                                    const struct address *listen, enum session_reason reason)
{
    struct access_log_record r;

    if (service->n_access_logs == 0)
        return;
    r = session_access_log_record(service);
    r.client = client;
    r.listen = listen;
    r.reason = reason;
    for (unsigned i = 0; i < service->n_access_logs; i++) {
        r.connection = access_log_number(service->access_logs[i].log);
        session_access_log_put(&service->access_logs[i], &r);
    }
}

void session_access_log_end(struct session *s)
{
    if (s->service->n_access_logs > 0)
        session_access_log_write(s, s->reason, false);
}

/* Lines are due at whole intervals from the session's start, even after a line was late. */
int64_t session_access_log_due_ns(const struct session *s)
{
    int64_t interval_ns = s->service->access_log_interval_ns;

    if (s->service->n_access_logs == 0 || interval_ns == 0)
        return CLOCK_NEVER;
    return clock_add_ns(s->began_at_ns, interval_ns * ((int64_t)s->access_lines + 1));
}

/* The number of ${s} in ${log}: the one that it had under ${before}, or a new one. */
static uint64_t session_access_log_number_in(const struct session *s, struct access_log *log,
                                             const struct service *before)
{
    for (unsigned i = 0; i < before->n_access_logs; i++)
        if (before->access_logs[i].log == log && session_access_log_number(s, i) > 0)
            return session_access_log_number(s, i);
    return access_log_number(log);
}

static void session_access_log_change(struct session *s, const struct service *before)
{
    const struct service *service = s->service;
    uint64_t numbers[SERVICE_ACCESS_LOGS];

    MUST(service->n_access_logs <= SERVICE_ACCESS_LOGS);
    for (unsigned i = 0; i < service->n_access_logs; i++)
        numbers[i] = session_access_log_number_in(s, service->access_logs[i].log, before);
    session_access_log_ask(s);
    for (unsigned i = 0; i < service->n_access_logs; i++)
        session_access_log_set_number(s, i, numbers[i]);
}

void session_access_log_carry_over(struct session *s, const struct service *before)
{
    int64_t interval_ns = s->service->access_log_interval_ns;

    session_access_log_change(s, before);
    if (interval_ns > 0 && interval_ns != before->access_log_interval_ns)
        s->access_lines = (uint32_t)((clock_now_ns() - s->began_at_ns) / interval_ns);
}

static void session_access_log_measure(struct session *s)
{
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i] && !channel_ended(s->legs[i]))
            session_facts_measure(session_facts_of(s), i, s->legs[i]->io.fd);
}

void session_access_log_opened(struct session *s)
{
    const struct service *service = s->service;
    bool wanted = false;

    for (unsigned i = 0; i < service->n_access_logs; i++)
        wanted |= service->access_logs[i].at_connect;
    if (!wanted || s->has_open_line)
        return;
    s->has_open_line = true;
    session_access_log_measure(s);
    session_access_log_write(s, SESSION_OPEN, true);
}

void session_access_log_look(struct session *s, int64_t now_ns)
{
    if (now_ns < session_access_log_due_ns(s))
        return;
    s->access_lines = (uint32_t)((now_ns - s->began_at_ns) / s->service->access_log_interval_ns);
    session_access_log_measure(s);
    session_access_log_write(s, SESSION_OPEN, false);
}
