#include "upgrade/fd_store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/parse.h"
#include "upgrade/hand_over.h"
#include "upgrade/inherited.h"
#include "system/notify.h"
#include "net/sock.h"

struct fd_store {
    bool enabled; /* systemd stores descriptors */
    struct inherited_socket *inherited;
    unsigned n;
};

int fd_store_name(char *name, size_t size, const struct address *a)
{
    char text[ADDRESS_TEXT_BYTES + sizeof("#") + 3 * sizeof(a->netns)];
    size_t len = 0;

    address_format(text, ADDRESS_TEXT_BYTES, a);
    if (a->netns != 0)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "#%" PRIu32, a->netns);
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        bool plain = c > ' ' && c < 0x7f && c != ':' && c != '%';

        if (len + (plain ? 1 : 3) >= size)
            return -ENAMETOOLONG;
        len += (size_t)snprintf(name + len, size - len, plain ? "%c" : "%%%02X", c);
    }
    return 0;
}

/*
 * Does ${s} come from a .socket unit, or from a parent other than systemd? Then its name is not one
 * that reactord gives.
 */
static bool fd_store_is_foreign(const struct inherited_socket *s)
{
    char name[FD_STORE_NAME_BYTES];

    if (strcmp(s->name, HAND_OVER_LISTEN) == 0)
        return false;
    return fd_store_name(name, sizeof(name), &s->address) < 0 || strcmp(name, s->name) != 0;
}

/* Find a foreign socket that is bound to ${a} and not `unwanted`; NULL: none. */
static const struct inherited_socket *fd_store_find_foreign(const struct fd_store *store,
                                                            const struct address *a)
{
    for (unsigned i = 0; i < store->n; i++) {
        const struct inherited_socket *s = &store->inherited[i];

        if (!s->unwanted && address_equal(&s->address, a) && fd_store_is_foreign(s))
            return s;
    }
    return NULL;
}

static bool fd_store_has_foreign(const struct fd_store *store, const struct address *a)
{
    return fd_store_find_foreign(store, a) != NULL;
}

void fd_store_hand_over_name(const struct fd_store *store, const struct address *a, char *name)
{
    const struct inherited_socket *s = store ? fd_store_find_foreign(store, a) : NULL;

    if (s)
        snprintf(name, FD_STORE_NAME_BYTES, "%s", s->name);
    else if (!store || !store->enabled || fd_store_name(name, FD_STORE_NAME_BYTES, a) < 0)
        snprintf(name, FD_STORE_NAME_BYTES, "%s", HAND_OVER_LISTEN);
}

static unsigned fd_store_count(void *cookie, const struct address *a)
{
    const struct fd_store *store = cookie;
    unsigned n = 0;

    for (unsigned i = 0; i < store->n; i++)
        n += store->inherited[i].fd >= 0 && address_equal(&store->inherited[i].address, a);
    return n;
}

static int fd_store_take(void *cookie, const struct address *a)
{
    struct fd_store *store = cookie;

    for (unsigned i = 0; i < store->n; i++) {
        struct inherited_socket *s = &store->inherited[i];
        char text[ADDRESS_TEXT_BYTES];
        int fd = s->fd;

        if (fd < 0 || !address_equal(&s->address, a))
            continue;
        s->fd = -1; /* the listener is its owner now */
        log_info("listen address %s: inherited as %s", address_format(text, sizeof(text), a),
                 s->name);
        return fd;
    }
    return -1;
}

static bool fd_store_keep(void *cookie, const struct address *a, int fd)
{
    const struct fd_store *store = cookie;
    char name[FD_STORE_NAME_BYTES], text[ADDRESS_TEXT_BYTES];
    int rc;

    if (fd_store_has_foreign(store, a))
        return true;
    if (!store->enabled)
        return false;
    rc = fd_store_name(name, sizeof(name), a);
    if (rc == 0)
        rc = notify_store(name, fd);
    if (rc < 0)
        log_warning("listen address %s: systemd does not store the socket: %s; a restart closes it",
                    address_format(text, sizeof(text), a), strerror(-rc));
    return rc == 0;
}

static bool fd_store_forget(void *cookie, const struct address *a)
{
    const struct fd_store *store = cookie;
    char name[FD_STORE_NAME_BYTES];

    if (fd_store_has_foreign(store, a))
        return false;
    if (store->enabled && fd_store_name(name, sizeof(name), a) == 0)
        notify_unstore(name);
    return true;
}

/* systemd 254 and newer set FDSTORE; for older versions the unit file sets it. */
static bool fd_store_is_enabled(void)
{
    const char *max = getenv("FDSTORE");
    uint64_t n;

    return max && parse_uint(&n, max, UINT32_MAX) == 0 && n > 0 && getenv("NOTIFY_SOCKET");
}

int fd_store_open(struct fd_store **out)
{
    struct fd_store *store = calloc(1, sizeof(*store));
    int rc;

    if (!store)
        return -ENOMEM;
    rc = inherited_read(&store->inherited, &store->n);
    if (rc < 0) {
        free(store);
        return rc;
    }
    store->enabled = fd_store_is_enabled();
    *out = store;
    return 0;
}

struct socket_store fd_store_ops(struct fd_store *store)
{
    return (struct socket_store){.count = fd_store_count,
                                 .take = fd_store_take,
                                 .keep = fd_store_keep,
                                 .forget = fd_store_forget,
                                 .cookie = store};
}

void fd_store_close_unwanted(struct fd_store *store)
{
    for (unsigned i = 0; i < store->n; i++) {
        struct inherited_socket *s = &store->inherited[i];
        char text[ADDRESS_TEXT_BYTES];

        if (s->fd < 0)
            continue;
        log_notice("inherited socket %s (%s): no listener has this address; closed",
                   address_format(text, sizeof(text), &s->address), s->name);
        inherited_close(s);
    }
}

void fd_store_give_up(struct fd_store *store)
{
    for (unsigned i = 0; i < store->n; i++) {
        struct inherited_socket *s = &store->inherited[i];

        if (!s->unwanted)
            continue;
        s->unwanted = false;
        if (store->enabled)
            notify_unstore(s->name);
        if (s->address.len > 0 && !fd_store_is_foreign(s))
            (void)sock_unlink_own(&s->file, &s->address);
        s->address = (struct address){.len = 0};
    }
}

void fd_store_close(struct fd_store *store)
{
    if (!store)
        return;
    inherited_free(store->inherited, store->n);
    free(store);
}
