/* base/event_fd: a full counter is readable, so it needs no write. */
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/event_fd.h"
#include "support/log_lines.h"
#include "support/suite.h"

static int fd;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_ERROR);
    fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ck_assert_int_ge(fd, 0);
}

static void teardown(void)
{
    close(fd);
}

GROUP(event_fd, setup, teardown);

TEST(event_fd, full_counter_is_signaled_already)
{
    const uint64_t most = UINT64_MAX - 1;

    ck_assert_int_eq(write(fd, &most, sizeof(most)), sizeof(most));
    ck_assert(event_fd_signal(fd));
    ck_assert_uint_eq(log_lines_with("eventfd: cannot be written"), 0);
}

TEST(event_fd, failed_write_is_logged)
{
    ck_assert(!event_fd_signal(-1));
    EXPECT_LOG_LINES("eventfd: cannot be written: Bad file descriptor", 1);
}
