/* preload/write_fault: a write to an eventfd that fails with `value`: write() of 8 bytes. */
#include <stdint.h>
#include <sys/eventfd.h>

#include "plan.h"

/* As in test_process_faults.py. */
enum fault { WRITE_FAILS };

static int fails(void)
{
    const struct plan_fault *f = plan_strikes(WRITE_FAILS);

    if (f)
        errno = f->value;
    return f != NULL;
}

ssize_t write(int fd, const void *data, size_t len)
{
    return len == sizeof(uint64_t) && fails() ? -1 : PLAN_NEXT(write)(fd, data, len);
}

int eventfd_write(int fd, eventfd_t value)
{
    return fails() ? -1 : PLAN_NEXT(eventfd_write)(fd, value);
}
