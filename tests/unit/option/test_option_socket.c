/*
 * option/option_socket, and the sizes and yes or no of sockets: what is taken, and what is refused
 * with which words.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "option/option.h"
#include "listen/listener.h"
#include "support/suite.h"
#include "upstream/upstream.h"

static struct listener_conf listener;
static struct upstream_conf upstream;
static struct arena *arena;
static struct option_value v;

static void setup(void)
{
    ck_assert_int_eq(arena_create(&arena), 0);
}

static void teardown(void)
{
    arena_release(arena);
}

/* What option_set() says of ${text}; the structs are as it left them. */
static int try(enum option_section section, const char *key, const char *text)
{
    const struct option *o = option_find(section, key);

    ck_assert_ptr_nonnull(o);
    v = (struct option_value){.key = key, .text = text, .arena = arena};
    if (section == OPTION_LISTEN)
        v.conf = &listener;
    else
        v.conf = &upstream;
    return option_set(o, &v);
}

static void refused(enum option_section section, const char *key, const char *text, const char *why)
{
    ck_assert_int_eq(try(section, key, text), -EINVAL);
    ck_assert_msg(strstr(v.problem, why) != NULL, "%s: %s", text, v.problem);
}

static void keepalive_is(unsigned idle_s, unsigned interval_s, unsigned count)
{
    const struct sock_keepalive *k = &listener.socket.keepalive;

    ck_assert_uint_eq(k->idle_s, idle_s);
    ck_assert_uint_eq(k->interval_s, interval_s);
    ck_assert_uint_eq(k->count, count);
}

GROUP(socket, setup, teardown);

TEST(socket, keepalive_is_off_or_up_to_three_items)
{
    ck_assert_int_eq(try(OPTION_LISTEN, "keepalive", "60s, 10s ,6"), 0);
    keepalive_is(60, 10, 6);
    ck_assert_int_eq(try(OPTION_LISTEN, "keepalive", "2m,1000ms"), 0);
    keepalive_is(120, 1, 0);
    ck_assert_int_eq(try(OPTION_LISTEN, "keepalive", "32767s,1s,127"), 0);
    keepalive_is(32767, 1, 127);
    ck_assert_int_eq(try(OPTION_LISTEN, "keepalive", "9h"), 0);
    keepalive_is(32400, 0, 0);
    ck_assert_int_eq(try(OPTION_LISTEN, "keepalive", "off"), 0);
    keepalive_is(0, 0, 0);
}

TEST(socket, a_bad_keepalive_is_refused_and_changes_nothing)
{
    ck_assert_int_eq(try(OPTION_LISTEN, "keepalive", "7s,7s,7"), 0);
    refused(OPTION_LISTEN, "keepalive", "60", "not a number with a unit");
    refused(OPTION_LISTEN, "keepalive", "on", "not a number with a unit");
    refused(OPTION_LISTEN, "keepalive", "60s,", "not a number with a unit");
    refused(OPTION_LISTEN, "keepalive", "0", "1s to 32767s");
    refused(OPTION_LISTEN, "keepalive", "999ms", "1s to 32767s");
    refused(OPTION_LISTEN, "keepalive", "32768s", "1s to 32767s");
    refused(OPTION_LISTEN, "keepalive", "365000d", "1s to 32767s");
    refused(OPTION_LISTEN, "keepalive", "99999999999999999999d", "1s to 32767s");
    refused(OPTION_LISTEN, "keepalive", "1500ms", "whole seconds");
    refused(OPTION_LISTEN, "keepalive", "60s,10s,0", "1 to 127");
    refused(OPTION_LISTEN, "keepalive", "60s,10s,128", "1 to 127");
    refused(OPTION_LISTEN, "keepalive", "60s,10s,6s", "1 to 127");
    refused(OPTION_LISTEN, "keepalive", "60s,10s,6,1", "too many");
    refused(OPTION_LISTEN, "keepalive", "off,10s", "not a number with a unit");
    keepalive_is(7, 7, 7);
}

