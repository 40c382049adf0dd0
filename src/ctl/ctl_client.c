#include "ctl/ctl_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ctl/ctl_memory.h"

#define MAX_BODY_BYTES   (64u << 20) /* the metrics of 1,000 servers are below 4 MiB */
#define FIRST_BODY_BYTES 4096
#define HTTP_OK          200
#define HTTP_REDIRECT    300
#define HTTP_BAD_REQUEST 400
#define HTTP_NOT_FOUND   404

#define CHECK_CURL(call) MUST((call) == CURLE_OK)

struct ctl_client {
    const struct ctl_client_conf *conf;
    CURL *curl;
    struct curl_slist *headers;
    struct ctl_answer answer; /* being received */
    size_t cap;
    bool too_large;
    int os_errno;
    char detail[CURL_ERROR_SIZE];
};

static size_t ctl_client_on_bytes(char *bytes, size_t size, size_t n, void *cookie)
{
    struct ctl_client *c = cookie;
    size_t len = size * n, needed = c->answer.len + len + 1;

    c->too_large = needed > MAX_BODY_BYTES;
    if (c->too_large)
        return CURL_WRITEFUNC_ERROR;
    if (needed > c->cap) {
        c->cap = needed > 2 * c->cap ? needed : 2 * c->cap;
        c->answer.body = ctl_memory_need(realloc(c->answer.body, c->cap));
    }
    memcpy(c->answer.body + c->answer.len, bytes, len);
    c->answer.len += len;
    c->answer.body[c->answer.len] = '\0';
    return len;
}

static int ctl_client_on_progress(void *cookie, curl_off_t to_receive, curl_off_t received,
                                  curl_off_t to_send, curl_off_t sent)
{
    const struct ctl_client *c = cookie;

    (void)to_receive, (void)received, (void)to_send, (void)sent;
    return c->conf->is_cancelled && c->conf->is_cancelled(c->conf->cookie);
}

static void ctl_client_add_header(struct ctl_client *c, const char *line)
{
    c->headers = ctl_memory_need(curl_slist_append(c->headers, line));
}

static void ctl_client_add_token(struct ctl_client *c, const char *token)
{
    struct ctl_memory_text line;

    ctl_memory_text_open(&line);
    fprintf(line.file, "Authorization: Bearer %s", token);
    ctl_client_add_header(c, ctl_memory_text_close(&line));
    free(line.bytes);
}

static void ctl_client_set_callbacks(struct ctl_client *c)
{
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, ctl_client_on_bytes));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_NOPROGRESS, 0L));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_XFERINFOFUNCTION, ctl_client_on_progress));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_XFERINFODATA, c));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->detail));
}

static int ctl_client_set_options(struct ctl_client *c)
{
    const struct ctl_client_conf *conf = c->conf;
    long ms = (long)((conf->timeout_ns + NS_PER_MS - 1) / NS_PER_MS);

    /* Ignore the proxy of the user's environment: it is for the web. */
    if (curl_easy_setopt(c->curl, CURLOPT_NOPROXY, "*") != CURLE_OK ||
        curl_easy_setopt(c->curl, CURLOPT_PROTOCOLS_STR, "http") != CURLE_OK ||
        curl_easy_setopt(c->curl, CURLOPT_USERAGENT, "reactorctl/" REACTORD_VERSION) != CURLE_OK ||
        curl_easy_setopt(c->curl, CURLOPT_UNIX_SOCKET_PATH, conf->address.path) != CURLE_OK)
        return -ENOMEM;
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, ms));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT_MS, ms));
    ctl_client_set_callbacks(c);
    ctl_client_add_header(c, "Accept: application/json, text/plain");
    ctl_client_add_header(c, "Content-Type: application/json");
    ctl_client_add_header(c, "Expect:"); /* send the body without waiting for "100 Continue" */
    if (conf->token && !conf->address.path)
        ctl_client_add_token(c, conf->token);
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers));
    return 0;
}

int ctl_client_open(struct ctl_client **out, const struct ctl_client_conf *conf)
{
    struct ctl_client *c = ctl_memory_need(calloc(1, sizeof(*c)));

    c->conf = conf;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        goto err_free;
    c->curl = curl_easy_init();
    if (!c->curl)
        goto err_cleanup_global;
    if (ctl_client_set_options(c) < 0)
        goto err_cleanup;
    *out = c;
    return 0;
err_cleanup:
    curl_slist_free_all(c->headers);
    curl_easy_cleanup(c->curl);
err_cleanup_global:
    curl_global_cleanup();
err_free:
    free(c);
    return -ENOMEM;
}

void ctl_client_close(struct ctl_client *c)
{
    curl_easy_cleanup(c->curl);
    curl_slist_free_all(c->headers);
    curl_global_cleanup();
    free(c);
}

