#include "check/check_script.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"

#define CHECK_SCRIPT_OWN_STEPS 8

/* Of a script under construction. */
struct check_script_list {
    struct check_step_conf steps[CHECK_SCRIPT_OWN_STEPS];
    unsigned n;
};

static void check_script_add(struct check_script_list *list, enum check_step_kind kind,
                             const struct check_bytes *bytes)
{
    MUST(list->n < CHECK_SCRIPT_OWN_STEPS);
    list->steps[list->n++] =
        (struct check_step_conf){.kind = kind, .bytes = bytes ? *bytes : (struct check_bytes){0}};
}

static int check_script_add_request(struct check_script_list *list, struct arena *memory,
                                    const struct check_http_conf *http)
{
    struct check_http_request request;
    int rc = check_http_write(&request, memory, http);

    if (rc < 0)
        return rc;
    check_script_add(list, CHECK_STEP_SEND,
                     &(struct check_bytes){(const uint8_t *)request.head, strlen(request.head)});
    if (!http->host)
        check_script_add(list, CHECK_STEP_SEND_HOST, NULL);
    check_script_add(list, CHECK_STEP_SEND,
                     &(struct check_bytes){(const uint8_t *)request.tail, strlen(request.tail)});
    check_script_add(list, CHECK_STEP_STATUS, NULL);
    return 0;
}

/* Make steps of the options, for all kinds of checks but steps. */
static int check_script_list_own(struct check_script_list *list, struct arena *memory,
                                 const struct check_conf *conf)
{
    if (conf->http.method) {
        int rc = check_script_add_request(list, memory, &conf->http);

        if (rc < 0)
            return rc;
        if (conf->expect.len > 0)
            check_script_add(list, CHECK_STEP_HEADERS, NULL);
    } else if (conf->send.len > 0) {
        check_script_add(list, CHECK_STEP_SEND, &conf->send);
    }
    if (conf->wants_line)
        check_script_add(list, CHECK_STEP_LINE, NULL);
    else if (conf->expect.len > 0)
        check_script_add(list, CHECK_STEP_EXPECT, &conf->expect);
    return 0;
}

/* See note: back. */
static int check_script_set_back(struct check_step *step, struct arena *memory)
{
    const struct check_bytes *expect = &step->conf.bytes;
    unsigned m = 0;

    step->back = arena_alloc(memory, expect->len, sizeof(step->back[0]));
    if (!step->back)
        return -ENOMEM;
    for (size_t i = 1; i < expect->len; i++) {
        while (m > 0 && expect->data[m] != expect->data[i])
            m = step->back[m - 1];
        if (expect->data[m] == expect->data[i])
            m++;
        step->back[i] = (uint16_t)m;
    }
    return 0;
}

static int check_script_set_step(struct check_step *step, struct arena *memory,
                                 const struct check_step_conf *conf)
{
    const char *problem;

    step->conf = *conf;
    if (conf->kind != CHECK_STEP_EXPECT && conf->kind != CHECK_STEP_REFUSE)
        return 0;
    if (conf->pattern)
        return check_pattern_compile(&step->pattern, memory, conf->pattern, &problem);
    return check_script_set_back(step, memory);
}

static int check_script_set_steps(struct check_script *s, const struct check_step_conf *list,
                                  unsigned n)
{
    bool has_connect = n > 0 && list[0].kind == CHECK_STEP_CONNECT;
    int rc = 0;

    s->steps = arena_alloc(s->memory, n + 1, sizeof(s->steps[0]));
    if (!s->steps)
        return -ENOMEM;
    if (!has_connect)
        s->steps[s->n++].conf =
            (struct check_step_conf){.kind = CHECK_STEP_CONNECT, .tls = s->conf.tls.slot};
    for (unsigned i = 0; rc == 0 && i < n; i++)
        rc = check_script_set_step(&s->steps[s->n++], s->memory, &list[i]);
    return rc;
}

static int check_script_build(struct check_script *s)
{
    struct check_script_list own = {.n = 0};
    int rc;

    if (s->conf.n_steps > 0)
        return check_script_set_steps(s, s->conf.steps, s->conf.n_steps);
    rc = check_script_list_own(&own, s->memory, &s->conf);
    return rc < 0 ? rc : check_script_set_steps(s, own.steps, own.n);
}

/* A check sends little: no later call would set TCP_NODELAY. */
static void check_script_set_sock(struct sock_connect_conf *sock)
{
    sock->any_source = sock->freebind;
    sock->options.nodelay_later = false;
    sock_options_index(&sock->options);
}

int check_script_init(struct check_script *s, const struct check_conf *conf)
{
    int rc;

    if (conf->send.len > CHECK_BYTES_MAX || conf->expect.len > CHECK_BYTES_MAX ||
        conf->n_steps > CHECK_STEPS_MAX)
        return -EMSGSIZE;
    if (conf->timeout_ns <= 0)
        return -EINVAL;
    *s = (struct check_script){.conf = *conf};
    check_script_set_sock(&s->conf.connect.sock);
    rc = arena_create(&s->memory);
    if (rc < 0)
        return rc;
    rc = check_script_build(s);
    if (rc < 0)
        check_script_end(s);
    return rc;
}

void check_script_end(struct check_script *s)
{
    arena_release(s->memory);
    s->memory = NULL;
}

bool check_script_is_bare(const struct check_script *s, unsigned at)
{
    return !s->steps[at].conf.tls &&
           (at + 1 == s->n || s->steps[at + 1].conf.kind == CHECK_STEP_CONNECT);
}