TEST(socket, listeners_and_upstreams_have_the_same_options)
{
    static const char *const keys[] = {"keepalive", "user_timeout", "nodelay", "send_buffer",
                                       "receive_buffer"};
    static const char *const texts[] = {"5s,4s,3", "1500us", "no", "64k", "1g"};
    struct sock_options *options = &upstream.connect.sock.options;

    listener.socket.nodelay = options->nodelay = true;
    for (unsigned i = 0; i < ARRAY_LEN(keys); i++) {
        ck_assert_int_eq(try(OPTION_LISTEN, keys[i], texts[i]), 0);
        ck_assert_int_eq(try(OPTION_UPSTREAM, keys[i], texts[i]), 0);
    }
    ck_assert_uint_eq(options->keepalive.count, 3);
    ck_assert_int_eq(options->user_timeout_ns, 1500 * NS_PER_US);
    ck_assert(!options->nodelay);
    ck_assert_uint_eq(options->send_buffer_bytes, 65536);
    ck_assert_uint_eq(options->receive_buffer_bytes, 1U << 30);
    ck_assert_mem_eq(&listener.socket.keepalive, &options->keepalive, sizeof(options->keepalive));
    ck_assert_int_eq(listener.socket.user_timeout_ns, options->user_timeout_ns);
    ck_assert(!listener.socket.nodelay);
    ck_assert_uint_eq(listener.socket.send_buffer_bytes, 65536);
    ck_assert_uint_eq(listener.socket.receive_buffer_bytes, 1U << 30);
}

TEST(socket, invalid_size_or_boolean_is_refused)
{
    refused(OPTION_LISTEN, "nodelay", "maybe", "neither");
    refused(OPTION_LISTEN, "send_buffer", "many", "not a number of bytes");
    refused(OPTION_LISTEN, "send_buffer", "64kb", "not a number of bytes");
    refused(OPTION_LISTEN, "send_buffer", "4095", "out of range");
    refused(OPTION_LISTEN, "receive_buffer", "2g", "out of range");
}

TEST(socket, happy_eyeballs_delay_is_0_or_in_the_range_of_the_rfc)
{
    ck_assert_int_eq(try(OPTION_UPSTREAM, "happy_eyeballs_delay", "0"), 0);
    ck_assert_int_eq(upstream.connect.attempt_delay_ns, 0);
    ck_assert_int_eq(try(OPTION_UPSTREAM, "happy_eyeballs_delay", "300ms"), 0);
    ck_assert_int_eq(upstream.connect.attempt_delay_ns, 300 * NS_PER_MS);
    refused(OPTION_UPSTREAM, "happy_eyeballs_delay", "9ms", "out of range");
    refused(OPTION_UPSTREAM, "happy_eyeballs_delay", "3s", "out of range");
}

static void source_is(const struct address *source, const char *text)
{
    char is[ADDRESS_TEXT_BYTES];

    ck_assert_str_eq(address_format(is, sizeof(is), source), text);
}

TEST(socket, sources_are_addresses_of_either_family)
{
    const struct sock_connect_conf *conf = &upstream.connect.sock;

    ck_assert_int_eq(try(OPTION_UPSTREAM, "source_address", "192.0.2.1"), 0);
    ck_assert_uint_eq(conf->sources->n, 1);
    source_is(&conf->sources->list[0], "192.0.2.1:0");
    ck_assert_int_eq(try(OPTION_UPSTREAM, "source_address", "[::1] , 127.0.0.1,127.0.0.2"), 0);
    ck_assert_uint_eq(conf->sources->n, 3); /* the whole value counts */
    source_is(&conf->sources->list[0], "[::1]:0");
    source_is(&conf->sources->list[2], "127.0.0.2:0");
    ck_assert_int_eq(try(OPTION_UPSTREAM, "source_address", "[::ffff:127.0.0.2]"), 0);
    source_is(&conf->sources->list[0], "127.0.0.2:0");
    ck_assert_int_eq(try(OPTION_UPSTREAM, "source_address", ""), 0);
}

TEST(socket, at_most_64_sources_are_taken)
{
    char list[1024] = "127.0.0.1";

    for (unsigned i = 2; i <= 64; i++)
        snprintf(list + strlen(list), sizeof(list) - strlen(list), ",127.0.0.%u", i);
    ck_assert_int_eq(try(OPTION_UPSTREAM, "source_address", list), 0);
    ck_assert_uint_eq(upstream.connect.sock.sources->n, 64);
    strcat(list, ",127.0.0.65");
    refused(OPTION_UPSTREAM, "source_address", list, "too many addresses, at most 64");
}

