#include "ctl/ctl_upstreams.h"

#include <string.h>

#include "ctl/ctl_memory.h"

static void ctl_upstreams_append(json_t *flat, json_t *row)
{
    ctl_memory_need(json_array_append_new(flat, row) == 0 ? flat : NULL);
}

static json_t *ctl_upstreams_server(const json_t *upstream, json_t *server)
{
    const char *owner = json_string_value(json_object_get(upstream, "name"));
    const char *name = json_string_value(json_object_get(server, "name"));
    json_t *row = ctl_memory_need(json_copy(server));
    json_t *pair = json_sprintf("%s/%s", owner ? owner : "?", name ? name : "?");

    ctl_memory_need(json_object_set_new(row, "name", pair) == 0 ? row : NULL);
    return row;
}

/* The upstream's row: `state` is the number of servers that are up. */
static json_t *ctl_upstreams_group(json_t *upstream)
{
    const json_t *up = json_object_get(upstream, "servers_up");
    json_t *row = ctl_memory_need(json_copy(upstream)), *state;

    if (json_is_integer(up)) {
        state = json_sprintf("%d/%d up", (int)json_integer_value(up),
                             (int)json_array_size(json_object_get(upstream, "servers")));
        ctl_memory_need(json_object_set_new(row, "state", state) == 0 ? row : NULL);
    }
    return row;
}

json_t *ctl_upstreams_flat(const json_t *upstreams)
{
    json_t *flat = ctl_memory_need(json_array()), *upstream, *server;
    size_t i, k;

    json_array_foreach(upstreams, i, upstream)
    {
        ctl_upstreams_append(flat, ctl_upstreams_group(upstream));
        json_array_foreach(json_object_get(upstream, "servers"), k, server)
        {
            if (json_is_object(server))
                ctl_upstreams_append(flat, ctl_upstreams_server(upstream, server));
        }
    }
    return flat;
}

const json_t *ctl_upstreams_find(const json_t *flat, const char *name)
{
    const json_t *row;
    size_t i;

    json_array_foreach(flat, i, row)
    {
        const char *text = json_string_value(json_object_get(row, "name"));

        if (text && strcmp(text, name) == 0)
            return row;
    }
    return NULL;
}
