/* upstream/server_line: a copy of a line that lives as long as somebody has it. */
#include <stdlib.h>
#include <string.h>

#include "support/fault.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "upstream/server_line.h"

static struct address addresses[2], check;
static struct upstream_server_conf conf;
static struct server_line *line;

static void setup(void)
{
    sockets_loopback(&addresses[0], 1);
    sockets_loopback(&addresses[1], 2);
    sockets_loopback(&check, 3);
    conf = (struct upstream_server_conf){.id = "a",
                                         .address_text = "there:80",
                                         .addresses = addresses,
                                         .n_addresses = 2,
                                         .weight = 7,
                                         .check_address = &check};
}

static void teardown(void)
{
}

GROUP(server_line, setup, teardown);

TEST(server_line, line_copies_all_that_the_configuration_points_at)
{
    char id[] = "a", text[] = "there:80";

    conf.id = id;
    conf.address_text = text;
    ck_assert_int_eq(server_line_create(&line, &conf), 0);
    id[0] = text[0] = 'x';
    memset(addresses, 0, sizeof(addresses));
    memset(&check, 0, sizeof(check));
    setup();
    ck_assert_str_eq(line->conf.id, "a");
    ck_assert_str_eq(line->conf.address_text, "there:80");
    ck_assert_uint_eq(line->conf.n_addresses, 2);
    ck_assert(address_equal(&line->conf.addresses[1], &addresses[1]));
    ck_assert(address_equal(line->conf.check_address, &check));
    ck_assert_uint_eq(line->conf.weight, 7);
    server_line_release(line);
}

TEST(server_line, line_without_addresses_has_none)
{
    conf.n_addresses = 0;
    conf.check_address = NULL;
    ck_assert_int_eq(server_line_create(&line, &conf), 0);
    ck_assert_uint_eq(line->conf.n_addresses, 0);
    ck_assert_ptr_null(line->conf.check_address);
    server_line_release(line);
}

TEST(server_line, line_lives_until_its_last_reference_is_released)
{
    ck_assert_int_eq(server_line_create(&line, &conf), 0);
    ck_assert_ptr_eq(server_line_hold(line), line);
    server_line_release(line);
    ck_assert_str_eq(line->conf.id, "a");
    server_line_release(line);
    server_line_release(NULL);
}

/* 0: none; others: one value each. */
static void change_one(struct upstream_server_conf *c, int which)
{
    switch (which) {
    case 1: c->check_interval_ns = 5; break;
    case 2: c->rise = 5; break;
    case 3: c->fall = 5; break;
    case 4: c->unchecked = true; break;
    case 5: c->never_ejected = true; break;
    case 6: c->has_send_proxy = true; break;
    default: break;
    }
}

TEST_EACH(server_line, each_setting_of_a_server_makes_another_line, 7)
{
    struct upstream_server_conf other = conf;
    struct server_line *changed;
    char *text, *changed_text;

    change_one(&other, _i);
    ck_assert_int_eq(server_line_create(&line, &conf), 0);
    ck_assert_int_eq(server_line_create(&changed, &other), 0);
    ck_assert_int_eq(server_line_is(line, &other), _i == 0);
    text = server_line_text(line);
    changed_text = server_line_text(changed);
    ck_assert_int_eq(strcmp(text, changed_text) == 0, _i == 0);
    free(text);
    free(changed_text);
    server_line_release(line);
    server_line_release(changed);
}

/* An upgrade from a process that knows fewer settings keeps those of the administrator. */
TEST(server_line, text_of_a_line_without_newer_settings_stays_as_it_was)
{
    char *text;

    ck_assert_int_eq(server_line_create(&line, &conf), 0);
    text = server_line_text(line);
    ck_assert_str_eq(text, "there:80 names=0 weight=7 max_connections=0 check=127.0.0.1:3:0 "
                           "backup=0 disabled=0");
    free(text);
    server_line_release(line);
}

static int attempt(void *cookie)
{
    int rc = server_line_create(&line, cookie);

    if (rc == 0)
        server_line_release(line);
    return rc;
}

TEST(server_line, creating_without_memory_fails)
{
    ck_assert_uint_eq(fault_each_allocation(attempt, &conf), 1);
}
