/* server/certificates: which certificates expire first, of all sections. */
#include <string.h>
#include <time.h>

#include "base/must.h"
#include "server/certificates.h"
#include "support/certificates.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "tls/tls_conf.h"
#include "tls/tls_profile.h"
#include "tls/tls_slot.h"

static struct tls_conf sections[2] = {{.name = "a"}, {.name = "b"}};
static struct certificates *certificates;

/* Each section has two certificates, which end after these days. */
static const char *paths[2][2] = {{"9.pem", "2.pem"}, {"5.pem", "7.pem"}};

static void write_one(const char *path)
{
    struct certificate c;

    certificates_make(&c, &(struct certificate_wish){.name = path, .to_days = path[0] - '0'});
    certificates_write(path, "ck", &c, &c);
    certificates_free(&c);
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
    ck_assert_int_eq(
        certificates_create(&certificates, &(struct certificates_conf){.list = sections, .n = 2}),
        0);
}

static void teardown(void)
{
    certificates_destroy(certificates);
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
