/* option/option_routes, option/option_route: each problem of a route is told by its line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/must.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

#define PROXY  "[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nupstream = u\n"
#define ROUTE  PROXY "route.x = "
#define SERVER "[upstream u]\nserver.a = 127.0.0.1:9\n"

/* Text in the file, and the beginning of the only problem. */
static const struct {
    const char *text, *problem;
} broken[] = {
    {ROUTE "sni:a -> \n" SERVER, "t.ini:5: [listen p] route.x: no '-> UPSTREAM' at the end ("},
    {ROUTE "sni:a\n" SERVER, "t.ini:5: [listen p] route.x: no '-> UPSTREAM' at the end ("},
    {ROUTE "sni:a -> u u\n" SERVER, "t.ini:5: [listen p] route.x: 'u' follows the upstream ("},
    {ROUTE "-> u\n" SERVER,
     "t.ini:5: [listen p] route.x: no condition, such as sni: or src: (for all other clients set "},
    {ROUTE "a -> u\n" SERVER, "t.ini:5: [listen p] route.x: 'a' is not known (sni:NAME, "},
    {ROUTE "sni:* -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: '*' is not a host name, or '*.' and a host name ("},
    {ROUTE "alpn: -> u\n" SERVER, "t.ini:5: [listen p] route.x: a protocol has 1 to 255 bytes"},
    {ROUTE "sni:a sni:A -> u\n" SERVER, "t.ini:5: [listen p] route.x: 'A' is given twice ("},
    {ROUTE "alpn:h2 alpn:h2 -> u\n" SERVER, "t.ini:5: [listen p] route.x: 'h2' is given twice ("},
    {ROUTE "sni:a -> back\n" SERVER, "t.ini:5: [listen p] route.x: there is no [upstream back] ("},
    {ROUTE "sni:a -> u\nroute.y = sni:b sni:a -> u\n" SERVER,
     "t.ini:6: [listen p] route.y: has no effect for sni:a: route.x of line 5 comes first ("},
    {ROUTE "alpn:a alpn:b -> u\nroute.y = alpn:b -> u\n" SERVER,
     "t.ini:6: [listen p] route.y: has no effect for its protocols: route.x of line 5 comes first"},
    {ROUTE "sni:a -> reject\n" SERVER, "t.ini:5: [listen p] route.x: there is no [upstream reject] "
                                       "(the NAME of an [upstream NAME], or refuse)"},
    {ROUTE "sni:a -> refuse\n" SERVER "[upstream refuse]\nserver.a = @x\n",
     "t.ini:5: [listen p] route.x: 'refuse' would turn clients away, but there is an [upstream "
     "refuse] (give that another name)"},
    {ROUTE "sni:a -> refuse u\n" SERVER, "t.ini:5: [listen p] route.x: 'u' follows the upstream ("},
    {ROUTE "src:10.0.0.1/8 -> u\n" SERVER, "t.ini:5: [listen p] route.x: '10.0.0.1/8' has bits set "
                                           "after its prefix; did you mean 10.0.0.0/8? ("},
    {ROUTE "src:10.0.0.0/33 -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: the prefix of '10.0.0.0/33' is longer than the address ("},
    {ROUTE "src: -> u\n" SERVER, "t.ini:5: [listen p] route.x: '' is not a block of addresses ("},
    {ROUTE "src:10.0.0.0/8 src:10.1.0.0/16 -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: '10.1.0.0/16' is in another src: of the route, or has one in it"},
    {ROUTE "src:::1 src:all -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: 'all' is in another src: of the route, or has one in it ("},
    {ROUTE "tls:1.1 -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: tls: has no '1.1' (no, 1.2 or 1.3) (sni:NAME, "},
    {ROUTE "tls: -> u\n" SERVER, "t.ini:5: [listen p] route.x: tls: has no '' (no, 1.2 or 1.3) ("},
    {ROUTE "tls:no tls:no -> u\n" SERVER, "t.ini:5: [listen p] route.x: tls:no is given twice ("},
    {ROUTE "tls:no sni:a -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: tls:no never holds together with sni: ("},
    {ROUTE "tls:1.2 tls:no alpn:a -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: tls:no never holds together with alpn: ("},
    {ROUTE "first: -> u\n" SERVER, "t.ini:5: [listen p] route.x: first: has 0 bytes (1 to 256) ("},
    {ROUTE "first:\"\" -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: first: has 0 bytes (1 to 256) ("},
    {ROUTE "first:SSH- -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: 'SSH-' is neither a text in double quotes, as in first:\"SSH-\", "
     "nor pairs of hex digits ("},
    {ROUTE "first:160 -> u\n" SERVER, "t.ini:5: [listen p] route.x: '160' is neither a text in "},
    {ROUTE "first:\"a\\q\" -> u\n" SERVER, "t.ini:5: [listen p] route.x: '\\q' is no escape ("},
    {ROUTE "first:\"a -> u\n" SERVER, "t.ini:5: [listen p] route.x: a quote inside the value ("},
    {ROUTE "'first:\"a -> u'\n" SERVER,
     "t.ini:5: [listen p] route.x: a quote of first: is missing, or followed by a text ("},
    {ROUTE "first:\"a\"b -> u\n" SERVER, "t.ini:5: [listen p] route.x: a quote inside the value ("},
    {ROUTE "first:\"SSH-\" first:\"SSH-2\" -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: '\"SSH-2\"' begins as another first: of the route ("},
    {ROUTE "sni:a first:\"SSH-\" -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: first: 1 of the route does not begin as TLS (1603), so it never "
     "holds together with sni: ("},
    {ROUTE "tls:1.2 first:160302 first:1604 -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: first: 2 of the route does not begin as TLS (1603), so it never "
     "holds together with tls: ("},
    {ROUTE "tls:no first:160301 -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: first: 1 of the route begins as TLS (1603), so it never holds "
     "together with tls:no ("},
    {ROUTE "req.ssl_sni:a -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: 'req.ssl_sni:a' is not known; here it is 'sni:NAME' ("},
    {ROUTE "$ssl_preread_protocol=TLSv1.3 -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: '$ssl_preread_protocol=TLSv1.3' is not known; here it is "
     "'tls:1.2' ("},
    {ROUTE "payload(0,4) -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: 'payload(0,4)' is not known; here it is 'first:\"TEXT\"' ("},
    {ROUTE "src:all -> u\nroute.y = first:\"a\" -> u\n" SERVER,
     "t.ini:6: [listen p] route.y: has no effect: route.x of line 5 comes first (each name once, or "
     "with other conditions)"},
    {ROUTE "src:10.0.0.0/8 -> u\nroute.y = tls:no src:10.1.0.0/16 -> refuse\n" SERVER,
     "t.ini:6: [listen p] route.y: has no effect: route.x of line 5 comes first ("},
    {ROUTE "first:\"SSH-\" -> u\nroute.y = first:\"SSH-1\" -> refuse\n" SERVER,
     "t.ini:6: [listen p] route.y: has no effect: route.x of line 5 comes first ("},
    {ROUTE "tls:1.2 tls:no -> u\nroute.y = tls:1.2 src:::1 -> u\n" SERVER,
     "t.ini:6: [listen p] route.y: has no effect: route.x of line 5 comes first ("},
    {ROUTE "sni:a src:::/0 -> u\nroute.y = sni:a sni:b src:::1 -> u\n" SERVER,
     "t.ini:6: [listen p] route.y: has no effect for sni:a: route.x of line 5 comes first ("},
    {ROUTE "tls:1.2 -> refuse\non_deny = close\n"
           "[upstream v]\nserver.a = @x\n",
     "t.ini:4: [listen p] upstream: there is no [upstream u] ("},
    {ROUTE "sni:a -> u 90%\n" SERVER,
     "t.ini:5: [listen p] route.x: the shares add up to 90.00%, not to 100% ("},
    {ROUTE "sni:a -> u 90%, v 10.01%\n" SERVER,
     "t.ini:5: [listen p] route.x: the shares add up to 100.01%, not to 100% "
     "("},
    {ROUTE "sni:a -> u 50%, u 50%\n" SERVER, "t.ini:5: [listen p] route.x: 'u' is given twice ("},
    {ROUTE "sni:a -> u 50%, v\n" SERVER,
     "t.ini:5: [listen p] route.x: 'v' has no share, as in v 10% ("},
    {ROUTE "sni:a -> u 0%, v 100%\n" SERVER,
     "t.ini:5: [listen p] route.x: '0%' is not a share from 0.01% to 100% ("},
    {ROUTE "sni:a -> u 0.001%, v 99%\n" SERVER,
     "t.ini:5: [listen p] route.x: '0.001%' is not a share from 0.01% to 100% "
     "("},
    {ROUTE "sni:a -> u 101%\n" SERVER,
     "t.ini:5: [listen p] route.x: '101%' is not a share from 0.01% to 100% ("},
    {ROUTE "sni:a -> u -1%\n" SERVER,
     "t.ini:5: [listen p] route.x: '-1%' is not a share from 0.01% to 100% ("},
    {ROUTE "sni:a -> u 50.%, v 50%\n" SERVER,
     "t.ini:5: [listen p] route.x: '50.%' is not a share from 0.01% to 100% ("},
    {ROUTE "sni:a -> u 50%, refuse 50%\n" SERVER,
     "t.ini:5: [listen p] route.x: 'refuse' stands alone, without a share ("},
    {ROUTE "sni:a -> u 50%, , v 50%\n" SERVER,
     "t.ini:5: [listen p] route.x: an upstream is missing beside a comma ("},
    {ROUTE "sni:a -> u 50%, v 50%\n" SERVER,
     "t.ini:5: [listen p] route.x: there is no [upstream v] ("},
    {ROUTE "sni:a -> u 50 %\n" SERVER, "t.ini:5: [listen p] route.x: '%' follows the upstream ("},
    {ROUTE "after:200 -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: '200' is not a time from 1ms to "
     "1h, as in after:200ms (sni:NAME, "},
    {ROUTE "after: -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: '' is not a time from 1ms to 1h, "},
    {ROUTE "after:0 -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: '0' is not a time from 1ms to 1h"},
    {ROUTE "after:999us -> u\n" SERVER, "t.ini:5: [listen p] route.x: '999us' is not a time from "},
    {ROUTE "after:2h -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: '2h' is not a time from 1ms to "},
    {ROUTE "after:-1s -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: '-1s' is not a time from 1ms to"},
    {ROUTE "after:1s after:1s -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: after: is given twice ("},
    {ROUTE "WAIT_END -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: 'WAIT_END' is not known; here it is 'after:TIME' ("},
    {ROUTE "after:1s sni:a -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: after: is for clients that send nothing, so it never holds "
     "together with sni: ("},
    {ROUTE "alpn:h2 after:1s -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: after: is for clients that send nothing, so it never holds "
     "together with alpn: ("},
    {ROUTE "first:\"a\" after:1s tls:no -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: after: is for clients that send nothing, so it never holds "
     "together with first: ("},
    {ROUTE "tls:no after:1s -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: after: is for clients that send nothing, so it never holds "
     "together with tls: ("},
    {ROUTE "after:5s -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: after: never holds: client_hello_timeout ends a client that has "
     "sent nothing before (a shorter time, or a longer client_hello_timeout)"},
    {ROUTE "after:1s -> u\nidle_timeout = 1s\n" SERVER,
     "t.ini:5: [listen p] route.x: after: never holds: idle_timeout ends a client that has sent "},
    {ROUTE "after:2s -> u\nmax_lifetime = 1s\n" SERVER,
     "t.ini:5: [listen p] route.x: after: never holds: max_lifetime ends a client that has sent "},
    {ROUTE "after:1s -> u\nconnect_on = first_byte\n" SERVER,
     "t.ini:5: [listen p] route.x: after: never holds with connect_on = first_byte: no server is "
     "connected for a client that has sent nothing (set connect_on = accept)"},
    {ROUTE "after:1s -> u\ntls = t\n" SERVER "[tls t]\ncertificate = /x\n",
     "t.ini:5: [listen p] route.x: after: never holds with tls: all clients begin with TLS ("},
    {ROUTE "after:1s src:10.1.0.0/16 -> u\nroute.y = after:200ms src:10.0.0.0/8 -> u\n" SERVER,
     "t.ini:5: [listen p] route.x: has no effect: route.y of line 6 comes first ("},
    {ROUTE "after:1s -> u\nroute.y = after:1s src:10.0.0.0/8 -> u\n" SERVER,
     "t.ini:6: [listen p] route.y: has no effect: route.x of line 5 comes first ("},
    {ROUTE "src:10.0.0.0/8 -> u\nroute.y = src:10.0.0.0/8 after:1s -> u\n" SERVER,
     "t.ini:6: [listen p] route.y: has no effect: route.x of line 5 comes first ("},
    {PROXY "connect_on = first\n" SERVER,
     "t.ini:5: [listen p] connect_on: 'first' is not known (accept or first_byte)"},
    {"[listen e]\naddress = 127.0.0.1:7\nservice = echo\nconnect_on = first_byte\n",
     "t.ini:4: [listen e] connect_on: has no effect: service = echo connects to no server ("},
    {PROXY "connect_on = first_byte\ntls = t\n" SERVER "[tls t]\ncertificate = /x\n",
     "t.ini:5: [listen p] connect_on: has no effect with tls: a server is connected after the "},
};

