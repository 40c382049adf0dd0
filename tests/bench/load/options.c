#include "load/options.h"

#include "common/die.h"
#include "common/net.h"

#include <getopt.h>
#include <stdlib.h>

enum {
    CONNECTIONS_MAX = 1000000,
    SIZE_MAX_BYTES = 1 << 30,
    SECONDS_MAX = 3600,
    PID_MAX = 1 << 30,
    RATE_MAX = 1000000,
};

static const char usage[] =
    "usage: loadgen --connect ADDRESS:PORT --connections N --size BYTES --seconds S [--warmup S]\n"
    "               [--mode pingpong|pace|churn|idle|stream|fetch] [--rate R] [--tls [--resume]]\n"
    "               [--server-pid PID]";

static unsigned option_count(const char *text, unsigned max)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || number < 1 || number > max)
        die("not a number from 1 to %u: %s", max, text);
    return (unsigned)number;
}

static uint64_t option_seconds_ns(const char *text)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !(seconds >= 0 && seconds <= SECONDS_MAX))
        die("not a number of seconds from 0 to %d: %s", SECONDS_MAX, text);
    return (uint64_t)(seconds * 1e9);
}

void options_read(struct options *opts, int argc, char **argv)
{
    static const struct option names[] = {{"connect", required_argument, NULL, 'a'},
                                          {"connections", required_argument, NULL, 'n'},
                                          {"size", required_argument, NULL, 'b'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"warmup", required_argument, NULL, 'w'},
                                          {"mode", required_argument, NULL, 'm'},
                                          {"server-pid", required_argument, NULL, 'p'},
                                          {"rate", required_argument, NULL, 'r'},
                                          {"tls", no_argument, NULL, 't'},
                                          {"resume", no_argument, NULL, 'u'},
                                          {0}};
    int letter;

    *opts = (struct options){.mode = "pingpong", .rate = 1};
    while ((letter = getopt_long(argc, argv, "", names, NULL)) >= 0) {
        switch (letter) {
        case 'a': opts->target = net_parse_pair(optarg); break;
        case 'n': opts->connections = option_count(optarg, CONNECTIONS_MAX); break;
        case 'b': opts->size_bytes = option_count(optarg, SIZE_MAX_BYTES); break;
        case 's': opts->measure_ns = option_seconds_ns(optarg); break;
        case 'w': opts->warmup_ns = option_seconds_ns(optarg); break;
        case 'm': opts->mode = optarg; break;
        case 'r': opts->rate = option_count(optarg, RATE_MAX); break;
        case 't': opts->tls = true; break;
        case 'u': opts->resume = true; break;
        case 'p': opts->server_pid = (pid_t)option_count(optarg, PID_MAX); break;
        default: die("%s", usage);
        }
    }
    if (!opts->target.sin_port || !opts->connections || !opts->size_bytes || !opts->measure_ns ||
        optind != argc)
        die("%s", usage);
}
