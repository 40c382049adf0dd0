/*
 * Fuzz what a process is started with, and what the process that started it says: LISTEN_PID,
 * LISTEN_FDS, LISTEN_FDNAMES, the descriptors, and messages. Each descriptor that libsystemd counts
 * is closed at the end, every other one is left alone.
 *
 * The input is texts with NUL between them: a letter for each descriptor, LISTEN_FDS,
 * LISTEN_FDNAMES, LISTEN_PID (or nothing: our own), then messages. The first byte of a message
 * chooses the descriptor it comes by, and whether its text is in a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/log.h"
#include "base/must.h"
#include "config/config.h"
#include "upgrade/fd_store.h"
#include "upgrade/hand_over.h"
#include "system/launch.h"
#include "log/log_line.h"
#include "upgrade/past.h"
#include "upgrade/predecessors.h"
#include "upgrade/ticket_keys.h"
#include "server/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIRST       SD_LISTEN_FDS_START
#define HANDED_MAX  8
#define TEXTS_MAX   64
#define SOCKET_PATH "@reactord-fuzz-inherited.%d"

static const char configuration[] = "[boss]\nthreads = 1\n"
                                    "[worker]\nthreads = 1\n"
                                    "[listen front]\naddress = " SOCKET_PATH "\n"
                                    "service = proxy\nupstream = back\n"
                                    "[upstream back]\nserver.a = 192.0.2.1:80\n";

/* The texts of the input. */
static const char *texts[TEXTS_MAX];
static unsigned n_texts;
/* The other ends of our descriptors; -1: none. */
static int peers[HANDED_MAX];
static unsigned n_handed;

/* Before others open files: the numbers of what is handed over, and the one behind them. */
__attribute__((constructor)) static void set_aside(void)
{
    for (int fd = FIRST; fd <= FIRST + HANDED_MAX; fd++) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        if (fcntl(fd, F_GETFD) < 0)
            dup3(null, fd, O_CLOEXEC);
        if (null != fd)
            close(null);
    }
}

static void check_line(void *cookie, enum log_level level, const char *text)
{
    static const struct log_line_form form = {.layout = LOG_LINE_PLAIN};
    struct log_line line;

    (void)cookie;
    MUST(strlen(text) < LOG_LINE_BYTES);
    log_line_build(&line, &form, level, text); /* names of descriptors may have any byte */
    MUST(memchr(line.data, '\n', line.len) == line.data + line.len - 1);
}

static struct server *open_server(void)
{
    static const struct log_sink sink = {.write = check_line};
    struct config *config;
    struct server *sv;
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    MUST(fd >= 0 && dprintf(fd, configuration, (int)getpid()) > 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    MUST(config_load(&config, path, stderr) == 0);
    close(fd);
    log_set_sink(&sink);
    MUST(server_create(&sv, &config->server, &(struct server_events){0}) == 0);
    return sv;
}

/* One server for all reports: they only add to what it has. */
static struct server *one_server(void)
{
    static struct server *sv;

