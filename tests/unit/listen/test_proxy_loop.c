/*
 * listen/proxy_loop: an address that is one of our own listeners, by the listeners at one time.
 */
#include "listen/listener.h"
#include "listen/proxy_loop.h"
#include "support/fault.h"
#include "support/sockets.h"
#include "support/suite.h"

enum { FRONT, OTHER, COPIED, LISTENERS };

static struct listener_conf listeners[LISTENERS];
static struct address addresses[LISTENERS];
static unsigned n_listeners;

/* Port 1000 leads to "back", 1001 nowhere, 1002 to "far" with a copy to "copies". */
static void setup(void)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        sockets_loopback(&addresses[i], 1000 + i);
        listeners[i] = (struct listener_conf){.addresses = &addresses[i], .n_addresses = 1};
    }
    listeners[FRONT].upstream = "back";
    listeners[COPIED].upstream = "far";
    listeners[COPIED].mirror = "copies";
    n_listeners = LISTENERS;
}

static int create_into(struct proxy_loop **out, struct proxy_loop *before)
{
    const struct proxy_loop_conf conf = {.listeners = listeners, .n_listeners = n_listeners};

    return proxy_loop_create(out, &conf, before);
}

static struct proxy_loop *create(struct proxy_loop *before)
{
    struct proxy_loop *p;

    ck_assert_int_eq(create_into(&p, before), 0);
    return p;
}

GROUP(proxy_loop, setup, NULL);

TEST(proxy_loop, address_of_a_listener_of_the_upstream_is_a_loop)
{
    struct proxy_loop *p = create(NULL);

    ck_assert(proxy_loop_is(p, "back", &addresses[FRONT]));
    ck_assert(!proxy_loop_is(p, "back", &addresses[OTHER]));
    ck_assert(!proxy_loop_is(p, "back", &addresses[COPIED]));
    ck_assert(!proxy_loop_is(p, "far", &addresses[FRONT]));
    ck_assert(!proxy_loop_is(p, "nobody's", &addresses[FRONT]));
    proxy_loop_release(p);
}

TEST(proxy_loop, address_of_any_listener_is_a_loop_for_a_mirror)
{
    struct proxy_loop *p = create(NULL);

    for (unsigned i = 0; i < LISTENERS; i++)
        ck_assert(proxy_loop_is(p, "copies", &addresses[i]));
    proxy_loop_release(p);
}

TEST(proxy_loop, detector_does_not_need_the_configuration_it_was_made_of)
{
    struct proxy_loop *p = create(NULL);
    char name[] = "back";
    struct address was = addresses[FRONT];

    proxy_loop_release(p);
    listeners[FRONT].upstream = name;
    p = create(NULL);
    name[0] = 'p';
    addresses[FRONT] = addresses[OTHER];
    ck_assert(proxy_loop_is(p, "back", &was));
    proxy_loop_hold(p);
    proxy_loop_release(p);
    ck_assert(!proxy_loop_is(p, "back", &addresses[FRONT]));
    proxy_loop_release(p);
    proxy_loop_release(NULL);
    proxy_loop_hold(NULL);
}

TEST(proxy_loop, the_same_listeners_are_the_same_object)
{
    struct proxy_loop *p = create(NULL), *same = create(p);

    ck_assert_ptr_eq(same, p);
    proxy_loop_release(same);
    ck_assert(proxy_loop_is(p, "back", &addresses[FRONT]));
    proxy_loop_release(p);
}

/* 0: the number of listeners; 1: where one leads; 2: what it copies to; 3, 4: its addresses */
TEST_EACH(proxy_loop, other_listeners_are_another_object, 5)
{
    struct proxy_loop *p = create(NULL), *other;

    switch (_i) {
    case 0: n_listeners--; break;
    case 1: listeners[OTHER].upstream = "back"; break;
    case 2: listeners[COPIED].mirror = NULL; break;
    case 3: listeners[COPIED].n_addresses = 0; break;
    default: sockets_loopback(&addresses[OTHER], 999); break;
    }
    other = create(p);
    ck_assert_ptr_ne(other, p);
    proxy_loop_release(p);
    proxy_loop_release(other);
}

static int attempt(void *cookie)
{
    return create_into(cookie, NULL);
}

TEST(proxy_loop, creating_without_memory_fails)
{
    struct proxy_loop *p;

    /* The arena, this and its two lists; three texts, and addresses and upstreams of each. */
    ck_assert_uint_eq(fault_each_allocation(attempt, &p), 4 + 3 + 2 * LISTENERS);
    proxy_loop_release(p);
}
