/* option/option_cpus: words and lists of processors, kept in the order they are written in. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "option/option.h"
#include "option/option_cpus.h"
#include "server/server_conf.h"
#include "support/suite.h"

static struct server_worker_conf conf;
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

/* What option_set() makes of ${text}, in ${conf} and ${v}. */
static int try(const char *text)
{
    const struct option *o = option_find(OPTION_WORKER, "cpu_affinity");

    ck_assert_ptr_nonnull(o);
    memset(&conf, 0, sizeof(conf));
    v = (struct option_value){.key = o->key, .text = text, .conf = &conf, .arena = arena};
    return option_set(o, &v);
}

static void expect_list(const char *text, const unsigned *cpus, unsigned n)
{
    ck_assert_msg(try(text) == 0, "%s: %s", text, v.problem);
    ck_assert_int_eq(conf.cpus.affinity, SERVER_AFFINITY_LIST);
    ck_assert_uint_eq(conf.cpus.n, n);
    for (unsigned i = 0; i < n; i++)
        ck_assert_uint_eq(conf.cpus.list[i], cpus[i]);
}

GROUP(lists, setup, teardown);

TEST(lists, keywords_have_no_processor_list)
{
    ck_assert_int_eq(try("off"), 0);
    ck_assert_int_eq(conf.cpus.affinity, SERVER_AFFINITY_OFF);
    ck_assert_int_eq(try("auto"), 0);
    ck_assert_int_eq(conf.cpus.affinity, SERVER_AFFINITY_AUTO);
    ck_assert_ptr_null(conf.cpus.list);
    ck_assert_uint_eq(conf.cpus.n, 0);
}

TEST(lists, a_list_has_numbers_and_ranges_in_its_own_order)
{
    expect_list("0", (unsigned[]){0}, 1);
    expect_list("1023", (unsigned[]){1023}, 1);
    expect_list("0-3,8", (unsigned[]){0, 1, 2, 3, 8}, 5);
    expect_list("8,2-3,0", (unsigned[]){8, 2, 3, 0}, 4);
    expect_list("5-5", (unsigned[]){5}, 1);
    expect_list(" 1\t, 0 ", (unsigned[]){1, 0}, 2);
}

TEST(lists, a_list_may_have_every_processor)
{
    ck_assert_int_eq(try("0-1023"), 0);
    ck_assert_uint_eq(conf.cpus.n, OPTION_CPUS_MAX + 1);
    ck_assert_uint_eq(conf.cpus.list[OPTION_CPUS_MAX], OPTION_CPUS_MAX);
}

TEST(lists, keyword_in_place_of_a_list_clears_the_list)
{
    const struct option *o = option_find(OPTION_WORKER, "cpu_affinity");

    expect_list("0", (unsigned[]){0}, 1);
    v.text = "off";
    ck_assert_int_eq(option_set(o, &v), 0);
    ck_assert_int_eq(conf.cpus.affinity, SERVER_AFFINITY_OFF);
    ck_assert_ptr_null(conf.cpus.list);
}

static const struct {
    const char *text;
    const char *problem;
} bad[] = {
    {"of", "'of' is not known; did you mean 'off'?"},
    {"AUTO", "'AUTO' is not known; did you mean 'auto'?"},
    {"all", "'all' is not known"},
    {"-1", "'-1' is not known"},
    {",0", "',0' is not known"},
    {"1024", "'1024' is above 1023, the highest processor number"},
    {"0-1024", "'1024' is above 1023, the highest processor number"},
    {"99999999999999999999", "'99999999999999999999' is above 1023, the highest processor number"},
    {"0,0", "processor 0 is given twice"},
    {"2,0-3", "processor 2 is given twice"},
    {"0-2,2-4", "processor 2 is given twice"},
    {"3-0", "the range 3-0 goes down"},
    {"0,", "a processor is missing beside a comma"},
    {"0,,1", "a processor is missing beside a comma"},
    {"0-", "'' is not a processor number"},
    {"0--1", "'-1' is not a processor number"},
    {"0-1-2", "'1-2' is not a processor number"},
    {"0 - 1", "'0 ' is not a processor number"},
    {"0 1", "'0 1' is not a processor number"},
    {"0,auto", "'auto' is not a processor number"},
    {"0x1", "'0x1' is not a processor number"},
    {"00", "'00' is not a processor number"},
    {"0/2", "'0/2' is not a processor number"},
};

TEST_EACH(lists, invalid_list_is_refused_with_its_reason_and_sets_nothing, ARRAY_LEN(bad))
{
    ck_assert_int_eq(try(bad[_i].text), -EINVAL);
    ck_assert_str_eq(v.problem, bad[_i].problem);
    ck_assert_int_eq(conf.cpus.affinity, SERVER_AFFINITY_OFF);
    ck_assert_ptr_null(conf.cpus.list);
}
