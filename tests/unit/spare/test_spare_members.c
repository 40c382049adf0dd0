/*
 * spare/spare: which servers of an upstream have spare connections, and that their counters
 * continue in another process.
 */
#include <stdlib.h>
#include <string.h>

#include "spare/spare_internal.h"
#include "stats/counters_set.h"
#include "support/members.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "upstream/upstream_state.h"

static void setup(void)
{
    members_setup();
    members.env = (struct upstream_env){.spares = &spare_upstream_ops};
    members.conf.spare = (struct upstream_spares_conf){.keep = 1, .max_age_ns = 3600 * NS_PER_S};
}

static void continue_server(const char *name, const char *now, const char *before)
{
    struct counters_report r = {.text = now, .before = before};

    ck_assert_int_eq(upstream_state_continue_server(members.upstream, name, &r, !before), 0);
}

/* Does the line of the server ${name} end with ${counters}? */
static bool tells(const char *name, const char *counters)
{
    char *text, *line;
    size_t len;
    bool ends;
    FILE *f = open_memstream(&text, &len);

    ck_assert_ptr_nonnull(f);
    upstream_state_write(members.upstream, f);
    ck_assert_int_eq(fclose(f), 0);
    line = strstr(text, name);
    ck_assert_ptr_nonnull(line);
    *strchr(line, '\n') = '\0';
    ends = strlen(line) >= strlen(counters) &&
           strcmp(line + strlen(line) - strlen(counters), counters) == 0;
    free(text);
    return ends;
}

GROUP(members, setup, members_teardown);

TEST(members, server_that_is_a_backup_by_its_priority_has_a_spare_pool)
{
    struct address at;
    struct membership_place place = {.list = &at, .n = 1, .weight = 1, .level = 1};

    members.lines[2].backup = true;
    members_open_group();
    sockets_loopback(&at, 1001);
    ck_assert_int_eq(members_update_places(1, &place, 1), 1);
    ck_assert_ptr_nonnull(members_find("one@127.0.0.1:1001")->spare);
    ck_assert_int_eq(members_update(2, "2"), 1);
    ck_assert_ptr_null(members_find("two@127.0.0.1:1002")->spare);
}

TEST(members, counters_continue_for_resolved_servers)
{
    members_open_group();
    spare_count(spare_of(members_find("fixed")), SPARE_OPENED);
    spare_count(spare_of(members_find("fixed")), SPARE_USED);
    ck_assert(tells("server back/fixed", " spares_used=1 spares_opened=1"));
    continue_server("fixed", "spares_opened=7 spares_used=5", "spares_opened=2 spares_used=1");
    ck_assert(tells("server back/fixed", " spares_used=5 spares_opened=6"));
    continue_server("one@127.0.0.1:1001", "spares_opened=9", NULL);
    ck_assert_int_eq(members_update(1, "1"), 1);
    ck_assert(tells("server back/one@127.0.0.1:1001", " spares_opened=9"));
}
