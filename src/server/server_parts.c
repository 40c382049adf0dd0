#include "server/server_parts.h"

#include "server/server_internal.h"

struct server_parts server_parts(const struct server *sv)
{
    return (struct server_parts){.control = threads_control(&sv->threads),
                                 .listeners = sv->listeners,
                                 .upstreams = sv->upstreams,
                                 .resolver = sv->resolver};
}
