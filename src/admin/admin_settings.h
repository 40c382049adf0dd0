/*
 * admin/admin_settings: options that a reload may change, read by the admin loop.
 */
#ifndef ADMIN_ADMIN_SETTINGS_H
#define ADMIN_ADMIN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct admin;
struct admin_conf;

/* admin_settings_set(a, conf): copy the options from ${conf}. Thread: main */
void admin_settings_set(struct admin *a, const struct admin_conf *conf);

/*
 * admin_settings_max_connections(a) / admin_settings_request_timeout_ns(a) /
 * admin_settings_metrics_servers(a) / admin_settings_history_ns(a) / admin_settings_write(a):
 * Return an option of [admin]; max_connections: as far as descriptors allow.
 */
unsigned admin_settings_max_connections(struct admin *a);
unsigned admin_settings_metrics_servers(struct admin *a);
int64_t admin_settings_history_ns(struct admin *a);
int64_t admin_settings_request_timeout_ns(struct admin *a);
bool admin_settings_write(struct admin *a);

/*
 * admin_settings_max_open(a):
 * Return the maximum of connections, with those that are above max_connections.
 */
unsigned admin_settings_max_open(struct admin *a);

/*
 * admin_settings_is_token(a, token):
 * Is ${token} the token of `token_file`? Compares in constant time; false for NULL.
 */
bool admin_settings_is_token(struct admin *a, const char *token);

#endif
