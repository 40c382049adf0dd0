/* option/option_need: an option that has no effect is refused, by its line. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/must.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

#define ECHO "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"
#define PROXY                                                                        \
    "[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nupstream = u\n[upstream u]" \
    "\nserver.a = 127.0.0.1:9\n"
#define FRAME ECHO "pipeline = frame\n"

#define NO_FRAME       "needs the handler frame ("
#define NO_IDLE        "needs the handler idle ("
#define NO_EXECUTOR    "needs the handler executor ("
#define NO_FILE        "has no effect without a unix socket ("
#define NO_HEADER      "has no effect: no PROXY header is read ("
#define NO_FAULT       "has no effect without a fault ("
#define NO_LOG         "has no effect without an access log ("
#define NO_TLS         "has no effect without TLS ("
#define NO_CERTIFICATE "has no effect without a certificate ("
#define NO_VERIFY      "has no effect with verify = off"
#define NO_EJECTION    "has no effect without ejection ("
#define NO_HTTP_CHECKS "has no effect without HTTP checks ("
#define NO_CHECKS      "has no effect without health checks ("
#define NO_VERDICTS    "has no effect without health checks or agents ("
#define BY_LENGTH      "needs frame_by = length"
#define BY_TEXT_LENGTH "needs frame_by = text_length"
#define BY_DELIMITER   "needs frame_by = delimiter"

/* Lines before the option, the option as it is set, and how the problem begins. */
static const struct {
    const char *before, *key, *value, *problem;
} cases[] = {
    {ECHO, "frame_by", "length", NO_FRAME},
    {ECHO, "frame_max_length", "1k", NO_FRAME},
    {ECHO, "frame_length_offset", "1", NO_FRAME},
    {ECHO, "frame_length_width", "2", NO_FRAME},
    {ECHO, "frame_length_adjustment", "1", NO_FRAME},
    {ECHO, "frame_strip", "1", NO_FRAME},
    {ECHO, "frame_byte_order", "big", NO_FRAME},
    {ECHO, "frame_length_end", ":", NO_FRAME},
    {ECHO, "frame_strip_length", "no", NO_FRAME},
    {ECHO, "frame_delimiter", "line", NO_FRAME},
    {ECHO, "frame_strip_delimiter", "no", NO_FRAME},
    {ECHO, "frame_fail_fast", "yes", NO_FRAME},
    {ECHO, "frame_on_error", "close", NO_FRAME},
    {FRAME "frame_by = delimiter\n", "frame_length_offset", "0", BY_LENGTH},
    {FRAME "frame_by = delimiter\n", "frame_length_width", "4", BY_LENGTH},
    {FRAME "frame_by = delimiter\n", "frame_length_adjustment", "0", BY_LENGTH},
    {FRAME "frame_by = delimiter\n", "frame_strip", "0", BY_LENGTH},
    {FRAME "frame_by = delimiter\n", "frame_byte_order", "big", BY_LENGTH},
    {FRAME "frame_by = length\n", "frame_length_end", ":", BY_TEXT_LENGTH},
    {FRAME "frame_by = length\n", "frame_strip_length", "no", BY_TEXT_LENGTH},
    {FRAME "frame_by = length\n", "frame_delimiter", "line", BY_DELIMITER},
    {FRAME "frame_by = length\n", "frame_strip_delimiter", "no", BY_DELIMITER},
    {ECHO, "tls_start", "postgres", NO_TLS},
    {ECHO, "handshake_timeout", "1s", NO_TLS},
    {PROXY, "tls_name", "a.example", NO_TLS},
    {ECHO "[tls t]\n", "key", "/k", NO_CERTIFICATE},
    {ECHO "[tls t]\n", "unknown_name", "reject", NO_CERTIFICATE},
    {ECHO "[tls t]\nverify = off\n", "ca", "/c", NO_VERIFY},
    {ECHO "[tls t]\nverify = off\n", "client_ca", "/c", NO_VERIFY},
    {ECHO "[tls t]\n", "client_crl", "/c", "has no effect without client_ca"},
    {ECHO, "idle_read", "1s", NO_IDLE},
    {ECHO, "idle_write", "1s", NO_IDLE},
    {ECHO, "idle_all", "1s", NO_IDLE},
    {ECHO, "idle_action", "close", NO_IDLE},
    {ECHO, "executor_delay", "1ms", NO_EXECUTOR},
    {ECHO, "unix_mode", "600", NO_FILE},
    {ECHO, "unix_user", "root", NO_FILE},
    {ECHO, "unix_group", "root", NO_FILE},
    {ECHO, "trusted_proxies", "127.0.0.1", NO_HEADER},
    {ECHO, "proxy_header_timeout", "5s", NO_HEADER},
    {ECHO, "fault_drop_as", "reset", NO_FAULT},
    {ECHO, "fault_percent", "50", NO_FAULT},
    {ECHO, "fault_clients", "127.0.0.1", NO_FAULT},
    {ECHO, "fault_seed", "1", NO_FAULT},
    {ECHO, "access_log_format", "json", NO_LOG},
    {ECHO, "access_log_interval", "1s", NO_LOG},
    {PROXY, "hash_key", "sni", "has no effect: balance does not hash ("},
    {PROXY, "hash_server", "address", "has no effect: balance does not hash ("},
    {PROXY, "hash_balance_factor", "150", "has no effect: balance does not hash ("},
    {PROXY "eject_failures = 0\n", "eject_resets", "yes", NO_EJECTION},
    {PROXY "eject_failures = 0\n", "eject_time", "1s", NO_EJECTION},
    {PROXY "eject_failures = 0\n", "eject_time_max", "1m", NO_EJECTION},
    {PROXY "eject_failures = 0\n", "eject_max_percent", "10", NO_EJECTION},
    {PROXY, "check_tls", "off", NO_CHECKS},
    {PROXY, "check_tls_name", "a", NO_CHECKS},
    {PROXY "check = tcp\n", "check_tls_name", "a", "has no effect without TLS in checks ("},
    {PROXY "check = tcp\ncheck_tls = off\n", "check_tls_name", "a",
     "has no effect without TLS in checks ("},
    {PROXY, "check_http", "GET /", NO_CHECKS},
    {PROXY "check = tcp\n", "check_http", "GET /", NO_HTTP_CHECKS},
    {PROXY "check = tcp\n", "check_http_host", "a", NO_HTTP_CHECKS},
    {PROXY "check = tls\ncheck_tls = t\n", "check_http_header.a", "b", NO_HTTP_CHECKS},
    {PROXY "check = tcp\n", "check_http_status", "200", NO_HTTP_CHECKS},
    {PROXY "check = http\n", "check_send", "PING", "has no effect with this check ("},
    {PROXY, "check_step.1", "send x", NO_CHECKS},
    {PROXY "check = tcp\n", "check_step.1", "send x", "has no effect without checks in steps ("},
    {PROXY "check = redis\n", "check_step.1", "send x", "has no effect without checks in steps ("},
    {PROXY "check = redis\n", "check_user", "x", "has no effect with this check ("},
    {PROXY "check = redis\n", "check_expect", "x", "has no effect with this check ("},
    {PROXY, "check_send", "PING", NO_CHECKS},
    {PROXY, "check_expect", "PONG", NO_CHECKS},
    {PROXY, "check_interval", "1s", NO_CHECKS},
    {PROXY, "check_fast_interval", "1s", NO_CHECKS},
    {PROXY, "check_jitter", "10", NO_CHECKS},
    {PROXY, "check_timeout", "1s", NO_CHECKS},
    {PROXY, "rise", "2", NO_CHECKS},
    {PROXY, "fall", "3", NO_CHECKS},
    {PROXY, "initial_state", "up", NO_CHECKS},
    {PROXY, "on_down", "keep", NO_VERDICTS},
    {PROXY, "on_up", "keep", NO_VERDICTS},
    {PROXY, "on_down_rate", "10", NO_VERDICTS},
    {PROXY, "spare_max_age", "1s", "has no effect without spare connections ("},
    {PROXY, "send_proxy_tlvs", "unique-id", "has no effect: no version 2 PROXY header is sent ("},
};

GROUP(options, text_file_enter, config_file_leave);

TEST_EACH(options, option_without_effect_is_refused, ARRAY_LEN(cases))
{
    char text[512], problem[256];

    snprintf(text, sizeof(text), "%s%s = %s\n", cases[_i].before, cases[_i].key, cases[_i].value);
    snprintf(problem, sizeof(problem), "] %s: %s", cases[_i].key, cases[_i].problem);
    ck_assert_int_eq(config_file_load_text(text), -EINVAL);
    ck_assert_msg(strstr(config_file.problems, problem) != NULL, "%s: %s", cases[_i].key,
                  config_file.problems);
}
