/* options: the command line of loadgen. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct options {
    struct sockaddr_in target;
    const char *mode;
    unsigned connections;
    uint32_t size_bytes; /* of a message; of a write in stream mode */
    uint64_t warmup_ns;
    uint64_t measure_ns;
    unsigned rate; /* pace: messages a second, of all connections together */
    bool tls;
    bool resume;      /* TLS: resume sessions */
    pid_t server_pid; /* 0: none is watched */
};

/*
 * options_read(opts, argc, argv):
 * Fill ${opts}; die with the usage when something is missing or wrong.
 */
void options_read(struct options *opts, int argc, char **argv);

#endif