TEST(socket, source_ports_are_a_range)
{
    const struct sock_connect_conf *conf = &upstream.connect.sock;
    static const char *const bad[] = {"20000",       "20000-",        "-20000",       "1023-2000",
                                      "20000-65536", "20000 - 20001", "20000-20001-", "a-b"};

    ck_assert_int_eq(try(OPTION_UPSTREAM, "source_ports", "1024-65535"), 0);
    ck_assert_uint_eq(conf->ports->first, 1024);
    ck_assert_uint_eq(conf->ports->n, 64512);
    ck_assert_int_eq(try(OPTION_UPSTREAM, "source_ports", "20000-20000"), 0);
    ck_assert_uint_eq(conf->ports->n, 1);
    ck_assert_int_eq(try(OPTION_UPSTREAM, "source_ports", ""), 0);
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
        refused(OPTION_UPSTREAM, "source_ports", bad[i],
                "is not a range of ports from 1024 to 65535");
    refused(OPTION_UPSTREAM, "source_ports", "20001-20000", "the range '20001-20000' goes down");
}

TEST(socket, a_bad_source_is_refused_and_changes_nothing)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"192.0.2.1:80", "has a port"},
        {"[2001:db8::1]:80", "has a port"},
        {"192.0.2.1,192.0.2.1", "'192.0.2.1' is there twice"},
        {"[::1],127.0.0.1,::1", "'::1' is there twice"},
        {"192.0.2.1,", "missing beside a comma"},
        {"localhost", "host name"},
        {"db.example.com", "host name"},
        {"224.0.0.1", "a multicast or broadcast address"},
        {"239.255.255.255", "a multicast or broadcast address"},
        {"255.255.255.255", "a multicast or broadcast address"},
        {"ff02::1", "a multicast or broadcast address"},
        {"127.0.0.1, fe80::1", "'fe80::1' is an address of a link, and needs a zone such as %eth0"},
        {"*", "not the address of a host"},
        {"0.0.0.0", "not the address of a host"},
        {"[::]", "not the address of a host"},
        {"/run/x.sock", "not the address of a host"},
        {"@name", "not the address of a host"},
        {"2001:db8::g", "not the address of a host"},
        {"192.0.2.256", "not the address of a host"},
        {"192.0.2.1 192.0.2.2", "not the address of a host"},
    };
    char longest[200];

    ck_assert_int_eq(try(OPTION_UPSTREAM, "source_address", "fe80::1%lo"), 0);
    ck_assert_int_eq(try(OPTION_UPSTREAM, "source_address", "223.255.255.255"), 0);
    ck_assert_int_eq(try(OPTION_UPSTREAM, "source_address", "127.0.0.9"), 0);
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
        refused(OPTION_UPSTREAM, "source_address", bad[i].text, bad[i].why);
    memset(longest, '1', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    refused(OPTION_UPSTREAM, "source_address", longest, "not the address of a host");
    source_is(&upstream.connect.sock.sources->list[0], "127.0.0.9:0");
}

TEST(socket, a_mark_is_decimal_or_hexadecimal)
{
    ck_assert_int_eq(try(OPTION_UPSTREAM, "mark", "4294967295"), 0);
    ck_assert_uint_eq(upstream.connect.sock.options.mark, UINT32_MAX);
    ck_assert_int_eq(try(OPTION_UPSTREAM, "mark", "0xfFfF"), 0);
    ck_assert_uint_eq(upstream.connect.sock.options.mark, 0xffff);
    ck_assert_int_eq(try(OPTION_LISTEN, "mark", "010"), 0);
    ck_assert_uint_eq(listener.socket.mark, 10);
    refused(OPTION_LISTEN, "mark", "4294967296", "out of range");
    refused(OPTION_LISTEN, "mark", "0x100000000", "out of range");
    refused(OPTION_LISTEN, "mark", "99999999999999999999999", "out of range");
    refused(OPTION_LISTEN, "mark", "0x", "not a number");
    refused(OPTION_LISTEN, "mark", "-1", "not a number");
    refused(OPTION_LISTEN, "mark", "7f", "not a number");
    refused(OPTION_LISTEN, "mark", "7 8", "not a number");
    ck_assert_uint_eq(listener.socket.mark, 10);
}

