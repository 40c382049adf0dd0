/* upgrade/past: which messages are kept, and no descriptor is lost. */
#include <fcntl.h>
#include <unistd.h>

#include "upgrade/past.h"
#include "support/process.h"
#include "support/suite.h"

static struct past past;

static void setup(void)
{
    past_init(&past);
}

static int any_file(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    return fd;
}

GROUP(past, setup, NULL);

TEST(past, only_its_own_messages_are_kept_and_each_once)
{
    unsigned opened = process_descriptors();
    int fd = any_file();

    ck_assert(!past_keep(&past, "state", fd));
    ck_assert(!past_keep(&past, "main", fd));
    ck_assert(!past_keep(&past, "historyx", fd));
    ck_assert(!past_keep(&past, "history", -1));
    ck_assert(past_keep(&past, "history", fd));
    fd = any_file();
    ck_assert(!past_keep(&past, "history", fd));
    ck_assert(past_keep(&past, "events 1", fd));
    past_close(&past);
    ck_assert_uint_eq(process_descriptors(), opened);
}

TEST(past, without_an_admin_interface_it_is_only_closed)
{
    unsigned opened = process_descriptors();

    ck_assert(past_keep(&past, "events", any_file()));
    past_use(&past, NULL);
    past_send(NULL, NULL);
    past_close(&past);
    ck_assert_uint_eq(process_descriptors(), opened);
}
