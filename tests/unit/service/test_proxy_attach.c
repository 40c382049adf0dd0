/* service/proxy_attach: what the PROXY header of send_proxy says about the client. */
#include <sys/socket.h>
#include <unistd.h>

#include "net/proxy_header.h"
#include "service/proxy.h"
#include "support/host.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "upstream/upstream.h"

static struct host host;
static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there", .addresses = &address, .n_addresses = 1, .weight = 1};
static struct upstream_conf conf = {
    .name = "back", .servers = &server_conf, .n_servers = 1, .connect_timeout_ns = 5 * NS_PER_S};
static struct upstream *upstream;
static int listening;

static void setup(void)
{
    listening = sockets_listen(&address, 16);
    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
    host_open(&host, &proxy_ops, upstream);
}

static void teardown(void)
{
    host_close(&host);
    upstream_destroy(upstream);
    close(listening);
}

static void do_format_id(void *text)
{
    session_id_format(text, session_id(LIST_ENTRY(host.sessions.next, struct session, link)));
}

GROUP(header, setup, teardown);

TEST(header, header_carries_the_id_of_the_session)
{
    uint8_t data[PROXY_HEADER_ENCODED_BYTES];
    char id[SESSION_ID_TEXT_BYTES];
    struct proxy_header header;
    int client, server;
    ssize_t len;

    conf.send_proxy =
        (struct proxy_header_conf){.version = PROXY_HEADER_V2, .unique_id = true, .crc32c = true};
    client = host_client(&host);
    server = sockets_accept(listening);
    len = recv(server, data, sizeof(data), 0);
    ck_assert_int_eq(proxy_header_decode(&header, data, (size_t)len), len);
    loop_runner_call(host.loop, do_format_id, id);
    ck_assert_uint_eq(header.unique_id_bytes, strlen(id));
    ck_assert_mem_eq(header.unique_id, id, strlen(id));
    close(client);
    close(server);
}

TEST(header, header_of_a_unix_client_names_no_client)
{
    int ours, client, server;

    conf.send_proxy = (struct proxy_header_conf){.version = PROXY_HEADER_V1};
    sockets_unix(&ours, &client);
    host_adopt(&host, ours);
    server = sockets_accept(listening);
    sockets_hear(server, "PROXY UNKNOWN\r\n");
    close(client);
    close(server);
}
