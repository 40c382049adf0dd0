/* listen/listeners_acceptors: another number of workers accepts: see listeners.h. */
#include "listen/listener_generation.h"
#include "listen/listeners_internal.h"

static unsigned listeners_acceptors_sockets(const struct listener_generation *gen, unsigned n)
{
    return gen->conf.reuseport > n ? gen->conf.reuseport : n;
}

/* Let the generations in use want as many sockets as ${n} workers that accept need. */
static void listeners_acceptors_want(struct listeners *ls, unsigned n)
{
    lock_take(&ls->lock);
    list_for_each (at, &ls->addresses) {
        struct listener_generation *gen = LIST_ENTRY(at, struct listeners_address, link)->current;

        if (gen)
            gen->sockets = listeners_acceptors_sockets(gen, n);
    }
    lock_release(&ls->lock);
}

/* Let the sockets of ${la} share their port, if there will be more than one. */
static int listeners_acceptors_share(struct listeners *ls, struct listeners_address *la, unsigned n)
{
    if (!la->current || la->n_sockets == 0 || address_is_unix(&la->address) ||
        listeners_acceptors_sockets(la->current, n) <= la->n_sockets)
        return 0;
    return listeners_share(ls, la, true);
}

int listeners_prepare_acceptors(struct listeners *ls, unsigned n)
{
    int rc = 0;

    list_for_each (at, &ls->addresses)
        if (rc == 0)
            rc = listeners_acceptors_share(ls, LIST_ENTRY(at, struct listeners_address, link), n);
    listeners_acceptors_want(ls, n);
    list_for_each (at, &ls->addresses) {
        struct listeners_address *la = LIST_ENTRY(at, struct listeners_address, link);

        if (rc == 0 && la->current)
            rc = listeners_open_sockets(ls, la, la->current, ls->accept_batch);
    }
    if (rc < 0)
        listeners_cancel_acceptors(ls);
    return rc;
}

void listeners_commit_acceptors(struct listeners *ls, unsigned n)
{
    lock_take(&ls->lock);
    list_for_each (at, &ls->addresses) {
        struct listeners_address *la = LIST_ENTRY(at, struct listeners_address, link);

        if (ls->stopping)
            listeners_destroy_opened(la);
        else
            listeners_commit_opened(ls, la);
        la->shared = false;
    }
    listeners_place_sockets(ls);
    ls->acceptors = n;
    lock_release(&ls->lock);
}

void listeners_cancel_acceptors(struct listeners *ls)
{
    listeners_acceptors_want(ls, ls->acceptors);
    list_for_each (at, &ls->addresses)
        listeners_cancel_address(ls, LIST_ENTRY(at, struct listeners_address, link));
}