TEST(socket, a_dscp_is_a_number_or_one_of_the_names)
{
    ck_assert_int_eq(try(OPTION_LISTEN, "dscp", "63"), 0);
    ck_assert_uint_eq(listener.socket.dscp, 63);
    ck_assert_int_eq(try(OPTION_LISTEN, "dscp", "af43"), 0);
    ck_assert_uint_eq(listener.socket.dscp, 38);
    ck_assert_int_eq(try(OPTION_UPSTREAM, "dscp", "cs6"), 0);
    ck_assert_uint_eq(upstream.connect.sock.options.dscp, 48);
    refused(OPTION_LISTEN, "dscp", "64", "out of range");
    refused(OPTION_LISTEN, "dscp", "0xb8", "0xb8");
    refused(OPTION_LISTEN, "dscp", "af1 1", "'af1 1'");
    refused(OPTION_LISTEN, "dscp", "af 11", "'af 11'");
    refused(OPTION_LISTEN, "dscp", "cs 1", "'cs 1'");
    refused(OPTION_LISTEN, "dscp", "cs8", "'cs8'");
    refused(OPTION_LISTEN, "dscp", "af111", "'af111'");
    refused(OPTION_LISTEN, "dscp", "cs8", "not a DSCP");
    refused(OPTION_LISTEN, "dscp", "af14", "not a DSCP");
    refused(OPTION_LISTEN, "dscp", "af111", "not a DSCP");
    ck_assert_uint_eq(listener.socket.dscp, 38);
}

TEST(socket, names_of_interfaces_and_congestion_controls_have_at_most_15_characters)
{
    ck_assert_int_eq(try(OPTION_LISTEN, "interface", "eth0.100-x_23456"), -EINVAL);
    ck_assert_int_eq(try(OPTION_LISTEN, "interface", "eth0.100-x_2345"), 0);
    ck_assert_str_eq(listener.socket.interface, "eth0.100-x_2345");
    ck_assert_int_eq(try(OPTION_LISTEN, "interface", "lo"), 0);
    ck_assert_str_eq(listener.socket.interface, "lo");
    refused(OPTION_LISTEN, "interface", "a b", "not a name");
    refused(OPTION_LISTEN, "interface", "eth0:1", "not a name");
    refused(OPTION_LISTEN, "interface", "..", "not a name");
    ck_assert_int_eq(try(OPTION_UPSTREAM, "congestion", "bbr"), 0);
    ck_assert_str_eq(upstream.connect.sock.options.congestion, "bbr");
    refused(OPTION_UPSTREAM, "congestion", "../bbr", "not a name");
    refused(OPTION_UPSTREAM, "congestion", "cubic,bbr", "not a name");
}

TEST(socket, segment_sizes_queues_and_seconds_are_those_that_the_kernel_takes)
{
    ck_assert_int_eq(try(OPTION_LISTEN, "mss", "88"), 0);
    ck_assert_uint_eq(listener.socket.mss_bytes, 88);
    refused(OPTION_LISTEN, "mss", "87", "out of range");
    refused(OPTION_LISTEN, "mss", "32768", "out of range");
    ck_assert_int_eq(try(OPTION_LISTEN, "mss", "0"), 0);
    ck_assert_int_eq(try(OPTION_LISTEN, "fastopen", "65535"), 0);
    ck_assert_uint_eq(listener.socket.fastopen, 65535);
    refused(OPTION_LISTEN, "fastopen", "on", "not a plain decimal number");
    ck_assert_int_eq(try(OPTION_LISTEN, "defer_accept", "1h"), 0);
    ck_assert_uint_eq(listener.socket.defer_accept_s, 3600);
    refused(OPTION_LISTEN, "defer_accept", "1500ms", "whole seconds");
    refused(OPTION_LISTEN, "defer_accept", "2h", "not 1s to 3600s");
    refused(OPTION_LISTEN, "defer_accept", "on", "not a number with a unit");
    ck_assert_int_eq(try(OPTION_LISTEN, "defer_accept", "0"), 0);
    ck_assert_uint_eq(listener.socket.defer_accept_s, 0);
}

TEST(socket, a_namespace_is_a_name_or_an_absolute_path)
{
    ck_assert_int_eq(try(OPTION_LISTEN, "namespace", "red"), 0);
    ck_assert_str_eq(listener.socket.namespace, "red");
    ck_assert_int_eq(try(OPTION_UPSTREAM, "namespace", "/proc/7/ns/net"), 0);
    ck_assert_str_eq(upstream.connect.sock.options.namespace, "/proc/7/ns/net");
    refused(OPTION_LISTEN, "namespace", "a/b", "neither a name nor an absolute path");
    refused(OPTION_LISTEN, "namespace", ".", "neither a name nor an absolute path");
    refused(OPTION_UPSTREAM, "namespace", "/run/netns/", "not the path of a file");
    ck_assert_str_eq(listener.socket.namespace, "red");
}
