#include "net/tcp_figures.h"

#include <linux/tcp.h> /* libc's struct tcp_info has no delivery rate */
#include <netinet/in.h>
#include <sys/socket.h>

bool tcp_figures_read(struct tcp_figures *out, int fd)
{
    struct tcp_info info = {.tcpi_rtt = 0}; /* an old kernel fills only the first members */
    socklen_t len = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
        return false;
    *out = (struct tcp_figures){.rtt_us = info.tcpi_rtt,
                                .rtt_var_us = info.tcpi_rttvar,
                                .retransmits = info.tcpi_total_retrans,
                                .delivery_rate = info.tcpi_delivery_rate};
    return true;
}
