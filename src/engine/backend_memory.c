#include "engine/backend_memory.h"

#include <errno.h>
#include <ev.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_FDS 64

/* Size of libev's largest array element: ANFD and ANPENDING. */
#define ELEMENT_BYTES 16

/* What array_nextsize() adds at most; also enough for struct ev_loop. */
#define EXTRA_BYTES 8192

/* Entries that are no descriptors: libev's own watcher, the loop's timer, heap offsets. */
#define EXTRA_ENTRIES 16

/* A block of this size is mapped. */
#define MAPPED_BYTES (64 * 1024)

struct backend_block {
    struct backend_slot *slot; /* NULL: from malloc */
    size_t size;               /* in use by libev; 0: free */
    size_t capacity;
    bool is_mapped; /* from mmap(2), not malloc() */
    alignas(max_align_t) unsigned char bytes[];
};

static _Thread_local struct backend_memory *in_use;

/*
 * Return memory that is reserved and not used: large blocks are whole pages, which take none before
 * libev writes to them, and do not count as memory in use (mallinfo2).
 */
static struct backend_block *backend_memory_block(size_t capacity)
{
    size_t bytes = sizeof(struct backend_block) + capacity;
    bool is_mapped = bytes >= MAPPED_BYTES;
    struct backend_block *b =
        is_mapped ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                  : malloc(bytes);

    if (!b || b == MAP_FAILED)
        return NULL;
    *b = (struct backend_block){.capacity = capacity, .is_mapped = is_mapped};
    return b;
}

static void backend_memory_free(struct backend_block *b)
{
    if (b && b->is_mapped)
        munmap(b, sizeof(*b) + b->capacity);
    else
        free(b);
}

static struct backend_block *backend_memory_header(void *bytes)
{
    return bytes ? CONTAINER_OF(bytes, struct backend_block, bytes) : NULL;
}

/* Use the slot's larger block. */
static struct backend_block *backend_memory_move(struct backend_slot *slot)
{
    struct backend_block *old = slot->block;

    slot->block = slot->next;
    slot->block->slot = slot;
    slot->next = NULL;
    if (old) {
        memcpy(slot->block->bytes, old->bytes, old->size);
        slot->block->size = old->size;
        backend_memory_free(old);
    }
    return slot->block;
}

/* A block of this thread's memory; NULL: it has none that is large enough. */
static struct backend_block *backend_memory_find(size_t size)
{
    for (unsigned i = 0; in_use && i < BACKEND_MEMORY_SLOTS; i++) {
        struct backend_block *b = in_use->slots[i].block;

        if (b->size == 0 && b->capacity >= size)
            return b;
    }
    return NULL;
}

static void backend_memory_release(struct backend_block *b)
{
    if (!b)
        return;
    if (!b->slot) {
        backend_memory_free(b);
        return;
    }
    b->size = 0;
    if (b->slot->next)
        backend_memory_move(b->slot);
}

/* Find or allocate a block, and copy ${old} or NULL to it. NULL, if not reserved: libev aborts. */
static struct backend_block *backend_memory_replace(struct backend_block *old, size_t size)
{
    struct backend_block *b = backend_memory_find(size);

    if (!b)
        b = backend_memory_block(size);
    if (!b || !old)
        return b;
    memcpy(b->bytes, old->bytes, old->size < size ? old->size : size);
    backend_memory_release(old);
    return b;
}

/* As realloc(); a size of 0 frees. */
static void *backend_memory_alloc(void *bytes, long bytes_wanted) EV_NOEXCEPT
{
    struct backend_block *b = backend_memory_header(bytes);
    size_t size = (size_t)bytes_wanted;

    if (size == 0) {
        backend_memory_release(b);
        return NULL;
    }
    if (b && size > b->capacity && b->slot && b->slot->next)
        b = backend_memory_move(b->slot);
    if (!b || size > b->capacity)
        b = backend_memory_replace(b, size);
    if (!b)
        return NULL;
    b->size = size;
    return b->bytes;
}

struct backend_memory *backend_memory_use(struct backend_memory *m)
{
    struct backend_memory *before = in_use;

    in_use = m;
    return before;
}

static int backend_memory_grow(struct backend_memory *m, int n_fds)
{
    size_t capacity = 2 * ELEMENT_BYTES * ((size_t)n_fds + EXTRA_ENTRIES) + EXTRA_BYTES;
    struct backend_block *blocks[BACKEND_MEMORY_SLOTS];

    for (unsigned i = 0; i < BACKEND_MEMORY_SLOTS; i++) {
        blocks[i] = backend_memory_block(capacity);
        if (blocks[i])
            continue;
        while (i > 0)
            backend_memory_free(blocks[--i]);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < BACKEND_MEMORY_SLOTS; i++) {
        struct backend_slot *slot = &m->slots[i];

        backend_memory_free(slot->next);
        slot->next = blocks[i];
        if (!slot->block || slot->block->size == 0)
            backend_memory_move(slot);
    }
    atomic_store_explicit(&m->n_fds, n_fds, memory_order_relaxed);
    return 0;
}

int backend_memory_open(struct backend_memory *m)
{
    *m = (struct backend_memory){.slots = {{NULL, NULL}}};
    ev_set_allocator(backend_memory_alloc);
    return backend_memory_grow(m, FIRST_FDS);
}

void backend_memory_close(struct backend_memory *m)
{
    for (unsigned i = 0; i < BACKEND_MEMORY_SLOTS; i++) {
        backend_memory_free(m->slots[i].block);
        backend_memory_free(m->slots[i].next);
    }
    *m = (struct backend_memory){.slots = {{NULL, NULL}}};
}

int backend_memory_reserve(struct backend_memory *m, int fd)
{
    int n_fds = atomic_load_explicit(&m->n_fds, memory_order_relaxed);

    if (fd < n_fds)
        return 0;
    while (n_fds <= fd)
        n_fds *= 2;
    return backend_memory_grow(m, n_fds);
}
