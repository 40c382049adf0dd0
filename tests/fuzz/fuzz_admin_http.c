/*
 * Fuzz the whole admin interface with what a client sends: HTTP, and the fields of each request,
 * against a server with a listener and an upstream. Whatever comes, an answer is HTTP, one of JSON
 * is JSON, none is an internal error, and the interface goes on to answer.
 *
 * The first byte says how many bytes are sent first; the rest follows.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "config/config.h"
#include "listen/socket_store.h"
#include "net/address.h"
#include "server/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ANSWER_MAX  (4 << 20)
#define LOOK_MS     10000
#define PATIENCE_MS 20 /* after what is no whole request */
#define LOOK_EVERY  64 /* inputs */

static const char configuration[] = "[boss]\nthreads = 1\n"
                                    "[worker]\nthreads = 1\n"
                                    "[admin]\naddress = @reactord-fuzz-admin.%d\n"
                                    "[listen front]\naddress = @reactord-fuzz-front.%d\n"
                                    "service = proxy\nupstream = back\n"
                                    "[upstream back]\nserver.a = 192.0.2.1:80\n"
                                    "server.b = 192.0.2.2:80\n";

static struct config *config;
static struct server *server;
static struct admin *admin;
static char answer[ANSWER_MAX + 1];
static size_t answer_len;

static void discard(void *cookie, enum log_level level, const char *text)
{
    (void)cookie;
    (void)level;
    MUST(strlen(text) < LOG_LINE_BYTES && strchr(text, '\n') == NULL);
}

/* The main thread: it does nothing, and says so. */
static void refuse_action(void *cookie, struct admin_action *action)
{
    (void)cookie;
    action->done = false;
    snprintf(action->error, sizeof(action->error), "there is no process");
    action->rc = -EBUSY;
    admin_action_done(admin, action);
}

static void no_status(void *cookie, struct admin_status *out)
{
    (void)cookie;
    *out = (struct admin_status){
        .config_path = "fuzz.ini", .reload = "idle", .confirm_by_ns = CLOCK_NEVER};
}

static void no_figures(void *cookie, struct figure_visitor *v)
{
    (void)cookie;
    (void)v;
}

static void close_all(void)
{
    unsigned cut;

    MUST(server_stop(server, &cut) == 0 && admin_stop(admin) == 0);
    admin_destroy(admin);
    server_destroy(server);
    config_free(config);
}

static void open_all(void)
{
    static const struct log_sink sink = {.write = discard};
    static const struct socket_store none = {.cookie = NULL};
    struct admin_env env = {
        .sockets = &none,
        .ops = {.submit = refuse_action, .status = no_status, .figures = no_figures}};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char path[64];

    MUST(fd >= 0 && dprintf(fd, configuration, (int)getpid(), (int)getpid()) > 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    MUST(config_load(&config, path, stderr) == 0);
    close(fd);
    log_set_sink(&sink);
    MUST(server_create(&server, &config->server, &(struct server_events){0}) == 0);
    env.server = server;
    MUST(admin_create(&admin, &config->admin, &env) == 0);
    MUST(server_start_worker(server) == 0 && admin_start_thread(admin) == 0);
    MUST(server_start(server) == 0 && admin_start(admin) == 0);
    atexit(close_all);
}

static int connect_client(void)
{
    const struct address *a;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    MUST(fd >= 0 && admin_descriptor(admin, 0, &a) >= 0);
    MUST(connect(fd, &a->u.sa, a->len) == 0);
    return fd;
}

static void send_all(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

        if (n < 0)
            return; /* it has been refused, and closed */
        data += n;
        size -= (size_t)n;
    }
}

/* Read to the end, or until nothing comes for ${patience_ms}; true: to the end. */
static bool receive_all(int fd, int patience_ms)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    size_t len = 0;
    ssize_t n = 1;

    while (n > 0 && len < ANSWER_MAX && poll(&readable, 1, patience_ms) == 1) {
        n = recv(fd, answer + len, ANSWER_MAX - len, 0);
        len += n > 0 ? (size_t)n : 0;
    }
    answer[len] = '\0';
    answer_len = len;
    return n == 0;
}

/* The value of the header ${name}, whose lines end at ${end}; NULL: none. */
static const char *header(const char *name, const char *end)
{
    size_t len = strlen(name);

    for (const char *at = strstr(answer, "\r\n"); at && at < end; at = strstr(at + 2, "\r\n"))
        if (strncasecmp(at + 2, name, len) == 0 && at[2 + len] == ':')
            return at + 2 + len + strspn(at + 3 + len, " ") + 1;
    return NULL;
}

/* The first answer; others follow when the client asks more. */
static void check_answer(bool is_head)
{
    const char *end = strstr(answer, "\r\n\r\n"), *type, *length;
    json_t *json;
    size_t n;

    if (answer_len == 0)
        return;
    MUST(strncmp(answer, "HTTP/1.", 7) == 0 && end != NULL && answer[8] == ' ');
    MUST(answer[9] >= '2' && answer[9] <= '5' && strncmp(answer + 9, "500", 3) != 0);
    type = header("Content-Type", end);
    length = header("Content-Length", end);
    if (is_head || !type || !length || strncmp(type, "application/json", 16) != 0)
        return;
    n = strtoul(length, NULL, 10);
    MUST(n <= answer_len - (size_t)(end + 4 - answer));
    json = json_loadb(end + 4, n, JSON_REJECT_DUPLICATES, NULL);
    MUST(json != NULL);
    json_decref(json);
}

/* Is the process well? */
static void look(void)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fd = connect_client();

    send_all(fd, (const uint8_t *)request, strlen(request));
    shutdown(fd, SHUT_WR);
    MUST(receive_all(fd, LOOK_MS) && strncmp(answer, "HTTP/1.1 200 ", 13) == 0);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned n_inputs;
    size_t first;
    int fd;

    if (!admin)
        open_all();
    if (size == 0)
        return 0;
    first = data[0] < size - 1 ? data[0] : size - 1;
    fd = connect_client();
    send_all(fd, data + 1, first);
    send_all(fd, data + 1 + first, size - 1 - first);
    shutdown(fd, SHUT_WR);
    if (receive_all(fd, PATIENCE_MS))
        check_answer(size > 5 && memcmp(data + 1, "HEAD ", 5) == 0);
    close(fd);
    if (n_inputs++ % LOOK_EVERY == 0)
        look();
    return 0;
}