/* Routes beside each other that no problem is seen in. */
static const char *const valid[] = {
    "sni:a -> u 100%\n",
    "sni:a src:::1 -> u\nroute.y = sni:a -> refuse\n",
    "src:all -> u\nroute.y = sni:a -> refuse\n",
    "src:0.0.0.0/0 src:::/0 -> u\nroute.y = tls:no -> refuse\n",
    "first:\"SSH-2\" -> u\nroute.y = first:\"SSH-\" -> refuse\n",
    "tls:1.2 tls:no -> u\nroute.y = tls:1.2 tls:1.3 -> refuse\n",
    "tls:no first:16 -> u\nroute.y = first:160301 sni:a tls:1.2 -> refuse\n",
    "src:10.0.0.0/9 -> u\nroute.y = src:10.0.0.0/8 -> refuse\non_deny = close\n",
    "'first:\"a ; b -> c\" -> u'\n",
    "after:1ms -> u\nroute.y = src:10.0.0.0/8 -> refuse\n",
    "tls:no -> u\nroute.y = after:200ms -> refuse\n",
    "first:\"a\" -> u\nroute.y = after:4999ms src:::1 -> refuse\nidle_timeout = 5s\n",
    "after:1s -> u\nroute.y = after:200ms src:10.0.0.0/8 -> u 50%, v 50%\n[upstream v]\n"
    "server.a = @x\n",
};

GROUP(routes, text_file_enter, config_file_leave);

TEST_EACH(routes, problem_has_its_line, ARRAY_LEN(broken))
{
    const char *problem = broken[_i].problem;

    ck_assert_int_eq(config_file_load_text(broken[_i].text), -EINVAL);
    ck_assert_msg(strncmp(config_file.problems, problem, strlen(problem)) == 0, "%s",
                  config_file.problems);
}

TEST_EACH(routes, route_that_can_be_taken_is_valid, ARRAY_LEN(valid))
{
    char text[512];

    snprintf(text, sizeof(text), ROUTE "%s" SERVER, valid[_i]);
    ck_assert_msg(config_file_load_text(text) == 0, "%s", config_file.problems);
}