static enum ctl_client_failure ctl_client_failure_of(const struct ctl_client *c, CURLcode code)
{
    if (c->too_large)
        return CTL_CLIENT_TOO_LARGE;
    switch (code) {
    case CURLE_OK: return CTL_CLIENT_OK;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST: return CTL_CLIENT_UNREACHABLE;
    case CURLE_OPERATION_TIMEDOUT: return CTL_CLIENT_TIMEOUT;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: return CTL_CLIENT_CUT;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL: return CTL_CLIENT_NO_HTTP;
    case CURLE_ABORTED_BY_CALLBACK: return CTL_CLIENT_CANCELLED;
    default: return CTL_CLIENT_OTHER;
    }
}

/* Send the prepared request; the caller drops c->answer. */
static enum ctl_client_failure ctl_client_perform(struct ctl_client *c, const char *path)
{
    char *url = NULL;
    CURLcode code;
    long value = 0;

    ctl_memory_need(asprintf(&url, "%s%s", c->conf->address.url, path) < 0 ? NULL : url);
    c->answer = (struct ctl_answer){.body = ctl_memory_need(calloc(1, FIRST_BODY_BYTES))};
    c->cap = FIRST_BODY_BYTES;
    c->too_large = false;
    c->detail[0] = '\0';
    ctl_memory_need(curl_easy_setopt(c->curl, CURLOPT_URL, url) == CURLE_OK ? url : NULL);
    free(url);
    code = curl_easy_perform(c->curl);
    curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &value);
    c->os_errno = code == CURLE_COULDNT_CONNECT ? (int)value : 0;
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &value);
    c->answer.status = (unsigned)value;
    return ctl_client_failure_of(c, code);
}

/* Parse the answer. False: neither success nor error, or a success of the wrong type. */
static bool ctl_client_understand(struct ctl_client *c, const struct ctl_request *request)
{
    struct ctl_answer *answer = &c->answer;
    bool went_well = answer->status >= HTTP_OK && answer->status < HTTP_REDIRECT;

    if (!went_well && answer->status < HTTP_BAD_REQUEST)
        return false;
    if (went_well && request->wants_text)
        return true;
    answer->json = json_loadb(answer->body, answer->len, 0, NULL);
    if (answer->json && !json_is_object(answer->json)) {
        json_decref(answer->json);
        answer->json = NULL;
    }
    return answer->json || !went_well;
}

static enum ctl_client_failure ctl_client_send(struct ctl_client *c,
                                               const struct ctl_request *request)
{
    enum ctl_client_failure failure;
    char *body;

    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, NULL));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_NOBODY, 0L));
    /* Ask again whoever has the address then: after an upgrade another process. */
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_FORBID_REUSE, request->wants_text ? 1L : 0L));
    if (!request->body) {
        CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_HTTPGET, 1L));
        return ctl_client_perform(c, request->path);
    }
    body = ctl_memory_need(json_dumps(request->body, JSON_COMPACT));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_POST, 1L));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, request->method));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE, (long)strlen(body)));
    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body)); /* not copied */
    failure = ctl_client_perform(c, request->path);
    free(body);
    return failure;
}

enum ctl_client_failure ctl_client_ask(struct ctl_client *c, const struct ctl_request *request,
                                       struct ctl_answer *out)
{
    enum ctl_client_failure failure = ctl_client_send(c, request);

    if (failure == CTL_CLIENT_OK && !ctl_client_understand(c, request))
        failure = CTL_CLIENT_NO_HTTP;
    if (failure == CTL_CLIENT_OK)
        *out = c->answer;
    else
        ctl_client_drop(&c->answer);
    c->answer = (struct ctl_answer){.body = NULL};
    return failure;
}

void ctl_client_drop(struct ctl_answer *answer)
{
    json_decref(answer->json);
    free(answer->body);
    *answer = (struct ctl_answer){.body = NULL};
}

bool ctl_client_knows(struct ctl_client *c, const char *path)
{
    enum ctl_client_failure failure;
    unsigned status;

    CHECK_CURL(curl_easy_setopt(c->curl, CURLOPT_HTTPGET, 1L));
    ctl_memory_need(curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, "OPTIONS") == CURLE_OK ? c
                                                                                            : NULL);
    failure = ctl_client_perform(c, path);
    status = c->answer.status;
    ctl_client_drop(&c->answer);
    return failure != CTL_CLIENT_OK || status != HTTP_NOT_FOUND;
}

int ctl_client_errno(const struct ctl_client *c)
{
    return c->os_errno;
}

const char *ctl_client_detail(const struct ctl_client *c)
{
    return c->detail;
}

const char *ctl_client_version(void)
{
    return curl_version_info(CURLVERSION_NOW)->version;
}
