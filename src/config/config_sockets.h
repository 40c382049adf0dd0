/*
 * config/config_sockets: socket options that the kernel, or the privileges of this process, refuse.
 */
#ifndef CONFIG_CONFIG_SOCKETS_H
#define CONFIG_CONFIG_SOCKETS_H

struct config;
struct section;
struct diagnostics;

/*
 * config_sockets_check(section, diagnostics):
 * Try the socket options of ${section}, a [listen NAME] or [upstream NAME], on a socket of its own,
 * and report the first one refused. Also index them: sock_options_index().
 *
 * Thread: as config_reload()
 */
void config_sockets_check(const struct section *section, struct diagnostics *diagnostics);

/*
 * config_sockets_capabilities(config):
 * Return the capabilities that the socket options of ${config} need: 1 << CAP_NET_ADMIN and so on.
 */
unsigned config_sockets_capabilities(const struct config *config);

#endif
