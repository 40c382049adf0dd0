/*
 * failover_load: clients of a proxy whose servers fail, and a witness of what the proxy sends to
 * the servers.
 *
 *     failover_load --connect ADDRESS:PORT --clients N --seconds S --servers ADDRESS,... --port P
 *     --check-port P
 *                   [--pause S] [--limit S] [--slow S]
 *
 * When the time is over it writes lines of words, instants in ns of the monotonic clock, servers by
 * number, - for none:
 *
 *     kind NAME DONE SLOW LONGEST-WAIT P99-WAIT
 *     fail KIND OPENED BEGUN ENDED LETTER-OF-SERVER SERVER-BY-WITNESS WHAT
 *     syn AT SERVER request|check HAS-REQUEST
 *
 * What is under way at the end is in none of them. The runner (failover/) knows which server failed
 * when, and judges.
 */
#include "common/die.h"
#include "common/net.h"
#include "failover/clients.h"
#include "failover/witness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    EVENTS_PER_TURN = 256,
    LOOK_MS = 5,
    CLIENTS_MAX = 10000,
    SECONDS_MAX = 3600,
    GRACE_S = 10,
    NS_PER_MS = 1000000,
};

struct options {
    struct clients_conf clients;
    struct witness_conf witness;
    uint64_t run_ns;
};

static const char usage[] =
    "usage: failover_load --connect ADDRESS:PORT --clients N --seconds S --servers ADDRESS,...\n"
    "                     --port P --check-port P [--pause S] [--limit S] [--slow S]";

static unsigned number_of(const char *word, unsigned max)
{
    char *end;
    unsigned long number = strtoul(word, &end, 10);

    if (*word < '0' || *word > '9' || *end != '\0' || number < 1 || number > max)
        die("not a number from 1 to %u: %s", max, word);
    return (unsigned)number;
}

static uint64_t seconds_of(const char *word)
{
    char *end;
    double seconds = strtod(word, &end);

    if (end == word || *end != '\0' || !(seconds >= 0 && seconds <= SECONDS_MAX))
        die("not a number of seconds up to %d: %s", SECONDS_MAX, word);
    return (uint64_t)(seconds * 1e9);
}

static void servers_of(struct witness_conf *conf, char *list)
{
    for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
        struct in_addr address;

        if (conf->n_servers == WITNESS_SERVERS_MAX)
            die("more than %d servers", WITNESS_SERVERS_MAX);
        if (inet_pton(AF_INET, word, &address) != 1)
            die("not an IPv4 address: %s", word);
        conf->servers[conf->n_servers++] = address.s_addr;
    }
}

static struct options options_of(int argc, char **argv)
{
    static const struct option names[] = {
        {"connect", required_argument, NULL, 'a'}, {"clients", required_argument, NULL, 'n'},
        {"seconds", required_argument, NULL, 's'}, {"servers", required_argument, NULL, 'v'},
        {"port", required_argument, NULL, 'p'},    {"check-port", required_argument, NULL, 'c'},
        {"limit", required_argument, NULL, 'l'},   {"pause", required_argument, NULL, 'e'},
        {"slow", required_argument, NULL, 'w'},    {0}};
    struct options opts = {.clients = {.limit_ns = 8000000000, .slow_ns = 500000000}};
    int letter;

    while ((letter = getopt_long(argc, argv, "", names, NULL)) >= 0) {
        switch (letter) {
        case 'a': opts.clients.target = net_parse_pair(optarg); break;
        case 'n': opts.clients.of_each_kind = number_of(optarg, CLIENTS_MAX); break;
        case 's': opts.run_ns = seconds_of(optarg); break;
        case 'v': servers_of(&opts.witness, optarg); break;
        case 'p': opts.witness.port = (uint16_t)number_of(optarg, 65535); break;
        case 'c': opts.witness.check_port = (uint16_t)number_of(optarg, 65535); break;
        case 'e': opts.clients.pause_ns = seconds_of(optarg); break;
        case 'l': opts.clients.limit_ns = seconds_of(optarg); break;
        case 'w': opts.clients.slow_ns = seconds_of(optarg); break;
        default: die("%s", usage);
        }
    }
    if (!opts.clients.target.sin_port || !opts.clients.of_each_kind || opts.run_ns == 0 ||
        !opts.witness.n_servers || !opts.witness.port || !opts.witness.check_port || optind != argc)
        die("%s", usage);
    return opts;
}

static void run(struct clients *clients, struct witness *witness, const struct options *opts)
{
    uint64_t end_ns = clients_now_ns() + opts->run_ns, look_ns = 0, now_ns;
    struct epoll_event events[EVENTS_PER_TURN];
    int epfd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event seen = {.events = EPOLLIN, .data.ptr = NULL};

    if (epfd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, witness->fd, &seen) < 0)
        die_errno("epoll");
    clients_open(clients, &opts->clients, epfd);
    while ((now_ns = clients_now_ns()) < end_ns) {
        int count = epoll_wait(epfd, events, EVENTS_PER_TURN, LOOK_MS);

        if (count < 0 && errno != EINTR)
            die_errno("epoll_wait");
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr)
                clients_event(clients, events[i].data.ptr, events[i].events);
            else
                witness_read(witness);
        }
        if (now_ns >= look_ns) {
            clients_look(clients);
            look_ns = now_ns + (uint64_t)LOOK_MS * NS_PER_MS;
        }
    }
    witness_read(witness);
}

static const char *server_text(char *room, size_t size, int server)
{
    if (server < 0)
        return "-";
    snprintf(room, size, "%d", server);
    return room;
}

static void diagnostics(const struct clients *c, const struct witness *w)
{
    char room[16];

    for (unsigned i = 0; i < CLIENT_KINDS; i++) {
        const struct client_book *book = &c->books[i];

        printf("kind %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", client_kind_names[i],
               book->done, book->slow, book->waits.max_ns,
               histogram_percentile_ns(&book->waits, 99));
    }
    for (size_t i = 0; i < c->n_failures; i++) {
        const struct failure *f = &c->failures[i];

        printf("fail %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %c %s %s\n", client_kind_names[f->kind],
               f->opened_ns, f->begun_ns, f->ended_ns, f->server,
               server_text(room, sizeof(room), witness_server_of(w, f->request)), f->what);
    }
    for (size_t i = 0; i < w->n_syns; i++) {
        const struct witness_syn *syn = &w->syns[i];

        printf("syn %" PRIu64 " %d %s %d\n", syn->at_ns, syn->server,
               syn->is_check ? "check" : "request", syn->has_request);
    }
}

int main(int argc, char **argv)
{
    static struct clients clients;
    struct options opts = options_of(argc, argv);
    struct witness *witness;
    unsigned lost;

    alarm((unsigned)(opts.run_ns / 1000000000) + GRACE_S); /* should this program itself hang */
    net_raise_nofile();
    witness = witness_open(&opts.witness);
    run(&clients, witness, &opts);
    lost = witness_lost(witness);
    if (lost > 0)
        die("%u packets were lost before they were seen", lost);
    diagnostics(&clients, witness);
    return 0;
}
