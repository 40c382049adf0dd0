/*
 * Fuzz what a process that is replaced hands over: counters and health, settings, bans, answers of
 * names, the history, the events, edits of servers, and messages with sessions. Whatever it says,
 * this process takes it or leaves it, and writes settings, history, events and edits so that they
 * are read back as the same.
 *
 * The first byte says what the rest is.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "config/config.h"
#include "config/config_edits.h"
#include "upgrade/hand_over.h"
#include "handover/server_bans_state.h"
#include "handover/server_settings.h"
#include "handover/server_state.h"
#include "handover/session_message.h"
#include "server/server.h"
#include "stats/events.h"
#include "stats/history.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SOCKET_PATH   "/tmp/reactord-fuzz.%d.sock"
#define HISTORY_BYTES (1 << 20)

static const char configuration[] = "[boss]\nthreads = 1\n"
                                    "[worker]\nthreads = 1\n"
                                    "[limits both]\nmax_connections_per_client = 9\n"
                                    "[listen front]\naddress = " SOCKET_PATH "\n"
                                    "service = proxy\nupstream = back\n"
                                    "[upstream back]\nserver.a = 192.0.2.1:80\n"
                                    "server.b = 192.0.2.2:80\n";

static void discard(void *cookie, enum log_level level, const char *text)
{
    (void)cookie;
    (void)level;
    MUST(strlen(text) < LOG_LINE_BYTES && strchr(text, '\n') == NULL);
}

static struct config *load_config(void)
{
    struct config *config;
    char path[64], *problems;
    size_t len;
    FILE *out;
    int fd;

    fd = memfd_create("fuzz", MFD_CLOEXEC);
    MUST(fd >= 0 && dprintf(fd, configuration, (int)getpid()) > 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    out = open_memstream(&problems, &len);
    if (config_load(&config, path, out) < 0) {
        fclose(out);
        fputs(problems, stderr);
        abort();
    }
    fclose(out);
    free(problems);
    close(fd);
    return config;
}

static const struct config *config_of_all(void)
{
    static const struct log_sink sink = {.write = discard};
    static struct config *config;

    if (!config) {
        config = load_config();
        log_set_sink(&sink);
    }
    return config;
}

/* A server that does not run yet: what is handed over is used at once. */
static struct server *open_server(void)
{
    struct server *sv;
    char path[64];

    MUST(server_create(&sv, &config_of_all()->server, &(struct server_events){0}) == 0);
    snprintf(path, sizeof(path), SOCKET_PATH, (int)getpid());
    unlink(path);
    return sv;
}

/* One server for all reports and bans: they only add to what it has. */
static struct server *one_server(void)
{
    static struct server *sv;

    if (!sv)
        sv = open_server();
    return sv;
}

static void close_server(struct server *sv)
{
    unsigned cut;

    MUST(server_stop(sv, &cut) == 0);
    server_destroy(sv);
}

/* What ${write} writes. */
static char *written(void (*write)(void *from, FILE *f), void *from, size_t *len)
{
    char *text;
    FILE *f = open_memstream(&text, len);

    MUST(f != NULL);
    write(from, f);
    MUST(fclose(f) == 0);
    return text;
}

static void write_settings(void *server, FILE *f)
{
    server_settings_write(server, f);
}

/* The settings of a server that uses ${text}. */
static char *use_settings(const char *text, size_t *len)
{
    struct server *sv = open_server();
    char *settings;

    MUST(server_settings_use(sv, text) == 0);
    settings = written(write_settings, sv, len);
    close_server(sv);
    return settings;
}

static void try_settings(const char *text)
{
    size_t len, again_len;
    char *first = use_settings(text, &len), *again = use_settings(first, &again_len);

    /* The end of a pause is counted anew. */
    MUST(strstr(first, "pause") || (len == again_len && memcmp(first, again, len) == 0));
    free(again);
    free(first);
}

static void write_state(void *server, FILE *f)
{
    server_state_write(server, f);
    server_state_write_names(server, f);
}

/* The second half is a report that follows. */
static void try_state(const char *text)
{
    struct server *sv = one_server();
    struct server_state *state;
    size_t len;

    server_state_use_names(sv, text);
    MUST(server_state_create(&state, sv, "") == 0);
    MUST(server_state_report(state, text) == 0);
    MUST(strcmp(server_state_text(state), text) == 0);
    MUST(server_state_report(state, text + strlen(text) / 2) == 0);
    MUST(server_state_close(state, false) == 0);
    server_state_destroy(state);
    free(written(write_state, sv, &len));
}

static void write_bans(void *server, FILE *f)
{
    (void)server_bans_state_write(server, f, 0, 100);
}

static void try_bans(char *text, size_t len)
{
    struct server *sv = one_server();
    FILE *f = len > 0 ? fmemopen(text, len, "r") : NULL;
    size_t n;

    if (f) {
        server_bans_state_use(sv, f);
        fclose(f);
        free(written(write_bans, sv, &n));
    }
}

static void write_history(void *history, FILE *f)
{
    history_write(history, f);
}

