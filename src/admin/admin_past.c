#include "admin/admin_past.h"

#include <errno.h>
#include <string.h>

#include "admin/admin_history.h"
#include "admin/admin_types.h"
#include "base/clock.h"
#include "stats/events.h"
#include "stats/history.h"

void admin_past_write_history(struct admin *a, FILE *f)
{
    history_write(admin_history_of(a->history), f);
}

void admin_past_write_events(struct admin *a, FILE *f)
{
    events_write(a->events, f);
}

int admin_past_read_history(struct admin *a, char *record, size_t n)
{
    return history_read(admin_history_of(a->history), record, n, clock_now_ns());
}

int admin_past_read_events(struct admin *a, char *record, size_t n)
{
    return strlen(record) == n ? events_read(a->events, record) : -EINVAL;
}
