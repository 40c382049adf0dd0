/* server/certificates: which certificates expire first, of all sections. */
#include <string.h>
#include <time.h>

#include "base/must.h"
#include "engine/executor.h"
#include "server/certificates.h"
#include "support/certificates.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "support/until.h"
#include "tls/tls_conf.h"
#include "tls/tls_profile.h"
#include "tls/tls_slot.h"

static struct tls_conf sections[2] = {{.name = "a"}, {.name = "b"}};
static struct certificates *certificates;
static struct loop *control;
static struct executor *executor;
static const struct executor_conf executor_conf = {
    .name = "exec", .pool = 3, .threads = 1, .max_pending_tasks = 16};

/* Each section has two certificates, which end after these days. */
static const char *paths[2][2] = {{"9.pem", "2.pem"}, {"5.pem", "7.pem"}};

static void write_one(const char *path)
{
    struct certificate c;

    certificates_make(&c, &(struct certificate_wish){.name = path, .to_days = path[0] - '0'});
    certificates_write(path, "ck", &c, &c);
    certificates_free(&c);
}

static void do_use(void *arg)
{
    struct certificates_change *change;

    (void)arg;
    ck_assert_int_eq(certificates_prepare(certificates, sections, 2, &change), 0);
    certificates_commit(change);
}

static void setup(void)
{
    char why[256];

    text_file_enter();
    for (unsigned i = 0; i < 2; i++) {
        struct tls_profile_conf *conf = &sections[i].profile;

        *conf = (struct tls_profile_conf){.name = sections[i].name,
                                          .for_clients = true,
                                          .certificates = {.list = paths[i], .n = 2}};
        write_one(paths[i][0]);
        write_one(paths[i][1]);
        ck_assert_msg(tls_profile_load(conf, &sections[i].loaded, why, sizeof(why)) == 0, "%s",
                      why);
        ck_assert_int_eq(tls_slot_create(&sections[i].slot, tls_profile_hold(sections[i].loaded)),
                         0);
    }
    control = loop_runner_create();
    ck_assert_int_eq(executor_create(&executor, &executor_conf), 0);
    ck_assert_int_eq(certificates_create(&certificates, control, executor), 0);
    loop_runner_call(control, do_use, NULL);
}

static void teardown(void)
{
    loop_runner_stop(control);
    executor_stop(executor, 0);
    ck_assert_int_eq(executor_join(executor, UNTIL_LIMIT_NS), 0);
    certificates_destroy(certificates);
    executor_destroy(executor);
    loop_runner_destroy(control);
    for (unsigned i = 0; i < 2; i++) {
        tls_slot_release(sections[i].slot);
        tls_profile_release(sections[i].loaded);
    }
    text_file_leave();
}

GROUP(soonest, setup, teardown);

/* 0: no room, up to more room than certificates. */
TEST_EACH(soonest, certificates_are_listed_by_expiry, 7)
{
    static const char *const order[] = {"2.pem", "5.pem", "7.pem", "9.pem"};
    static const char *const of[] = {"a", "b", "b", "a"};
    struct certificates_row rows[8];
    unsigned n = certificates_soonest(certificates, rows, (unsigned)_i);

    ck_assert_uint_eq(n, _i < 4 ? (unsigned)_i : 4);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_str_eq(rows[i].path, order[i]);
        ck_assert_str_eq(rows[i].section, of[i]);
        ck_assert_int_gt(rows[i].expires_at, (int64_t)time(NULL) + 86400);
    }
}
