#include "admin/admin_settings.h"

#include <stdio.h>
#include <string.h>

#include "admin/admin_types.h"
#include "config/config_admin.h"

void admin_settings_set(struct admin *a, const struct admin_conf *conf)
{
    const struct admin_share share = config_admin_share(conf);
    struct admin_settings next = {.request_timeout_ns = conf->request_timeout_ns,
                                  .max_connections = share.served,
                                  .max_open = share.open,
                                  .history_ns = conf->history_ns,
                                  .metrics_servers = conf->metrics_servers,
                                  .write = conf->write};

    if (conf->token)
        snprintf(next.token, sizeof(next.token), "%s", conf->token);
    lock_take(&a->lock);
    a->settings = next;
    lock_release(&a->lock);
}

static struct admin_settings admin_settings_get(struct admin *a)
{
    struct admin_settings now;

    lock_take(&a->lock);
    now = a->settings;
    lock_release(&a->lock);
    return now;
}

unsigned admin_settings_max_connections(struct admin *a)
{
    return admin_settings_get(a).max_connections;
}

unsigned admin_settings_max_open(struct admin *a)
{
    return admin_settings_get(a).max_open;
}

unsigned admin_settings_metrics_servers(struct admin *a)
{
    return admin_settings_get(a).metrics_servers;
}

int64_t admin_settings_history_ns(struct admin *a)
{
    return admin_settings_get(a).history_ns;
}

int64_t admin_settings_request_timeout_ns(struct admin *a)
{
    return admin_settings_get(a).request_timeout_ns;
}

bool admin_settings_write(struct admin *a)
{
    return admin_settings_get(a).write;
}

bool admin_settings_is_token(struct admin *a, const char *token)
{
    const struct admin_settings now = admin_settings_get(a);
    char given[sizeof(now.token)] = "";
    volatile unsigned char differs = 0;

    if (!token || now.token[0] == '\0' || strlen(token) >= sizeof(given))
        return false;
    memcpy(given, token, strlen(token));
    for (size_t i = 0; i < sizeof(given); i++)
        differs = (unsigned char)(differs | (given[i] ^ now.token[i]));
    return differs == 0;
}
