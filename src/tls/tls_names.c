#include "tls/tls_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define TLS_NAMES_FIRST_CAPACITY 16

struct tls_names_entry {
    char *name; /* NULL: a free slot */
    struct tls_certificate_set set;
};

/* Return the entry of ${name}, or the free slot for it. */
static struct tls_names_entry *tls_names_slot(const struct tls_names *t, const char *name)
{
    unsigned i = (unsigned)hash_stable(name, strlen(name));

    while (t->slots[i & (t->capacity - 1)].name &&
           strcmp(t->slots[i & (t->capacity - 1)].name, name) != 0)
        i++;
    return &t->slots[i & (t->capacity - 1)];
}

static int tls_names_grow(struct tls_names *t)
{
    struct tls_names larger = {
        .n = t->n, .capacity = t->capacity ? 2 * t->capacity : TLS_NAMES_FIRST_CAPACITY};

    larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
    if (!larger.slots)
        return -ENOMEM;
    for (unsigned i = 0; i < t->capacity; i++)
        if (t->slots[i].name)
            *tls_names_slot(&larger, t->slots[i].name) = t->slots[i];
    free(t->slots);
    *t = larger;
    return 0;
}

int tls_names_add(struct tls_names *t, const char *name, const struct tls_certificate *c)
{
    enum tls_key_kind kind = tls_certificate_kind(c);
    struct tls_names_entry *e;

    if (2 * (t->n + 1) > t->capacity && tls_names_grow(t) < 0)
        return -ENOMEM;
    e = tls_names_slot(t, name);
    if (!e->name) {
        e->name = strdup(name);
        if (!e->name)
            return -ENOMEM;
        t->n++;
    }
    if (!e->set.of[kind])
        e->set.of[kind] = c;
    return 0;
}

const struct tls_certificate_set *tls_names_get(const struct tls_names *t, const char *name)
{
    const struct tls_names_entry *e = t->capacity > 0 ? tls_names_slot(t, name) : NULL;

    return e && e->name ? &e->set : NULL;
}

const char *tls_names_at(const struct tls_names *t, unsigned i)
{
    return t->slots[i].name;
}

void tls_names_free(struct tls_names *t)
{
    for (unsigned i = 0; i < t->capacity; i++)
        free(t->slots[i].name);
    free(t->slots);
    *t = (struct tls_names){.n = 0};
}
