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

/* Keep what the format asks for. Without memory it is missing in the log. */
static void session_access_log_ask(struct session *s)
{
    unsigned asks = access_log_format_asks(s->service->access_log_format);
    struct session_facts *f = session_facts_of(s);

    if (asks != 0 && !f && (f = session_facts_create(s->logged.number))) {
        s->logged.facts = f;
        s->has_facts = true;
    }
    if (f)
        session_facts_keep(f, asks);
}

void session_access_log_begin(struct session *s)
{
    if (!s->service->access_log)
        return;
    s->logged.number = access_log_number(s->service->access_log);
    session_access_log_ask(s);
}

static uint64_t session_access_log_number(const struct session *s)
{
    return s->has_facts ? session_facts_number(s->logged.facts) : s->logged.number;
}

static int64_t session_access_log_time_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static struct access_log_record session_access_log_record(const struct service *service)
{
    return (struct access_log_record){
        .time_ns = session_access_log_time_ns(),
        .listener = service->listener,
        .upstream = service->upstream ? service->upstream->name : NULL,
        .queue_ns = ACCESS_LOG_RECORD_NONE_NS,
        .connect_ns = ACCESS_LOG_RECORD_NONE_NS,
        .first_byte_ns = ACCESS_LOG_RECORD_NONE_NS,
        .tls_handshake_ns = ACCESS_LOG_RECORD_NONE_NS,
        .client_fin_ns = ACCESS_LOG_RECORD_NONE_NS,
        .server_fin_ns = ACCESS_LOG_RECORD_NONE_NS,
        .half_closed_ns = ACCESS_LOG_RECORD_NONE_NS,
    };
}

static void session_access_log_put(const struct service *service, const struct access_log_record *r)
{
    char line[ACCESS_LOG_LINE_BYTES];

    access_log_put(service->access_log, line,
                   access_log_format_write(service->access_log_format, r, line));
}

static void session_access_log_write(struct session *s, enum session_reason reason)
{
    struct access_log_record r = session_access_log_record(s->service);
    bool counts = reason != SESSION_OPEN || !s->preface; /* bytes of a preface do not count */
    const struct channel *client = counts ? s->legs[0] : NULL;
    struct session_facts *facts = session_facts_of(s);

    r.connection = session_access_log_number(s);
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
    session_access_log_put(s->service, &r);
}

void session_access_log_turned_away(const struct service *service, const struct address *client,
                                    const struct address *listen, enum session_reason reason)
{
    struct access_log_record r;

    if (!service->access_log)
        return;
    r = session_access_log_record(service);
    r.connection = access_log_number(service->access_log);
    r.client = client;
    r.listen = listen;
    r.reason = reason;
    session_access_log_put(service, &r);
}

void session_access_log_end(struct session *s)
{
    if (s->service->access_log)
        session_access_log_write(s, s->reason);
}

/* Lines are due at whole intervals from the session's start, even after a line was late. */
int64_t session_access_log_due_ns(const struct session *s)
{
    int64_t interval_ns = s->service->access_log_interval_ns;

    if (!s->service->access_log || interval_ns == 0)
        return CLOCK_NEVER;
    return clock_add_ns(s->began_at_ns, interval_ns * ((int64_t)s->access_lines + 1));
}

void session_access_log_carry_over(struct session *s, int64_t before_ns)
{
    int64_t interval_ns = s->service->access_log_interval_ns;

    if (session_access_log_number(s) == 0)
        session_access_log_begin(s);
    else if (s->service->access_log)
        session_access_log_ask(s);
    if (interval_ns > 0 && interval_ns != before_ns)
        s->access_lines = (uint32_t)((clock_now_ns() - s->began_at_ns) / interval_ns);
}

void session_access_log_look(struct session *s, int64_t now_ns)
{
    if (now_ns < session_access_log_due_ns(s))
        return;
    s->access_lines = (uint32_t)((now_ns - s->began_at_ns) / s->service->access_log_interval_ns);
    for (unsigned i = 0; i < SESSION_LEGS; i++)
        if (s->legs[i] && !channel_ended(s->legs[i]))
            session_facts_measure(session_facts_of(s), i, s->legs[i]->io.fd);
    session_access_log_write(s, SESSION_OPEN);
}
