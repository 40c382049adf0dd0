/* option/option_rate: what is taken, and what is refused with which words. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "option/option.h"
#include "listen/listener.h"
#include "support/suite.h"

static struct listener_conf listener;
static struct arena *arena;
static struct option_value v;

static void setup(void)
{
    ck_assert_int_eq(arena_create(&arena), 0);
}

static void teardown(void)
{
    arena_release(arena);
}

static int try(const char *text)
{
    const struct option *o = option_find(OPTION_LISTEN, "connection_rate");

    ck_assert_ptr_nonnull(o);
    v = (struct option_value){.key = o->key, .text = text, .arena = arena, .conf = &listener};
    return option_set(o, &v);
}

static const struct {
    const char *text;
    struct token_bucket_conf rate;
} good[] = {
    {"0", {0, NS_PER_S, 1}},
    {"1/s", {1, NS_PER_S, 1}},
    {"9/s", {9, NS_PER_S, 1}},
    {"500/s", {500, NS_PER_S, 50}},
    {"1000000/s", {1000000, NS_PER_S, 100000}},
    {"10/m", {10, 60 * NS_PER_S, 1}},
    {"1200/m", {1200, 60 * NS_PER_S, 2}},
    {"5/h", {5, 3600 * NS_PER_S, 1}},
    {"100/s burst=1", {100, NS_PER_S, 1}},
    {"1/h  burst=1000000", {1, 3600 * NS_PER_S, 1000000}},
};

GROUP(option_rate, setup, teardown);

TEST_EACH(option_rate, a_rate_has_a_number_a_time_and_a_burst, ARRAY_LEN(good))
{
    const struct token_bucket_conf *rate = &listener.quota.rate;

    ck_assert_int_eq(try(good[_i].text), 0);
    ck_assert_uint_eq(rate->tokens, good[_i].rate.tokens);
    ck_assert_int_eq(rate->period_ns, good[_i].rate.period_ns);
    ck_assert_uint_eq(rate->burst, good[_i].rate.burst);
}

static const struct {
    const char *text, *why;
} bad[] = {
    {"500", "'500' has no unit of time"},
    {"off", "'off' has no unit of time"},
    {"0/s", "'0' is not a number from 1 to 1000000"},
    {"-1/s", "'-1' is not a number from 1 to 1000000"},
    {"1000001/s", "'1000001' is not a number from 1 to 1000000"},
    {"1k/s", "'1k' is not a number from 1 to 1000000"},
    {"/s", "'' is not a number from 1 to 1000000"},
    {"5/", "'' is not s, m or h"},
    {"5/d", "'d' is not s, m or h"},
    {"5/s/s", "'s/s' is not s, m or h"},
    {"5 /s", "'5' has no unit of time"},
    {"5/s burst=0", "'0' is not a burst from 1 to 1000000"},
    {"5/s burst=1 2", "'1 2' is not a burst from 1 to 1000000"},
    {"5/s burst=", "'' is not a burst from 1 to 1000000"},
    {"5/s 7", "'7' is not burst=N"},
    {"0 burst=5", "'0' has no unit of time"},
};

TEST_EACH(option_rate, invalid_rate_is_refused, ARRAY_LEN(bad))
{
    listener.quota.rate = (struct token_bucket_conf){77, 1, 1};
    ck_assert_int_eq(try(bad[_i].text), -EINVAL);
    ck_assert_str_eq(v.problem, bad[_i].why);
    ck_assert_uint_eq(listener.quota.rate.tokens, 77);
}
