/* server/memory: see memory.h. */
#include "server/memory.h"

#include <malloc.h>

#include "base/log.h"

int64_t memory_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return (int64_t)(info.uordblks + info.hblkhd);
}

void memory_log_stats(void)
{
    struct mallinfo2 info = mallinfo2();

    log_notice("stats memory in_use=%zu free=%zu", info.uordblks + info.hblkhd, info.fordblks);
}
