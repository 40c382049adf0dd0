/* sessions/overload_round: closes connections in an overload: see overload_internal.h. */
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "service/session.h"
#include "sessions/overload_internal.h"
#include "sessions/worker.h"

/* Maximum of connections closed per worker and round. */
#define OVERLOAD_VICTIMS SESSION_IDLEST_MAX

/* Ticks that a round waits for workers busy with the previous round. */
#define OVERLOAD_PATIENCE 25

/* ---- worker ---- */

/*
 * Close the optional part of ${s}; if it has none, close ${s}, which costs a token. Returns the
 * bytes freed; 0: no token is left.
 */
static int64_t overload_close(struct overload_part *part, struct session *s)
{
    struct overload *ov = part->overload;
    size_t relieved = session_reclaim(s);
    int64_t bytes;

    if (relieved > 0)
        return (int64_t)relieved;
    if (part->tokens == 0)
        return 0;
    part->tokens--;
    bytes = (int64_t)session_held_bytes(s) +
            atomic_load_explicit(&ov->session_bytes, memory_order_relaxed);
    session_abort(s, SESSION_LIMIT);
    atomic_fetch_add_explicit(&ov->closed, 1, memory_order_relaxed);
    return bytes;
}

/* Search for victims for one step; true: the search has ended. */
static bool overload_find(struct overload_part *part, struct worker *w)
{
    struct session_idlest *victims = &part->victims;
    bool all_found;

    if (!session_set_walks(&victims->walk))
        session_idlest_begin(victims, worker_sessions(w),
                             overload_is_of_idle(part->overload) ? session_active_at_ns
                                                                 : session_stalled_since_ns);
    else if (session_set_is_through(&victims->walk))
        return true;
    all_found = session_idlest_step(victims);
    part->had_many = victims->n == OVERLOAD_VICTIMS;
    part->bytes = overload_min(part->bytes, overload_excess(part->overload));
    return all_found;
}

/*
 * Close victims until the worker's share of the excess is freed, or no victim or token is left. The
 * turn's end frees their memory. False: the step is over, call overload_shed() again.
 */
static bool overload_shed(struct overload_part *part)
{
    struct overload *ov = part->overload;
    struct budget step;

    session_set_step_begin(&step);
    while (part->bytes > 0) {
        struct session *victim = session_idlest_take(&part->victims);
        int64_t bytes;

        if (!victim) {
            atomic_store_explicit(&part->had_few, !part->had_many, memory_order_relaxed);
            return true;
        }
        bytes = overload_close(part, victim);
        if (bytes == 0)
            return true;
        part->bytes -= bytes;
        atomic_fetch_sub_explicit(&ov->surplus_bytes, bytes, memory_order_relaxed);
        if (budget_step_over(&step, true))
            return false;
    }
    return true;
}

static void overload_end_part(void *cookie)
{
    struct overload_part *part = cookie;
    struct overload *ov = part->overload;

    session_idlest_end(&part->victims);
    token_bucket_give_back(&ov->pace, &ov->conf.shedding, part->tokens);
    atomic_store(&part->busy, false);
}

static int64_t overload_step(void *cookie, unsigned i)
{
    struct overload_part *part = cookie;
    bool is_over =
        memory_account_is_over(&part->overload->buffered) && overload_excess(part->overload) > 0;

    (void)i;
    return is_over && !(overload_find(part, loop_cookie(loop_current())) && overload_shed(part))
               ? VISIT_NEXT_TURN
               : VISIT_OVER;
}

static const struct visit_ops overload_ops = {.task = VISIT_TASK("close stalled sessions"),
                                              .first = LOOP_TAIL,
                                              .step = overload_step,
                                              .done = overload_end_part};

void overload_part_init(struct overload_part *part, struct overload *ov)
{
    part->overload = ov;
    visit_init(&part->visit, &overload_ops, part, &part->visited, 1);
    session_idlest_init(&part->victims);
}

/* ---- control loop ---- */

/* Must this tick wait for workers busy with the previous round? */
static bool overload_waits(struct overload *ov)
{
    unsigned n = loop_group_size(ov->workers);

    for (unsigned i = 0; i < n; i++)
        if (atomic_load(&ov->parts[i].busy) && ov->ticks_waited < OVERLOAD_PATIENCE) {
            ov->ticks_waited++;
            return true;
        }
    ov->ticks_waited = 0;
    return false;
}

/* Set the weight of each part; returns their sum. */
static unsigned overload_weigh_parts(struct overload *ov)
{
    unsigned n = loop_group_size(ov->workers), sum = 0;

    for (unsigned i = 0; i < n; i++) {
        struct overload_part *part = &ov->parts[i];
        struct loop *loop = loop_group_at(ov->workers, i);
        bool is_able = loop_state(loop) != LOOP_NOT_STARTED && !atomic_load(&part->busy);

        /* Skip a worker that had too few sessions in the last round: others get its tokens. */
        if (atomic_exchange_explicit(&part->had_few, false, memory_order_relaxed))
            is_able = false;
        part->weight = is_able ? loop_load(loop) : 0;
        sum += part->weight;
    }
    return sum;
}

static unsigned overload_take_tokens(struct overload *ov, unsigned max)
{
    int64_t now_ns = clock_now_ns();
    unsigned n = 0;

    while (n < max && token_bucket_take(&ov->pace, &ov->conf.shedding, 1, now_ns))
        n++;
    return n;
}

void overload_begin_round(struct overload *ov)
{
    unsigned n = loop_group_size(ov->workers), left, tokens;
    int64_t excess = overload_excess(ov);

    if (excess <= 0 || overload_waits(ov))
        return;
    left = overload_weigh_parts(ov);
    tokens = left > 0 ? overload_take_tokens(ov, n * OVERLOAD_VICTIMS) : 0;
    ov->round++;
    for (unsigned i = 0; i < n && left > 0; i++) {
        unsigned which = (ov->round + i) % n;
        struct overload_part *part = &ov->parts[which];

        if (part->weight == 0)
            continue;
        part->bytes = excess * part->weight / left + 1;
        part->tokens = (unsigned)(((uint64_t)tokens * part->weight + left / 2) / left);
        excess -= part->bytes;
        tokens -= part->tokens;
        left -= part->weight;
        atomic_store(&part->busy, true);
        visit_begin_one(&part->visit, loop_group_at(ov->workers, which));
    }
}
