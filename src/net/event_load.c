#include "net/event_load.h"

bool event_load_known(const struct event_timing *t, int64_t now_ns)
{
    int64_t whole_second_ns = (now_ns / NS_PER_S - 1) * NS_PER_S;

    return atomic_load(&t->on) && atomic_load(&t->since_ns) <= whole_second_ns;
}

/*
 * note: asked. The asker stores `until_ns`, then `on`; the loop clears `on`, then reads `until_ns`
 * again. Both are sequentially consistent: an ask is never lost.
 */
bool event_load_ask(struct event_timing *t, int64_t now_ns)
{
    atomic_store(&t->until_ns, now_ns + EVENT_LOAD_ASKED_NS);
    if (!atomic_load(&t->on)) {
        atomic_store(&t->since_ns, now_ns);
        atomic_store(&t->on, true);
    }
    return event_load_known(t, now_ns);
}

/* See note: asked. */
static void event_load_stop_if_late(struct event_timing *t, int64_t now_ns)
{
    if (now_ns < atomic_load_explicit(&t->until_ns, memory_order_relaxed))
        return;
    atomic_store(&t->on, false);
    if (now_ns < atomic_load(&t->until_ns))
        atomic_store(&t->on, true);
}

/* Numbers of events until the next that is timed: 1 to 2 * EVENT_LOAD_EACH - 1 (xorshift). */
static unsigned event_load_draw(struct event_timing *t)
{
    uint32_t x = t->seed ? t->seed : (uint32_t)clock_now_ns() | 1;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    t->seed = x;
    return 1 + x % (2 * EVENT_LOAD_EACH - 1);
}

int64_t event_load_begin(struct event_timing *t)
{
    if (t->left > 1) {
        t->left--;
        return 0;
    }
    t->left = event_load_draw(t);
    return clock_now_ns();
}

void event_load_end(struct event_timing *t, int64_t began_at_ns, struct event_load *load)
{
    int64_t now_ns = clock_now_ns();

    event_load_charge(load, now_ns, (now_ns - began_at_ns) * EVENT_LOAD_EACH / NS_PER_US);
    event_load_stop_if_late(t, now_ns);
}

void event_load_charge(struct event_load *load, int64_t at_ns, int64_t us)
{
    uint32_t second = event_load_second(at_ns);
    int64_t sum;

    if (second != load->second) {
        load->before = second == load->second + 1 ? load->now : 0;
        load->now = 0;
        load->second = second;
    }
    sum = load->now + (us + EVENT_LOAD_UNIT_US - 1) / EVENT_LOAD_UNIT_US;
    load->now = sum < UINT16_MAX ? (uint16_t)sum : UINT16_MAX;
}

unsigned event_load_us(const struct event_load *load, int64_t now_ns)
{
    uint32_t last = event_load_second(now_ns) - 1;

    if (load->second == last)
        return load->now * EVENT_LOAD_UNIT_US;
    return load->second == last + 1 ? load->before * EVENT_LOAD_UNIT_US : 0;
}

int64_t event_load_moved_ns(const struct event_load *load, int64_t now_ns)
{
    return load->moved_second == 0 ? CLOCK_NEVER : now_ns - (int64_t)load->moved_second * NS_PER_S;
}