static void try_history(char *record, size_t len)
{
    struct history *history, *same;
    int64_t now_ns = 1000 * NS_PER_S;
    size_t first_len;
    char *first;

    MUST(history_create(&history, HISTORY_BYTES) == 0 && history_create(&same, HISTORY_BYTES) == 0);
    if (history_read(history, record, len, now_ns) == 0) {
        first = written(write_history, history, &first_len);
        MUST(history_read(same, first, first_len, now_ns) == 0);
        free(first);
    }
    history_destroy(same);
    history_destroy(history);
}

static void write_events(void *events, FILE *f)
{
    events_write(events, f);
}

static void try_events(const char *text)
{
    struct events *events, *same;
    size_t len, same_len;
    char *first, *again;

    MUST(events_create(&events) == 0 && events_create(&same) == 0);
    if (events_read(events, text) == 0) {
        first = written(write_events, events, &len);
        MUST(events_read(same, first) == 0);
        again = written(write_events, same, &same_len);
        MUST(len == same_len && memcmp(first, again, len) == 0);
        free(again);
        free(first);
    }
    events_destroy(same);
    events_destroy(events);
}

static int lowest_free_fd(int any)
{
    int fd = dup(any);

    MUST(fd >= 0);
    close(fd);
    return fd;
}

static void try_message(const char *text)
{
    static const char *const words[] = {"log", "ready", "go", "state", "end"};
    int ends[2], lowest, state_fd = -1;
    char got[HAND_OVER_TEXT_BYTES];

    MUST(hand_over_open(ends) == 0);
    lowest = lowest_free_fd(ends[0]);
    if (hand_over_send(ends[0], text, ends[0]) == 0 &&
        hand_over_receive(ends[1], got, &state_fd) == 0) {
        MUST(strncmp(got, text, sizeof(got) - 1) == 0);
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
            MUST(hand_over_is(got, words[i]) == NULL || hand_over_is(got, words[i]) > got);
    }
    if (state_fd >= 0)
        close(state_fd);
    MUST(lowest_free_fd(ends[0]) == lowest);
    close(ends[0]);
    close(ends[1]);
}

static void write_edits(void *config, FILE *f)
{
    config_edits_write(config, f);
}

/* The edits of a configuration that reads ${text}. */
static char *use_edits(const char *text)
{
    struct config *config = load_config();
    FILE *notes = fopen("/dev/null", "w");
    char *edits;
    size_t len;

    MUST(notes != NULL && config_edits_read(&config, text, notes) == 0);
    edits = written(write_edits, config, &len);
    fclose(notes);
    config_free(config);
    return edits;
}

static void try_edits(const char *text)
{
    char *first = use_edits(text), *again = use_edits(first);

    MUST(strcmp(first, again) == 0);
    free(again);
    free(first);
}

/* The number of descriptors, then the message; the highest bit: all but its head is in a file. */
static void try_session_message(const uint8_t *data, size_t size)
{
    static uint8_t buffer[SESSION_MESSAGE_INLINE_BYTES];
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(5 * sizeof(int))];
    } control = {.bytes = {0}};
    unsigned n_fds = size > 0 ? (data[0] & 0x7f) % 6 : 0;
    bool has_file = size > sizeof(struct session_message) && n_fds > 0 && data[0] >= 0x80;
    size_t inline_bytes = has_file ? sizeof(struct session_message) : size - (size > 0);
    struct iovec part = {.iov_base = (void *)(data + (size > 0)), .iov_len = inline_bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct session_message_body body;
    struct session_message m;
    int ends[2], fds[5], lowest;

    MUST(session_message_open(ends) == 0);
    for (unsigned i = 0; i < n_fds; i++) {
        fds[i] = memfd_create("fuzz", MFD_CLOEXEC);
        MUST(fds[i] >= 0);
    }
    if (has_file)
        MUST(write(fds[n_fds - 1], data + 1 + inline_bytes, size - 1 - inline_bytes) >= 0);
    if (n_fds > 0) {
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
    }
    MUST(sendmsg(ends[0], &message, 0) == (ssize_t)inline_bytes);
    for (unsigned i = 0; i < n_fds; i++)
        close(fds[i]);
    lowest = lowest_free_fd(ends[0]);
    if (session_message_receive(ends[1], &m, &body, buffer) == 0) {
        MUST(body.n_fds <= SESSION_MESSAGE_FDS && body.n <= size);
        if (body.n > 0)
            MUST(memcmp(body.data, data + 1 + sizeof(m), body.n) == 0);
        session_message_drop(&body, buffer);
    }
    MUST(lowest_free_fd(ends[0]) == lowest);
    close(ends[0]);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size == 0)
        return 0;
    text = malloc(size);
    MUST(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 8) {
    case 0: try_settings(text); break;
    case 1: try_state(text); break;
    case 2: try_bans(text, strlen(text)); break;
    case 3: try_history(text, size - 1); break;
    case 4: try_events(text); break;
    case 5: try_message(text); break;
    case 6: try_edits(text); break;
    case 7: try_session_message(data + 1, size - 1); break;
    }
    free(text);
    return 0;
}
