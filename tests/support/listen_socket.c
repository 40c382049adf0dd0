#include "support/listen_socket.h"

#include <check.h>

#include "net/sock.h"
#include "support/process.h"

struct listen_socket listen_socket = {.conf = {.backlog = 16}};
static unsigned before;

void listen_socket_setup(void)
{
    before = process_descriptors();
}

void listen_socket_teardown(void)
{
    ck_assert_uint_eq(process_descriptors(), before);
}

void listen_socket_expect_listen(int error)
{
    int fd;

    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &listen_socket.conf), error);
}

void listen_socket_parse(const char *word)
{
    struct address both[2];

    ck_assert_int_eq(address_parse(both, 2, word), 1);
    listen_socket.a = both[0];
}
