#include "net/dns.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct dns_lookup {
    const struct dns_search *search;
    struct dns_terms *terms;
    struct __res_state state;
    unsigned char *answer; /* NS_MAXMSG bytes */
};

static int dns_error(const struct dns_lookup *l)
{
    switch (l->state.res_h_errno) {
    case HOST_NOT_FOUND:
    case NO_DATA: return -ENOENT;
    case TRY_AGAIN:
        /* l->answer holds the name server's refusal; after a timeout its header is still zero. */
        return ((const HEADER *)(const void *)l->answer)->rcode != ns_r_noerror ? -EREMOTEIO
                                                                                : -EAGAIN;
    case NO_RECOVERY: return -EREMOTEIO;
    default: return errno == ENOMEM ? -ENOMEM : -EREMOTEIO;
    }
}

static int dns_read(struct dns_lookup *l, int len, uint16_t type)
{
    const struct dns_search *s = l->search;
    ns_msg message;
    ns_rr rr;
    int n = 0;

    if (ns_initparse(l->answer, len, &message) < 0)
        return -EREMOTEIO;
    for (int i = 0; i < ns_msg_count(message, ns_s_an); i++) {
        int64_t ttl_ns;

        if (ns_parserr(&message, ns_s_an, i, &rr) < 0)
            return n > 0 ? n : -EREMOTEIO;
        ttl_ns = (int64_t)ns_rr_ttl(rr) * NS_PER_S;
        if (ttl_ns < l->terms->ttl_ns)
            l->terms->ttl_ns = ttl_ns;
        if (ns_rr_class(rr) != ns_c_in || ns_rr_type(rr) != type)
            continue;
        s->on_record(s->cookie, &(struct dns_record){.type = type,
                                                     .data = ns_rr_rdata(rr),
                                                     .len = ns_rr_rdlen(rr),
                                                     .answer = l->answer,
                                                     .end = l->answer + len});
        n++;
    }
    return n > 0 ? n : -ENOENT;
}

static int dns_ask(struct dns_lookup *l, const char *domain, uint16_t type)
{
    int len;

    memset(l->answer, 0, sizeof(HEADER));
    errno = 0;
    len = res_nquerydomain(&l->state, l->search->name, domain, ns_c_in, type, l->answer, NS_MAXMSG);
    if (len < 0)
        return dns_error(l);
    return dns_read(l, len < NS_MAXMSG ? len : NS_MAXMSG, type);
}

/* Query all types; records of one suffice, because some name servers drop AAAA queries. */
static int dns_ask_all(struct dns_lookup *l, const char *domain)
{
    int found = 0, error = -ENOENT;

    for (unsigned i = 0; i < l->search->n_types; i++) {
        uint16_t type = l->search->types[i];
        int rc;

        if (type == ns_t_aaaa && i > 0 && l->state.options & RES_NOAAAA)
            continue;
        rc = dns_ask(l, domain, type);
        if (rc > 0)
            found += rc;
        else if (rc != -ENOENT)
            error = rc;
        if (rc == -EAGAIN && found == 0)
            break; /* queries of other types would time out too */
    }
    return found > 0 ? found : error;
}

/* Does ${rc} end the search? Other failures may concern one domain alone. */
static bool dns_is_final(int rc)
{
    return rc > 0 || rc == -EAGAIN || rc == -ENOMEM;
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
        return dns_ask_all(l, NULL);
    if (dots >= l->state.ndots) {
        rc = dns_ask_all(l, NULL);
        if (dns_is_final(rc))
            return rc;
        error = rc;
    }
    for (char *const *domain = l->state.dnsrch; *domain; domain++) {
        rc = dns_ask_all(l, *domain);
        if (dns_is_final(rc))
            return rc;
        error = rc != -ENOENT ? rc : error;
    }
    if (dots < l->state.ndots) {
        rc = dns_ask_all(l, NULL);
        error = rc != -ENOENT ? rc : error;
    }
    return error;
}

int dns_search(const struct dns_search *s, struct dns_terms *terms)
{
    struct dns_lookup l = {.search = s, .terms = terms};
    int rc;

    terms->ttl_ns = CLOCK_NEVER;
    if (res_ninit(&l.state) < 0)
        return -ENOSYS;
    if (terms->timeout_s > 0) {
        l.state.retrans = (int)terms->timeout_s;
        l.state.retry = 1;
    }
    l.answer = malloc(NS_MAXMSG);
    rc = l.answer ? dns_ask_everywhere(&l) : -ENOMEM;
    free(l.answer);
    res_nclose(&l.state);
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
