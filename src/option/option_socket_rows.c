/* option/option_socket_rows: options of [listen NAME] and [upstream NAME]: rare socket options. */
#include <stddef.h>

#include "base/clock.h"
#include "option/option_internal.h"
#include "option/option_kind.h"
#include "option/option_socket.h"
#include "listen/listener.h"
#include "upstream/upstream.h"

#define LISTEN(field)   offsetof(struct listener_conf, socket.field)
#define UPSTREAM(field) offsetof(struct upstream_conf, connect.sock.options.field)

/* clang-format off */
static const struct option listen_rows[] = {
    {"freebind", &option_kind_bool, 0, OPTION_NEW_CONNECTIONS, "no",
     "yes or no", "listen on addresses that this host does not have at the moment (IP_FREEBIND)",
     LISTEN(freebind), 0, 0, NULL, NULL},
    {"transparent", &option_kind_bool, 0, OPTION_NEW_CONNECTIONS, "no",
     "yes or no", "listen on addresses that this host does not have (IP_TRANSPARENT)",
     LISTEN(transparent), 0, 0, NULL, NULL},
    {"mptcp", &option_kind_bool, 0, OPTION_UPGRADE, "no",
     "yes or no", "accept clients with Multipath TCP, too",
     LISTEN(mptcp), 0, 0, NULL, NULL},
    {"namespace", &option_socket_namespace, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "a NAME of ip netns, or the absolute path of a network namespace",
     "network namespace to listen in; empty: that of reactord",
     LISTEN(namespace), 0, 0, NULL, NULL},
    {"interface", &option_socket_interface, OPTION_EMPTY, OPTION_UPGRADE, "",
     "the name of a network interface",
     "interface that clients must come in by (SO_BINDTODEVICE); empty: any",
     LISTEN(interface), 0, 0, NULL, NULL},
    {"mark", &option_socket_mark, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 4294967295, or 0x0 to 0xffffffff",
     "mark of the packets to clients, for policy routing and the packet filter (SO_MARK); 0: none",
     LISTEN(mark), 0, UINT32_MAX, NULL, NULL},
    {"dscp", &option_socket_dscp, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 63, cs0 to cs7, af11 to af43, ef, va or le",
     "DSCP of the packets to clients; 0: kernel default",
     LISTEN(dscp), 0, SOCK_OPTIONS_DSCP_MAX, NULL, NULL},
    {"congestion", &option_socket_congestion, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "a congestion control of the kernel, such as cubic or bbr",
     "congestion control of connections with clients; empty: kernel default",
     LISTEN(congestion), 0, 0, NULL, NULL},
    {"mss", &option_kind_number, OPTION_ZERO, OPTION_NEW_CONNECTIONS, "0",
     "0, or 88 to 32767", "maximum segment size to announce to clients; 0: that of the route",
     LISTEN(mss_bytes), SOCK_OPTIONS_MSS_MIN, SOCK_OPTIONS_MSS_MAX, NULL, NULL},
    {"fastopen", &option_kind_number, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 65535",
     "maximum number of clients with data in their SYN (TCP Fast Open) before the handshake is "
     "complete; 0: no Fast Open",
     LISTEN(fastopen), 0, 65535, NULL, NULL},
    {"defer_accept", &option_socket_seconds, 0, OPTION_NEW_CONNECTIONS, "0",
     "0, or 1s to 1h, in whole seconds",
     "time that the kernel waits for the first byte of a client before it is accepted; 0: none",
     LISTEN(defer_accept_s), 0, 3600 * NS_PER_S, NULL, NULL},
};

static const struct option upstream_rows[] = {
    {"freebind", &option_kind_bool, 0, OPTION_NEW_CONNECTIONS, "no",
     "yes or no",
     "check servers from another address while this host does not have those of source_address",
     offsetof(struct upstream_conf, connect.sock.freebind), 0, 0, NULL, NULL},
    {"transparent", &option_kind_bool, 0, OPTION_NEW_CONNECTIONS, "no",
     "yes or no", "connect to servers from the address of the client (IP_TRANSPARENT)",
     UPSTREAM(transparent), 0, 0, NULL, NULL},
    {"mptcp", &option_kind_bool, 0, OPTION_NEW_CONNECTIONS, "no",
     "yes or no", "connect with Multipath TCP to servers that have it",
     UPSTREAM(mptcp), 0, 0, NULL, NULL},
    {"namespace", &option_socket_namespace, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "a NAME of ip netns, or the absolute path of a network namespace",
     "network namespace to connect to servers from; empty: that of reactord",
     UPSTREAM(namespace), 0, 0, NULL, NULL},
    {"interface", &option_socket_interface, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "the name of a network interface",
     "interface to connect through (SO_BINDTODEVICE); empty: as the routes say",
     UPSTREAM(interface), 0, 0, NULL, NULL},
    {"mark", &option_socket_mark, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 4294967295, or 0x0 to 0xffffffff",
     "mark of the packets to servers, for policy routing and the packet filter (SO_MARK); 0: none",
     UPSTREAM(mark), 0, UINT32_MAX, NULL, NULL},
    {"dscp", &option_socket_dscp, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 63, cs0 to cs7, af11 to af43, ef, va or le",
     "DSCP of the packets to servers; 0: kernel default",
     UPSTREAM(dscp), 0, SOCK_OPTIONS_DSCP_MAX, NULL, NULL},
    {"congestion", &option_socket_congestion, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "a congestion control of the kernel, such as cubic or bbr",
     "congestion control of connections with servers; empty: kernel default",
     UPSTREAM(congestion), 0, 0, NULL, NULL},
    {"mss", &option_kind_number, OPTION_ZERO, OPTION_NEW_CONNECTIONS, "0",
     "0, or 88 to 32767", "maximum segment size to announce to servers; 0: that of the route",
     UPSTREAM(mss_bytes), SOCK_OPTIONS_MSS_MIN, SOCK_OPTIONS_MSS_MAX, NULL, NULL},
};
/* clang-format on */

const struct option_rows option_listen_socket = {listen_rows, ARRAY_LEN(listen_rows)};
const struct option_rows option_upstream_socket = {upstream_rows, ARRAY_LEN(upstream_rows)};
