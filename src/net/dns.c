#include "net/dns_internal.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct dns_lookup {
    const struct dns_search *search;
    struct dns_terms *terms;
    struct __res_state state;
    struct dns_servers servers;
    struct dns_query queries[DNS_TYPES];
    unsigned char answers[DNS_TYPES][NS_MAXMSG];
};

/* Is ${type} not queried? `options no-aaaa`; but a search for nothing else is. */
static bool dns_is_left_out(const struct dns_lookup *l, uint16_t type)
{
    return type == ns_t_aaaa && l->search->n_types > 1 && l->state.options & RES_NOAAAA;
}

/* Write the queries of ${name}; return their number or -errno. */
static int dns_write(struct dns_lookup *l, const char *name)
{
    int n = 0;

    for (unsigned i = 0; i < l->search->n_types; i++) {
        int rc;

        if (dns_is_left_out(l, l->search->types[i]))
            continue;
        l->queries[n].answer = l->answers[n];
        rc = dns_query_write(&l->queries[n], &l->servers, name, l->search->types[i]);
        if (rc < 0)
            return rc;
        n++;
    }
    return n;
}

/* Pass the records of all answers; records of one type suffice. */
static int dns_take(struct dns_lookup *l, unsigned n)
{
    int found = 0, error = 0;

    l->terms->failed = 0;
    for (unsigned i = 0; i < n; i++) {
        struct dns_query *q = &l->queries[i];
        int rc = q->result;

        if (rc == 0)
            rc = dns_answer_read(q->answer, q->answer_len, q->type, l->search, &l->terms->ttl_ns);
        if (rc > 0)
            found += rc;
        if (rc >= 0 || rc == -ENOENT)
            continue;
        error = rc;
        for (unsigned t = 0; t < l->search->n_types; t++)
            if (l->search->types[t] == q->type)
                l->terms->failed |= 1u << t;
    }
    l->terms->error = error;
    return found > 0 ? found : error < 0 ? error : -ENOENT;
}

/* Query the name in ${domain}; NULL or ".": the name alone. */
static int dns_ask(struct dns_lookup *l, const char *domain)
{
    bool is_alone = !domain || strcmp(domain, ".") == 0;
    char name[NS_MAXDNAME];
    int len = snprintf(name, sizeof(name), "%s%s%s", l->search->name, is_alone ? "" : ".",
                       is_alone ? "" : domain);
    int n = len > 0 && (size_t)len < sizeof(name) ? dns_write(l, name) : -EINVAL;

    if (n < 0)
        return is_alone ? n : -ENOENT; /* no name is that long */
    dns_query_run(l->queries, (unsigned)n, &l->servers);
    return dns_take(l, (unsigned)n);
}

/* Does ${rc} end the search? Other failures may concern one domain alone. */
static bool dns_is_final(int rc)
{
    return rc > 0 || (rc != -ENOENT && rc != -EREMOTEIO && rc != -EINVAL);
}

/* Query the name alone and in the search domains, in the order of resolv.conf(5), `ndots`. */
static int dns_ask_everywhere(struct dns_lookup *l)
{
    const char *name = l->search->name;
    size_t len = strlen(name);
    unsigned dots = 0;
    int error = -ENOENT, rc;

    for (size_t i = 0; i < len; i++)
        dots += name[i] == '.';
    if (len > 0 && name[len - 1] == '.')
        return dns_ask(l, NULL);
    if (dots >= l->state.ndots) {
        rc = dns_ask(l, NULL);
        if (dns_is_final(rc))
            return rc;
        error = rc;
    }
    for (char *const *domain = l->state.dnsrch; *domain; domain++) {
        rc = dns_ask(l, *domain);
        if (dns_is_final(rc))
            return rc;
        error = rc != -ENOENT ? rc : error;
    }
    if (dots < l->state.ndots) {
        rc = dns_ask(l, NULL);
        error = rc != -ENOENT ? rc : error;
    }
    return error;
}

/* resolv.conf has no say. */
static void dns_use_servers(struct dns_servers *out, const struct dns_terms *terms)
{
    struct name_servers *s = terms->servers;

    *out = (struct dns_servers){.n = s->n,
                                .attempts = terms->timeout_s > 0 ? 1 : s->tries,
                                .timeout_ns = s->timeout_ns,
                                .sends_opt = true,
                                .preference = &s->preference};
    if (terms->timeout_s > 0)
        out->timeout_ns = clock_sooner(out->timeout_ns, terms->timeout_s * NS_PER_S);
    memcpy(out->list, s->list, s->n * sizeof(s->list[0]));
    dns_servers_prefer(out);
}

static void dns_read_servers(struct dns_servers *out, const struct __res_state *state,
                             const struct dns_terms *terms)
{
    int timeout = terms->timeout_s > 0 ? (int)terms->timeout_s : state->retrans;

    *out = (struct dns_servers){
        .attempts = terms->timeout_s > 0 || state->retry < 1 ? 1 : (unsigned)state->retry,
        .timeout_ns = (timeout > 0 ? timeout : 1) * NS_PER_S,
        .by_tcp = state->options & RES_USEVC,
        .takes_truncated = state->options & RES_IGNTC,
        .sends_opt = state->options & RES_USE_EDNS0,
        .preference = terms->preference};
    for (int i = 0; i < state->nscount && i < MAXNS; i++) {
        const struct sockaddr_in6 *in6 = state->_u._ext.nsaddrs[i];
        struct address *server = &out->list[out->n];

        /* libc: an IPv6 name server has no family in nsaddr_list. */
        if (state->nsaddr_list[i].sin_family == AF_INET)
            *server = (struct address){.len = sizeof(server->u.in), .u.in = state->nsaddr_list[i]};
        else if (in6)
            *server = (struct address){.len = sizeof(server->u.in6), .u.in6 = *in6};
        else
            continue;
        out->n++;
    }
    dns_servers_prefer(out);
}

int dns_search(const struct dns_search *s, struct dns_terms *terms)
{
    struct dns_lookup *l = calloc(1, sizeof(*l));
    int rc;

    MUST(s->n_types <= DNS_TYPES);
    terms->ttl_ns = CLOCK_NEVER;
    terms->failed = 0;
    if (!l)
        return -ENOMEM;
    l->search = s;
    l->terms = terms;
    rc = -ENOSYS;
    if (terms->servers) {
        dns_use_servers(&l->servers, terms);
        rc = dns_ask(l, NULL);
    } else if (res_ninit(&l->state) == 0) {
        dns_read_servers(&l->servers, &l->state, terms);
        rc = dns_ask_everywhere(l);
        res_nclose(&l->state);
    }
    free(l);
    return rc;
}

int dns_name(char *out, size_t size, const struct dns_record *record, size_t offset)
{
    if (offset >= record->len)
        return -EINVAL;
    return dn_expand(record->answer, record->end, record->data + offset, out, (int)size) < 0
               ? -EINVAL
               : 0;
}
