#include "limits/hold.h"

bool hold_pass(struct hold *h)
{
    unsigned n;

    if (!hold_is_closed(h))
        return true;
    n = atomic_load(&h->allowance);
    while (n > 0)
        if (atomic_compare_exchange_weak(&h->allowance, &n, n - 1))
            return true;
    return false;
}

void hold_give_back(struct hold *h)
{
    if (hold_is_closed(h))
        atomic_fetch_add(&h->allowance, 1);
}

void hold_close(struct hold *h)
{
    atomic_store(&h->allowance, 0);
    atomic_store(&h->is_closed, true);
}

void hold_open(struct hold *h)
{
    atomic_store(&h->is_closed, false);
}

unsigned hold_allow(struct hold *h, unsigned n)
{
    return atomic_exchange(&h->allowance, n);
}
