#include "admin/admin_request.h"

#include "admin/admin_client.h"
#include "admin/admin_types.h"

json_t *admin_fields(const struct admin_request *rq)
{
    return rq->fields;
}

struct admin *admin_of(const struct admin_request *rq)
{
    return rq->client->admin;
}

struct server *admin_server(const struct admin_request *rq)
{
    return admin_of(rq)->server;
}

struct loop *admin_loop(const struct admin_request *rq)
{
    return admin_of(rq)->loop;
}

void admin_wait(struct admin_request *rq)
{
    rq->untimed = true;
    admin_client_wait(rq->client);
}
