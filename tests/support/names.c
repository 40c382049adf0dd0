/* support/names: see names.h. */
#include "support/names.h"

#include <check.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX 8

typedef int function(const char *node, const char *service, const struct addrinfo *hints,
                     struct addrinfo **res);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
    const char *host;
    const char *addresses;
} names[NAMES_MAX];
static atomic_uint asked;
static atomic_bool dns_allowed;
static atomic_uint server_ports[MAXNS], n_servers; /* 0: those of resolv.conf */

void names_set(const char *host, const char *addresses)
{
    unsigned i = 0;

    pthread_mutex_lock(&lock);
    while (i < NAMES_MAX && names[i].host && strcmp(names[i].host, host) != 0)
        i++;
    ck_assert_uint_lt(i, NAMES_MAX);
    names[i].host = host;
    names[i].addresses = addresses;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Where ${host} is, NULL if nothing was said about it. Waits as long as it is silent. */
static const char *answer(const char *host)
{
    const char *addresses = NULL;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < NAMES_MAX && names[i].host; i++) {
        if (strcmp(names[i].host, host) != 0)
            continue;
        while (strcmp(names[i].addresses, NAMES_SILENT) == 0)
            pthread_cond_wait(&changed, &lock);
        addresses = names[i].addresses;
    }
    pthread_mutex_unlock(&lock);
    return addresses;
}

unsigned names_asked(void)
{
    return atomic_load(&asked);
}

/* One list of what ${next} makes of each address; the C library frees it item by item. */
static int list_all(function *next, const char *addresses, const struct addrinfo *hints,
                    struct addrinfo **res)
{
    char literal[64];
    int rc = 0;

    *res = NULL;
    while (rc == 0 && *addresses != '\0') {
        size_t len = strcspn(addresses, ",");

        snprintf(literal, sizeof(literal), "%.*s", (int)len, addresses);
        rc = next(literal, NULL, hints, res);
        addresses += addresses[len] == ',' ? len + 1 : len;
        while (rc == 0 && *res)
            res = &(*res)->ai_next;
    }
    return rc;
}

int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict res)
{
    function *next = (function *)dlsym(RTLD_NEXT, "getaddrinfo");
    const char *addresses;

    atomic_fetch_add(&asked, 1);
    addresses = node ? answer(node) : NULL;
    if (!addresses)
        return next(node, service, hints, res);
    if (strcmp(addresses, NAMES_UNKNOWN) == 0)
        return EAI_NONAME;
    return list_all(next, addresses, hints, res);
}

void names_allow_dns(void)
{
    atomic_store(&dns_allowed, true);
}

void names_use_servers(const unsigned *ports, unsigned n)
{
    ck_assert_uint_le(n, MAXNS);
    for (unsigned i = 0; i < n; i++)
        atomic_store(&server_ports[i], ports[i]);
    atomic_store(&n_servers, n);
    names_allow_dns();
}

/* <resolv.h> makes it __res_ninit(). */
int res_ninit(res_state state)
{
    int (*next)(res_state) = (int (*)(res_state))dlsym(RTLD_NEXT, "__res_ninit");
    int n = (int)atomic_load(&n_servers);

    if (!atomic_load(&dns_allowed) || next(state) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        state->nsaddr_list[i] =
            (struct sockaddr_in){.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)atomic_load(&server_ports[i])),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    state->nscount = n > 0 ? n : state->nscount;
    return 0;
}
