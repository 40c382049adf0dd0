/*
 * handlers: what they keep is counted as bytes that wait, known to whoever looks for the one to
 * close, and given back.
 */
#include <unistd.h>

#include "base/clock.h"
#include "handlers/pipeline_template.h"
#include "handlers/proxy_protocol.h"
#include "net/memory_account.h"
#include "service/echo.h"
#include "support/executor_runner.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define THREADS 2

/* Who keeps what comes first, until the second comes. */
enum keeper { FRAME, EXECUTOR, FAULT, PROXY_PROTOCOL, KEEPERS };

static const struct {
    const char *first, *second, *echo;
} texts[KEEPERS] = {
    [FRAME] = {"\1\5he", "llo", "\1\5hello"},
    [EXECUTOR] = {"hello", "", "hello"},
    [FAULT] = {"hello", "", "hello"},
    [PROXY_PROTOCOL] = {"PROXY TCP4 192.0.2.1 198.51", ".100.1 56324 443\r\nhello", "hello"},
};

static struct host host;
static struct executor *e;
static struct tasks_block block[THREADS];
static struct memory_account buffered;
static atomic_uint told;
static struct cidr trusted;
static const struct proxy_protocol_conf proxies = {
    .mode = PROXY_PROTOCOL_REQUIRED, .trusted = {&trusted, 1}, .timeout_ns = 3600 * NS_PER_S};
static struct proxy_protocol_gate gate = {.conf = &proxies, .listener = "test"};

static void on_over(void *cookie)
{
    (void)cookie;
    atomic_fetch_add(&told, 1);
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    ck_assert_int_eq(cidr_parse(&trusted, "127.0.0.0/8"), 0);
    host_open(&host, &echo_ops, NULL);
    atomic_store(&told, 0);
    buffered = (struct memory_account){.max_bytes = 0, .over = on_over};
    host.owner.net->buffered = &buffered;
    e = executor_runner_create(THREADS, 64);
}

static void teardown(void)
{
    host_abort(&host, SESSION_DRAIN);
    UNTIL(atomic_load(&host.ended) == atomic_load(&host.adopted));
    executor_runner_end(e);
    host_close(&host);
    executor_runner_destroy(e);
    ck_assert_int_eq(atomic_load(&buffered.bytes), 0);
}

/* A client of which something is kept. */
static int begin(int keeper, int64_t delay_ns)
{
    int client;

    if (keeper == FRAME) {
        /* the field is 261 with its high byte, so the adjustment takes 256 off again */
        host.pipeline.frame.decoder = (struct frame_decoder_conf){
            .max_length = 1000, .length_width = 2, .length_adjustment = -256};
        host_pipeline(&host, "frame", NULL);
    } else if (keeper == EXECUTOR) {
        for (int i = 0; i < THREADS; i++)
            executor_runner_block(e, &block[i]);
        host_pipeline(&host, "executor", e);
    } else if (keeper == FAULT) {
        host.pipeline.fault = (struct fault_handler_conf){.delay_ns = delay_ns, .percent = 100};
        ck_assert_int_eq(pipeline_template_create(&host.plan, &host.pipeline, NULL, NULL), 0);
        host.service.pipeline = host.plan;
    } else {
        host.service.proxies = &gate;
    }
    client = host_client(&host);
    sockets_say(client, texts[keeper].first);
    UNTIL(atomic_load(&told) == 1);
    return client;
}

static void unblock(int keeper)
{
    for (int i = 0; keeper == EXECUTOR && i < THREADS; i++)
        tasks_block_end(&block[i]);
}

static void ask_held(void *arg)
{
    *(size_t *)arg = session_held_bytes(LIST_ENTRY(host.sessions.next, struct session, link));
}

GROUP(held, setup, teardown);

TEST_EACH(held, held_bytes_are_charged_and_released_when_the_session_is_aborted, KEEPERS)
{
    int client = begin(_i, 3600 * NS_PER_S);
    size_t held;

    loop_runner_call(host.loop, ask_held, &held);
    ck_assert_uint_gt(held, 0);
    ck_assert_int_eq((int64_t)held, atomic_load(&buffered.bytes));
    host_abort(&host, SESSION_LIMIT);
    unblock(_i);
    UNTIL(atomic_load(&buffered.bytes) == 0);
    close(client);
}

TEST_EACH(held, held_bytes_are_charged_until_they_are_passed_on, KEEPERS)
{
    int client = begin(_i, 10 * NS_PER_MS);

    unblock(_i);
    sockets_say(client, texts[_i].second);
    sockets_hear(client, texts[_i].echo);
    UNTIL(atomic_load(&buffered.bytes) == 0);
    close(client);
}
