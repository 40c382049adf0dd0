/*
 * names/resolver_cache: answers that outlive server lines and processes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names/resolver_internal.h"
#include "support/suite.h"

static struct resolver_cache cache;
static struct resolver_found_addresses *found;
static const struct name_servers *servers; /* asked by get() */

static void setup(void)
{
    resolver_cache_init(&cache);
}

static void teardown(void)
{
    resolver_free_found(found);
    found = NULL;
    servers = NULL;
    resolver_cache_close(&cache);
}

static char *written(struct resolver_cache *c)
{
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    ck_assert_ptr_nonnull(f);
    resolver_cache_write(c, f);
    ck_assert_int_eq(fclose(f), 0);
    return text;
}

/* The answer of ${word}; the entry is released again. */
static int get(enum upstream_names names, const char *word)
{
    struct resolver_cache_entry *entry = resolver_cache_take(&cache, names, word, servers);
    int rc;

    ck_assert_ptr_nonnull(entry);
    resolver_free_found(found);
    found = NULL;
    rc = resolver_cache_get(entry, word, &found);
    resolver_cache_release(&cache, entry);
    return rc;
}

static void expect_address(unsigned i, const char *text)
{
    char is[ADDRESS_TEXT_BYTES];

    ck_assert_uint_lt(i, found->n);
    ck_assert_str_eq(address_format(is, sizeof(is), &found->list[i]), text);
}

static const char host[] = "name host:app.test 5 7 192.0.2.1:80,[2001:db8::1]:80\n";
static const char service[] =
    "name service:_a._tcp.test 5 7 h1.test:80;1;30;192.0.2.1:80;192.0.2.2:80,h2.test:81;2;0,"
    "h3.test:82;2;10;192.0.2.3:82\n";

GROUP(cache, setup, teardown);

TEST(cache, an_answer_of_a_host_gets_the_port_of_the_line)
{
    ck_assert_int_eq(resolver_cache_read(&cache, host), 0);
    ck_assert_int_eq(get(UPSTREAM_NAME_ONE, "APP.test:443"), 0);
    ck_assert_uint_eq(found->n, 2);
    ck_assert_int_eq(found->ttl_ns, 7);
    expect_address(0, "192.0.2.1:443");
    expect_address(1, "[2001:db8::1]:443");
    ck_assert_int_eq(get(UPSTREAM_NAME_EACH, "other.test:443"), -ENODATA);
    ck_assert_int_eq(get(UPSTREAM_SERVICE, "app.test"), -ENODATA);
}

TEST(cache, an_answer_of_a_service_has_its_records)
{
    ck_assert_int_eq(resolver_cache_read(&cache, service), 0);
    ck_assert_int_eq(get(UPSTREAM_SERVICE, "_a._tcp.test"), 0);
    ck_assert_uint_eq(found->service->n, 3);
    ck_assert_str_eq(found->service->records[1].target, "h2.test:81");
    ck_assert_uint_eq(found->n, 3);
    expect_address(2, "192.0.2.3:82");
    ck_assert_uint_eq(found->level[1], 0);
    ck_assert_uint_eq(found->level[2], 1);
    ck_assert_uint_eq(found->weight[0], 3 * found->weight[2]);
}

TEST(cache, answers_of_other_name_servers_are_others)
{
    struct address at[2];
    struct name_servers_conf conf = {.name = "own", .addresses = at, .n_addresses = 1};
    struct name_servers *own;
    char *text;

    ck_assert_int_eq(address_parse(at, 2, "192.0.2.53:53"), 1);
    ck_assert_int_eq(name_servers_create(&own, &conf), 0);
    servers = own;
    ck_assert_int_eq(resolver_cache_read(&cache, host), 0);
    ck_assert_int_eq(get(UPSTREAM_NAME_EACH, "app.test:443"), -ENODATA);
    ck_assert_int_eq(resolver_cache_read(&cache, "name host:app.test@own 5 7 192.0.2.9:80\n"), 0);
    ck_assert_int_eq(get(UPSTREAM_NAME_EACH, "App.test:443"), 0);
    expect_address(0, "192.0.2.9:443");
    text = written(&cache);
    ck_assert_ptr_nonnull(strstr(text, "host:app.test@own 5 7 192.0.2.9:80\n"));
    free(text);
    name_servers_release(own);
}

TEST(cache, written_cache_equals_the_cache_that_was_read)
{
    struct resolver_cache_entry *one, *other;
    char *text;

    ck_assert_int_eq(resolver_cache_read(&cache, service), 0);
    one = resolver_cache_take(&cache, UPSTREAM_SERVICE, "_a._tcp.test", NULL);
    other = resolver_cache_take(&cache, UPSTREAM_SERVICE, "_a._tcp.test", NULL);
    ck_assert_ptr_eq(one, other);
    ck_assert_int_eq(resolver_cache_get(one, "_a._tcp.test", &found), 0);
    resolver_cache_put(&cache, one, found, 5);
    resolver_cache_release(&cache, other);
    text = written(&cache);
    ck_assert_str_eq(text, service);
    free(text);
    resolver_cache_forget(&cache, one);
    text = written(&cache);
    ck_assert_str_eq(text, "");
    free(text);
    resolver_cache_release(&cache, one);
}

TEST(cache, entries_that_no_name_uses_are_dropped)
{
    struct resolver_cache_entry *entry;

    ck_assert_int_eq(resolver_cache_read(&cache, host), 0);
    entry = resolver_cache_take(&cache, UPSTREAM_NAME_EACH, "app.test:80", NULL);
    resolver_cache_drop_unused(&cache);
    ck_assert_int_eq(get(UPSTREAM_NAME_EACH, "app.test:80"), 0);
    resolver_cache_release(&cache, entry);
    ck_assert_int_eq(get(UPSTREAM_NAME_EACH, "app.test:80"), -ENODATA);
}

static const char *const malformed[] = {
    "",
    "name",
    "name host:app.test",
    "name host:app.test 5",
    "name host:app.test 5 7",
    "name host:app.test 5 7 ",
    "name host:app.test x 7 192.0.2.1:80",
    "name host:app.test 5 7 nonsense,,:,1.2.3.4",
    "names host:app.test 5 7 192.0.2.1:80",
    "name service:app.test:80 5 7 h;1;2;192.0.2.1:80",
};

TEST_EACH(cache, malformed_line_is_ignored, ARRAY_LEN(malformed))
{
    ck_assert_int_eq(resolver_cache_read(&cache, malformed[_i]), 0);
    ck_assert_int_eq(get(UPSTREAM_NAME_EACH, "app.test:80"), -ENODATA);
}
