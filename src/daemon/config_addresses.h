/*
 * daemon/config_addresses: can all listeners have the addresses that they ask for, each as it asks for it?
 */
#ifndef DAEMON_CONFIG_ADDRESSES_H
#define DAEMON_CONFIG_ADDRESSES_H

struct config;
struct report;

/*
 * config_addresses_check(config, s, report):
 * Add to ${report} what is wrong with the addresses of section ${s}, a [listen NAME]: those that conflict with one of a
 * section before it or of its own, and options that they cannot have.
 *
 * Thread: before start
 * Errors: none
 */
void config_addresses_check(const struct config *config, unsigned s, struct report *report);

#endif