    if (!sv)
        sv = open_server();
    return sv;
}

static const char *text_of(unsigned i)
{
    return i < n_texts ? texts[i] : "";
}

static int file_of(const char *text)
{
    int fd;

    MUST(hand_over_write_state(&fd, text, strlen(text)) == 0);
    return fd;
}

/* A listen socket at a port or an abstract name that the kernel chooses. */
static int listener_of(int family)
{
    const struct sockaddr_storage any = {.ss_family = (sa_family_t)family};
    int fd = socket(family, SOCK_STREAM, 0);
    socklen_t len = family == AF_UNIX ? sizeof(any.ss_family) : sizeof(struct sockaddr_in6);

    if (family == AF_INET)
        len = sizeof(struct sockaddr_in);
    MUST(fd >= 0 && bind(fd, (const struct sockaddr *)&any, len) == 0 && listen(fd, 1) == 0);
    return fd;
}

/* The descriptor of ${letter}; *peer: its other end. */
static int descriptor_of(char letter, int *peer)
{
    int ends[2];

    switch (letter) {
    case 't': return listener_of(AF_INET);
    case 's': return listener_of(AF_INET6);
    case 'u': return listener_of(AF_UNIX);
    case 'd': return socket(AF_INET, SOCK_DGRAM, 0);
    case 'm': return file_of(text_of(n_texts - 1));
    case '=': return n_handed > 0 ? dup(FIRST + (int)n_handed - 1) : -1;
    case 'h':
        MUST(hand_over_open(ends) == 0);
        *peer = ends[1];
        return ends[0];
    default: return -1;
    }
}

/* A number without a descriptor is closed at last: until then no other one gets it. */
static void hand_over(const char *letters)
{
    bool is_gap[HANDED_MAX] = {false};

    for (n_handed = 0; n_handed < HANDED_MAX && letters[n_handed] != '\0'; n_handed++) {
        int number = FIRST + (int)n_handed, fd;

        peers[n_handed] = -1;
        fd = descriptor_of(letters[n_handed], &peers[n_handed]);
        is_gap[n_handed] = fd < 0;
        if (fd >= 0)
            MUST(dup2(fd, number) == number && close(fd) == 0);
    }
    for (unsigned i = 0; i < HANDED_MAX; i++)
        if (i >= n_handed || is_gap[i])
            close(FIRST + (int)i);
}

/* What the service manager says; returns how many descriptors libsystemd counts. */
static unsigned set_environment(void)
{
    char pid[16], **names = NULL;
    int n;

    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    MUST(setenv("LISTEN_FDS", text_of(1), 1) == 0);
    MUST(setenv("LISTEN_FDNAMES", text_of(2), 1) == 0);
    MUST(setenv("LISTEN_PID", text_of(3)[0] != '\0' ? text_of(3) : pid, 1) == 0);
    n = sd_listen_fds_with_names(0, &names);
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return n > 0 ? (unsigned)n : 0;
}

static void empty_queues(void)
{
    char text[HAND_OVER_TEXT_BYTES];
    int fd;

    for (unsigned i = 0; i < n_handed; i++)
        while (peers[i] >= 0 && hand_over_receive(peers[i], text, &fd) == 0)
            MUST(fd < 0);
}

static void say(struct predecessors *p, const char *message)
{
    unsigned chosen = (unsigned char)message[0];
    int fd = chosen & 0x40 ? file_of(message + 1) : -1, rc = -EAGAIN;

    if (n_handed > 0 && peers[chosen % n_handed] >= 0)
        rc = hand_over_send(peers[chosen % n_handed], message + (message[0] != '\0'), fd);
    if (fd >= 0)
        close(fd);
    if (rc == 0 && predecessors_step(p))
        MUST(!predecessors_is_pending(p));
    empty_queues();
}

static void lend(struct predecessors *p)
{
    struct launch_descriptor list[PREDECESSORS_DESCRIPTORS * HANDED_MAX];

    MUST(predecessors_draining(p) <= HANDED_MAX);
    if (predecessors_lend(p, list) == 0)
        predecessors_return(p);
    predecessors_tell(p, "drain");
    empty_queues();
}

static void close_descriptor(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Signals use the number of the ticket keys: daemon/process_steps. */
static int open_store(struct fd_store **store, unsigned n)
{
    unsigned used = 0;
    int rc;

    for (unsigned i = 0; i < n; i++)
        MUST(fcntl(FIRST + (int)i, F_GETFD) >= 0);
    ticket_keys_take();
    for (unsigned i = 0; i < n; i++)
        if (fcntl(FIRST + (int)i, F_GETFD) < 0) {
            MUST(dup2(FIRST + HANDED_MAX, FIRST + (int)i) == FIRST + (int)i);
            used |= 1u << i;
        }
    rc = fd_store_open(store);
    for (unsigned i = 0; i < n; i++)
        if (used & 1u << i)
            MUST(close(FIRST + (int)i) == 0);
    return rc;
}

/* As daemon/main does it; ${n}: the number of descriptors. */
static void start(struct server *sv, unsigned n)
{
    struct predecessors *p;
    struct fd_store *store;

    MUST(predecessors_open(&p) == 0);
    MUST(open_store(&store, n) == 0);
    MUST(getenv("LISTEN_FDS") == NULL && getenv("LISTEN_FDNAMES") == NULL);
    predecessors_attach(p, sv);
    empty_queues();
    MUST(predecessors_ready(p, false) == predecessors_is_pending(p));
    fd_store_close_unwanted(store);
    fd_store_give_up(store);
    for (unsigned i = 4; i < n_texts; i++)
        say(p, texts[i]);
    if (!predecessors_is_pending(p))
        lend(p);
    past_use(predecessors_past(p), NULL);
    close_descriptor(predecessors_take_pid_file(p));
    close_descriptor(predecessors_take_sessions(p));
    predecessors_close(p);
    fd_store_close(store);
}

static int lowest_free_fd(void)
{
    int fd = dup(FIRST + HANDED_MAX);

    MUST(fd >= 0);
    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct server *sv = one_server();
    char *text = calloc(1, size + 1), *at = text;
    bool is_open[HANDED_MAX];
    unsigned n;
    int lowest;

    MUST(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    for (n_texts = 0; n_texts < TEXTS_MAX && at <= text + size; at += strlen(at) + 1)
        texts[n_texts++] = at;
    for (int fd = FIRST; fd < FIRST + HANDED_MAX; fd++)
        MUST(dup2(FIRST + HANDED_MAX, fd) == fd);
    lowest = lowest_free_fd();
    hand_over(texts[0]);
    for (unsigned i = 0; i < HANDED_MAX; i++)
        is_open[i] = fcntl(FIRST + (int)i, F_GETFD) >= 0;
    n = set_environment();
    if (n <= HANDED_MAX) {
        start(sv, n);
        for (unsigned i = 0; i < HANDED_MAX; i++)
            MUST((fcntl(FIRST + (int)i, F_GETFD) >= 0) == (is_open[i] && i >= n));
    }
    for (unsigned i = 0; i < n_handed; i++)
        close_descriptor(peers[i]);
    for (int fd = FIRST; fd < FIRST + HANDED_MAX; fd++)
        MUST(dup2(FIRST + HANDED_MAX, fd) == fd);
    MUST(lowest_free_fd() == lowest);
    free(text);
    return 0;
}
