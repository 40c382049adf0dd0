#include "server/server_parts.h"

#include "server/server_internal.h"
#include "sessions/workers.h"

struct server_parts server_parts(const struct server *sv)
{
    return (struct server_parts){.control = threads_control(&sv->threads),
                                 .listeners = sv->listeners,
                                 .upstreams = sv->upstreams,
                                 .resolver = sv->resolver,
                                 .loops = sv->threads.workers,
                                 .workers = workers_list(sv->workers)};
}
