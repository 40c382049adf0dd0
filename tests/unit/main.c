/* unit/main: what each unit test runs. */
#include <sys/resource.h>

#include "support/suite.h"

/* Some tests have hundreds of sessions, with both ends here. */
#define DESCRIPTORS 4096

static void allow_descriptors(void)
{
    struct rlimit rl;

    if (getrlimit(RLIMIT_NOFILE, &rl) < 0 || rl.rlim_cur >= DESCRIPTORS)
        return;
    rl.rlim_cur = rl.rlim_max < DESCRIPTORS ? rl.rlim_max : DESCRIPTORS;
    (void)!setrlimit(RLIMIT_NOFILE, &rl);
}

int main(void)
{
    allow_descriptors();
    return suite_run();
}
