#include "failover/witness.h"

#include "common/die.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    PACKET_BYTES = 192, /* both headers at their longest, and the request line up to the number */
    BATCH = 64,
    RECEIVE_BUFFER_BYTES = 64 << 20,
    NUMBER_OFFSET = 11, /* in a request */
    NUMBER_DIGITS = 10,
};

static const uint64_t ns_per_s = 1000000000;

/*
 * The offsets count from the IP header, as the socket is SOCK_DGRAM. A load behind the packet's end
 * rejects it.
 */
static void witness_filter(const struct witness *w)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 19),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PROTOCOL)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 17),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(struct iphdr, protocol)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 15),
        BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0), /* x = length of the IP header */
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, offsetof(struct tcphdr, th_dport)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, w->conf.port, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, w->conf.check_port, 0, 11),
        BPF_STMT(BPF_LD | BPF_B | BPF_IND, offsetof(struct tcphdr, th_flags)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TH_SYN | TH_ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TH_SYN, 7, 0),
        BPF_STMT(BPF_LD | BPF_B | BPF_IND, 12), /* length of the TCP header, in the upper half */
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 60),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x47455420 /* "GET " */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, PACKET_BYTES),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    if (setsockopt(w->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0)
        die_errno("SO_ATTACH_FILTER");
}

/* It is bound when the filter is there, so that nothing else gets in. */
static void witness_listen(struct witness *w)
{
    struct sockaddr_ll all = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    int size = RECEIVE_BUFFER_BYTES, on = 1;

    w->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (w->fd < 0)
        die_errno("packet socket");
    if (setsockopt(w->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
        die_errno("SO_RCVBUFFORCE");
    if (setsockopt(w->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) < 0)
        die_errno("SO_TIMESTAMPNS");
    witness_filter(w);
    if (bind(w->fd, (const struct sockaddr *)&all, sizeof(all)) < 0)
        die_errno("bind a packet socket");
}

struct witness *witness_open(const struct witness_conf *conf)
{
    struct witness *w = calloc(1, sizeof(*w));

    if (!w)
        die_errno("witness");
    w->conf = *conf;
    /* Only what is written to takes memory. */
    w->seen_at = mmap(NULL, WITNESS_REQUESTS_MAX, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w->seen_at == MAP_FAILED)
        die_errno("witness");
    witness_listen(w);
    return w;
}

static int witness_server_at(const struct witness *w, uint32_t address)
{
    for (unsigned i = 0; i < w->conf.n_servers; i++) {
        if (w->conf.servers[i] == address)
            return (int)i;
    }
    return -1;
}

static void witness_saw_syn(struct witness *w, int server, const struct tcphdr *tcp, uint64_t at_ns)
{
    uint32_t *last = &w->last[server][ntohs(tcp->th_sport)];

    if (*last > 0 && w->syns[*last - 1].seq == tcp->th_seq)
        return; /* sent again */
    if (w->n_syns == w->max_syns) {
        w->max_syns = w->max_syns ? 2 * w->max_syns : 65536;
        w->syns = realloc(w->syns, w->max_syns * sizeof(*w->syns));
        if (!w->syns)
            die_errno("witness");
    }
    w->syns[w->n_syns++] =
        (struct witness_syn){.at_ns = at_ns,
                             .seq = tcp->th_seq,
                             .server = (uint8_t)server,
                             .is_check = tcp->th_dport == htons(w->conf.check_port)};
    *last = (uint32_t)w->n_syns;
}

static void witness_saw_request(struct witness *w, int server, const struct tcphdr *tcp,
                                const char *text)
{
    uint32_t last = w->last[server][ntohs(tcp->th_sport)];
    char digits[NUMBER_DIGITS + 1] = {0};
    unsigned long number;
    char *end;

    if (tcp->th_dport != htons(w->conf.port))
        return;
    memcpy(digits, text + NUMBER_OFFSET, NUMBER_DIGITS);
    number = strtoul(digits, &end, 10);
    if (*end != '\0' || number >= WITNESS_REQUESTS_MAX)
        die("a server was sent something else than a request: %.*s", NUMBER_OFFSET, text);
    w->seen_at[number] = (uint8_t)(1 + server);
    if (last > 0)
        w->syns[last - 1].has_request = true;
}

static void witness_saw(struct witness *w, const uint8_t *packet, size_t len, uint64_t at_ns)
{
    struct iphdr ip;
    struct tcphdr tcp;
    size_t ip_len, head_len;
    int server;

    memcpy(&ip, packet, sizeof(ip));
    ip_len = 4U * ip.ihl;
    if (len < ip_len + sizeof(tcp))
        return;
    memcpy(&tcp, packet + ip_len, sizeof(tcp));
    head_len = ip_len + 4U * tcp.th_off;
    server = witness_server_at(w, ip.daddr);
    if (server < 0)
        return;
    if (tcp.th_flags & TH_SYN)
        witness_saw_syn(w, server, &tcp, at_ns);
    else if (len >= head_len + NUMBER_OFFSET + NUMBER_DIGITS)
        witness_saw_request(w, server, &tcp, (const char *)packet + head_len);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * ns_per_s + (uint64_t)now.tv_nsec;
}

/* When the kernel saw it, by the wall clock. */
static uint64_t stamp_of(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        struct timespec stamp;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
            continue;
        memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
        return (uint64_t)stamp.tv_sec * ns_per_s + (uint64_t)stamp.tv_nsec;
    }
    die("a packet has no time stamp");
}

void witness_read(struct witness *w)
{
    static uint8_t packets[BATCH][PACKET_BYTES];
    static char controls[BATCH][CMSG_SPACE(sizeof(struct timespec))];
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH];
    int count;

    do {
        uint64_t boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);

        for (int i = 0; i < BATCH; i++) {
            parts[i] = (struct iovec){packets[i], PACKET_BYTES};
            messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i],
                                                  .msg_iovlen = 1,
                                                  .msg_control = controls[i],
                                                  .msg_controllen = sizeof(controls[i])};
        }
        count = recvmmsg(w->fd, messages, BATCH, 0, NULL);
        if (count < 0 && errno != EAGAIN)
            die_errno("recvmmsg");
        for (int i = 0; i < count; i++)
            witness_saw(w, packets[i], messages[i].msg_len,
                        stamp_of(&messages[i].msg_hdr) - boot_ns);
    } while (count == BATCH);
}

unsigned witness_lost(const struct witness *w)
{
    struct tpacket_stats stats;
    socklen_t len = sizeof(stats);

    if (getsockopt(w->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) < 0)
        die_errno("PACKET_STATISTICS");
    return stats.tp_drops;
}

int witness_server_of(const struct witness *w, unsigned request)
{
    return w->seen_at[request] - 1;
}
