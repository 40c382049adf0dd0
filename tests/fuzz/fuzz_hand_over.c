/*
 * Fuzz what a process that is replaced hands over: counters and health, settings, bans, answers of
 * names, the history and the events. Whatever it says, this process takes it or leaves it, and
 * writes settings, history and events so that they are read back as the same.
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
#include "daemon/hand_over.h"
#include "handover/server_bans_state.h"
#include "handover/server_settings.h"
#include "handover/server_state.h"
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

static const struct config *config_of_all(void)
{
    static const struct log_sink sink = {.write = discard};
    static struct config *config;
    char path[64], *problems;
    size_t len;
    FILE *out;
    int fd;

    if (config)
        return config;
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
    log_set_sink(&sink);
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

static void try_message(const char *text)
{
    static const char *const words[] = {"log", "ready", "go", "state", "end"};
    int ends[2], state_fd = -1;
    char got[HAND_OVER_TEXT_BYTES];

    MUST(hand_over_open(ends) == 0);
    if (hand_over_send(ends[0], text, ends[0]) == 0 &&
        hand_over_receive(ends[1], got, &state_fd) == 0) {
        MUST(strncmp(got, text, sizeof(got) - 1) == 0);
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
            MUST(hand_over_is(got, words[i]) == NULL || hand_over_is(got, words[i]) > got);
    }
    if (state_fd >= 0)
        close(state_fd);
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
    switch (data[0] % 6) {
    case 0: try_settings(text); break;
    case 1: try_state(text); break;
    case 2: try_bans(text, strlen(text)); break;
    case 3: try_history(text, size - 1); break;
    case 4: try_events(text); break;
    case 5: try_message(text); break;
    }
    free(text);
    return 0;
}
