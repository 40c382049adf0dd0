/* config/config_check: every problem of a file is told, once and by its line. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "config/config.h"
#include "config/option.h"
#include "support/config_file.h"
#include "support/names.h"
#include "support/text_file.h"
#include "support/suite.h"

#define ECHO   "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"
#define PROXY  "[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nupstream = u\n"
#define ROUTE  PROXY "route.x = "
#define SERVER "[upstream u]\nserver.a = 127.0.0.1:9\n"

/* Text in the file, and the beginning of the only line that is then told. */
static const struct {
    const char *text;
    const char *problem;
} broken[] = {
    {"", "t.ini:0: there is nothing to listen on (at least one [listen NAME])"},
    {"[boss]\nthreads = 2\n", "t.ini:0: there is nothing to listen on "},
    {"[listen e]\nservice = echo\n",
     "t.ini:1: [listen e] address: is missing: addresses to listen on "},
    {"[listen e]\naddress = @x\n", "t.ini:1: [listen e] service: is missing: service for each "
                                   "connection (echo or proxy)"},
    {ECHO "[boss]\nacept_batch = 2\n",
     "t.ini:5: [boss] acept_batch: unknown option (did you mean 'accept_batch'?)"},
    {ECHO "bind = 1\n", "t.ini:4: [listen e] bind: unknown option (here it is 'address')"},
    {ECHO "[upstream u]\nserver.a = 127.0.0.1:9\nleastconn = 1\n",
     "t.ini:6: [upstream u] leastconn: unknown option (here it is 'balance = least_connections')"},
    {ECHO SERVER "balance = leastconn\n",
     "t.ini:6: [upstream u] balance: 'leastconn' is not known; here it is 'least_connections' ("},
    {ECHO "[upstream u]\nserver.a = 127.0.0.1:9 maxconn=5\n",
     "t.ini:5: [upstream u] server.a: 'maxconn=5' is not known; here it is 'max_connections=N' ("},
    {ECHO "[frontend f]\n", "t.ini:4: [frontend f] is not known (here it is [listen NAME])"},
    {ECHO "[listen f]\naddress = *:7\nservice = echo\n",
     "t.ini:5: [listen f] address: '0.0.0.0:7' conflicts with '127.0.0.1:7' of line 2, [listen "
     "e] ("},
    {ECHO "unix_mode = 660\n",
     "t.ini:4: [listen e] unix_mode: has no effect without a unix socket (set "},
    {"[listen e]\naddress = @x\nservice = echo\nunix_user = root\n",
     "t.ini:4: [listen e] unix_user: has no effect without a unix socket (set "},
    {"[listen e]\naddress = /x\nservice = echo\nunix_mode = 999\n",
     "t.ini:4: [listen e] unix_mode: '999' is not a mode of three octal digits (000 to 777, "},
    {"[listen e]\naddress = /x\nservice = echo\nunix_mode = 4660\n",
     "t.ini:4: [listen e] unix_mode: '4660' has bits other than permissions ("},
    {"[listen e]\naddress = /x\nservice = echo\nunix_user = no-such-user\n",
     "t.ini:4: [listen e] unix_user: there is no user 'no-such-user' (a user name or number)"},
    {"[listen e]\naddress = /x\nservice = echo\nunix_group = no-such-group\n",
     "t.ini:4: [listen e] unix_group: there is no group 'no-such-group' (a group name or number)"},
    {ECHO "[boss]\nworkers = 2\n",
     "t.ini:5: [boss] workers: unknown option (threads, accept_batch, cpu_affinity, scheduling)"},
    {ECHO "[boss]\nio_ratio = 2\n",
     "t.ini:5: [boss] io_ratio: unknown option here (it belongs to [worker])"},
    {ECHO "colour = 2\n", "t.ini:4: [listen e] colour: unknown option ("},
    {ECHO "max_connections = 9\nmax_connections_per_client = 10\n",
     "t.ini:5: [listen e] max_connections_per_client: is above max_connections (at most that)"},
    {ECHO "connection_rate = 5\n",
     "t.ini:4: [listen e] connection_rate: '5' has no unit of time (0, or a rate such as "},
    {ECHO "[wroker]\nthreads = 2\n", "t.ini:4: [wroker] is not known (did you mean [worker]?)"},
    {"[lisen e]\naddress = @x\n", "t.ini:1: [lisen e] is not known (did you mean [listen NAME]?)"},
    {ECHO "[boss]\nmax_pending_tasks = 20\n",
     "t.ini:5: [boss] max_pending_tasks: unknown option here (it belongs to [worker], [executor])"},
    {ECHO "[nonsense]\n",
     "t.ini:4: [nonsense] is not known ([reactord], [boss], [worker], "
     "[executor], [handshake], [admin], [listen NAME], [upstream NAME], [tls NAME])"},
    {ECHO "[boss b]\n", "t.ini:4: [boss b] takes no name ([boss])"},
    {ECHO "[upstream]\n", "t.ini:4: [upstream] needs a name ([upstream NAME])"},
    {ECHO "[upstream a23456789012345678901234567890123]\n",
     "t.ini:4: [upstream a23456789012345678901234567890123] has a name that is too long "},
    {ECHO "mirror = u\n", "t.ini:4: [listen e] mirror: there is no [upstream u] (the NAME of an "},
    {ECHO "mirror = u\n[upstream u]\nserver.a = 127.0.0.1:7\n",
     "t.ini:4: [listen e] mirror: '127.0.0.1:7' of [upstream u] is one of our listeners: "},
    {ECHO "mirror = u\n" SERVER "send_proxy = v2\n",
     "t.ini:4: [listen e] mirror: [upstream u] has send_proxy, but a mirror gets no PROXY header "
     "("},
    {ECHO "mirror = u\n[tls t]\n" SERVER "tls = t\n",
     "t.ini:4: [listen e] mirror: [upstream u] has tls, but a mirror connects without TLS ("},
    {ECHO "fault_rate = 1k\n",
     "t.ini:4: [listen e] fault_rate: faults are not allowed (set allow_faults = yes"},
    {ECHO "fault_percent = 5\n",
     "t.ini:4: [listen e] fault_percent: has no effect without a fault (set "},
    {ECHO "[boss]\nthreads = 1\nthreads = 2\n",
     "t.ini:6: [boss] threads: is set twice (first on line 5)"},
    {ECHO "[boss]\nthreads = 1\n[BOSS]\naccept_batch = 2\n",
     "t.ini:6: [boss] is defined twice (first on line 4)"},
    {ECHO ECHO, "t.ini:4: [listen e] is defined twice (first on line 1)"},
    {ECHO "[boss]\nthreads = four\n",
     "t.ini:5: [boss] threads: 'four' is not a plain decimal number (1 to 64)"},
    {ECHO "[boss]\nthreads = 4x\n",
     "t.ini:5: [boss] threads: '4x' is not a plain decimal number (1 to 64)"},
    {ECHO "[boss]\nthreads = -1\n", "t.ini:5: [boss] threads: '-1' is not a plain decimal number "},
    {ECHO "[boss]\nthreads = 0\n", "t.ini:5: [boss] threads: '0' is out of range (1 to 64)"},
    {ECHO "[boss]\nthreads = 65\n", "t.ini:5: [boss] threads: '65' is out of range (1 to 64)"},
    {ECHO "[boss]\nthreads = 99999999999\n", "t.ini:5: [boss] threads: '99999999999' is out of "},
    {ECHO "[boss]\nthreads =\n", "t.ini:5: [boss] threads: the value is empty (1 to 64)"},
    {ECHO "[boss]\nthreads = \"\"\n", "t.ini:5: [boss] threads: the value is empty (1 to 64)"},
    {ECHO "[boss]\nthreads = # four\n", "t.ini:5: [boss] threads: the value is empty (1 to 64)"},
    {ECHO "[boss]\nthreads = \x80\xff\n", "t.ini:5: [boss] threads: '\\x80\\xff' is not a plain "},
    {ECHO "[worker]\nio_ratio = 0\n",
     "t.ini:5: [worker] io_ratio: '0' is out of range (1 to 100, in percent)"},
    {ECHO "[worker]\nrebuild_threshold = 2\n",
     "t.ini:5: [worker] rebuild_threshold: '2' is out of range (0, or 3 to 1000000)"},
    {ECHO "[worker]\nstall_threshold = 1ms\n",
     "t.ini:5: [worker] stall_threshold: '1ms' is out of range (0, or 10ms to 1h, in us, ms, s, m, "
     "h or d)"},
    {ECHO "[worker]\nstall_threshold = 2h\n", "t.ini:5: [worker] stall_threshold: '2h' is out of "},
    {ECHO "[worker]\ncpu_affinity = atuo\n",
     "t.ini:5: [worker] cpu_affinity: 'atuo' is not known; did you mean 'auto'? (off, auto, or "
     "processor numbers such as 0-3,8)"},
    {ECHO "[boss]\ncpu_affinity = 1,1024\n",
     "t.ini:5: [boss] cpu_affinity: '1024' is above 1023, the highest processor number (off, "},
    {ECHO "[executor]\nthreads = 0\n",
     "t.ini:5: [executor] threads: '0' is out of range (1 to 64)"},
    {ECHO "[executor]\nmax_pending_tasks = 15\n",
     "t.ini:5: [executor] max_pending_tasks: '15' is out of range (16 to 2147483647)"},
    {ECHO "idle_timeout = 10\n",
     "t.ini:4: [listen e] idle_timeout: '10' is not a number with a unit (0 to 365d, in us, ms, s, "
     "m, h or d)"},
    {ECHO "idle_timeout = 10 s\n",
     "t.ini:4: [listen e] idle_timeout: '10 s' is not a number with "},
    {ECHO "idle_timeout = 366d\n", "t.ini:4: [listen e] idle_timeout: '366d' is out of range "},
    {ECHO "splice = yes\n", "t.ini:4: [listen e] splice: 'yes' is not known (auto, on or off)"},
    {ECHO "pipeline = lgo\n",
     "t.ini:4: [listen e] pipeline: 'lgo' is not a handler; did you mean 'log'? (log, frame, "},
    {ECHO "pipeline = log,\n", "t.ini:4: [listen e] pipeline: a handler is missing beside a comma"},
    {ECHO "pipeline = idle, log, idle\nidle_all = 1s\n",
     "t.ini:4: [listen e] pipeline: 'idle' is given twice"},
    {ECHO "frame_strip = 4\n", "t.ini:4: [listen e] frame_strip: needs the handler frame"},
    {ECHO "pipeline = frame\nidle_all = 1s\n",
     "t.ini:5: [listen e] idle_all: needs the handler idle (pipeline = idle,"},
    {ECHO "pipeline = frame\nexecutor_delay = 1ms\n",
     "t.ini:5: [listen e] executor_delay: needs the handler executor"},
    {ECHO "pipeline = log, idle\nidle_action = log\n",
     "t.ini:4: [listen e] pipeline: the handler idle has nothing to do"},
    {ECHO "pipeline = frame\nframe_length_offset = 65535\n",
     "t.ini:5: [listen e] frame_length_offset: the length field does not fit into a frame"},
    {ECHO "pipeline = frame\nframe_max_length = 3\n",
     "t.ini:5: [listen e] frame_max_length: the length field does not fit into a frame"},
    {ECHO "pipeline = frame\nframe_strip = 64m\n",
     "t.ini:5: [listen e] frame_strip: the stripped part does not fit into a frame"},
    {ECHO "pipeline = frame\nframe_length_width = 5\n",
     "t.ini:5: [listen e] frame_length_width: '5' is not known"},
    {ECHO "pipeline = frame\nframe_length_adjustment = -65m\n",
     "t.ini:5: [listen e] frame_length_adjustment: '-65m' is out of range (-64m to 64m, in b,"},
    {ECHO "pipeline = frame\nframe_length_adjustment = --1\n",
     "t.ini:5: [listen e] frame_length_adjustment: '--1' is not a size"},
    {ECHO "pipeline = frame\nframe_by = line\n",
     "t.ini:5: [listen e] frame_by: 'line' is not known (length, text_length or delimiter)"},
    {ECHO "pipeline = frame\nframe_delimiter = \\0\n",
     "t.ini:5: [listen e] frame_delimiter: needs frame_by = delimiter"},
    {ECHO "pipeline = frame\nframe_delimiter = \\n\n",
     "t.ini:5: [listen e] frame_delimiter: needs frame_by = delimiter"},
    {ECHO "frame_delimiter = \\n\n",
     "t.ini:4: [listen e] frame_delimiter: needs the handler frame (pipeline = frame, or a list "
     "with it)"},
    {ECHO "pipeline = fram\nframe_by = delimiter\nframe_delimiter = \\n\n",
     "t.ini:4: [listen e] pipeline: 'fram' is not a handler; did you mean 'frame'? ("},
    {ECHO "pipeline = frame\nframe_by = delimiter\nframe_delimiter = \\n, \\x0a\n",
     "t.ini:6: [listen e] frame_delimiter: '\\x0a' is given twice (1 to 8, "},
    {ECHO "pipeline = frame\nframe_strip_delimiter = yes\nframe_by = text_length\n",
     "t.ini:5: [listen e] frame_strip_delimiter: needs frame_by = delimiter"},
    {ECHO "pipeline = frame\nframe_by = delimiter\nframe_strip_length = yes\n",
     "t.ini:6: [listen e] frame_strip_length: needs frame_by = text_length"},
    {ECHO "pipeline = frame\nframe_by = length\nframe_length_end = :\n",
     "t.ini:6: [listen e] frame_length_end: needs frame_by = text_length"},
    {ECHO "pipeline = frame\nframe_by = delimiter\nframe_length_adjustment = 1\n",
     "t.ini:6: [listen e] frame_length_adjustment: needs frame_by = length or text_length"},
    {ECHO "pipeline = frame\nframe_by = text_length\nframe_length_offset = 1\n",
     "t.ini:6: [listen e] frame_length_offset: needs frame_by = length"},
    {ECHO "pipeline = frame\nframe_by = text_length\nframe_length_width = 2\n",
     "t.ini:6: [listen e] frame_length_width: needs frame_by = length"},
    {ECHO "pipeline = frame\nframe_by = text_length\nframe_strip = 2\n",
     "t.ini:6: [listen e] frame_strip: needs frame_by = length"},
    {ECHO "pipeline = frame\nframe_by = text_length\nframe_byte_order = little\n",
     "t.ini:6: [listen e] frame_byte_order: needs frame_by = length"},
    {ECHO "pipeline = frame\nframe_by = text_length\nframe_max_length = 10\n",
     "t.ini:6: [listen e] frame_max_length: the longest text length does not fit into a frame (at "
     "least 11 bytes)"},
    {ECHO "pipeline = frame\nframe_by = delimiter\nframe_max_length = 1\nframe_delimiter = "
          "\\n,\\r\\n\n",
     "t.ini:7: [listen e] frame_delimiter: a delimiter does not fit into a frame (at most 1 "
     "bytes)"},
    {ECHO "pipeline = frame\nframe_by = delimiter\nframe_delimiter = \\n,\n",
     "t.ini:6: [listen e] frame_delimiter: a delimiter is missing beside a comma"},
    {ECHO "pipeline = frame\nframe_by = delimiter\nframe_delimiter = \\q\n",
     "t.ini:6: [listen e] frame_delimiter: '\\q' is no escape"},
    {ECHO "pipeline = frame\nframe_by = delimiter\nframe_delimiter = 01234567890123456\n",
     "t.ini:6: [listen e] frame_delimiter: '01234567890123456' stands for 17 bytes (1 to 8, "},
    {ECHO "pipeline = frame\nframe_by = delimiter\nframe_delimiter = a,b,c,d,e,f,g,h,i\n",
     "t.ini:6: [listen e] frame_delimiter: there are more than 8 (1 to 8, "},
    {ECHO "pipeline = frame\nframe_by = text_length\nframe_length_end = 5\n",
     "t.ini:6: [listen e] frame_length_end: '5' is a digit (one character that is no digit, "},
    {ECHO "pipeline = frame\nframe_by = text_length\nframe_length_end = ::\n",
     "t.ini:6: [listen e] frame_length_end: the value stands for 2 bytes"},
    {ECHO "[worker]\nchooser = least_conections\n",
     "t.ini:5: [worker] chooser: 'least_conections' is not known; did you mean "
     "'least_connections'? (shuffled, round_robin, least_connections or p2c)"},
    {ECHO "[reactord]\nlog = reactord.log\n",
     "t.ini:5: [reactord] log: 'reactord.log' is not known (stderr, syslog, journal or an "},
    {ECHO "[reactord]\npid_file = r.pid\n",
     "t.ini:5: [reactord] pid_file: 'r.pid' is not an absolute path "},
    {"[listen e]\naddress = 127.0.0.1\nservice = echo\n",
     "t.ini:2: [listen e] address: '127.0.0.1' has no port (127.0.0.1:7, [::1]:7, "},
    {"[listen e]\naddress = *\nservice = echo\n", "t.ini:2: [listen e] address: '*' has no port ("},
    {"[listen e]\naddress = ::1\nservice = echo\n",
     "t.ini:2: [listen e] address: '::1' has no port, as in [::1]:7 ("},
    {"[listen e]\naddress = [::1]\nservice = echo\n",
     "t.ini:2: [listen e] address: '[::1]' has no port ("},
    {"[listen e]\naddress = 80\nservice = echo\n",
     "t.ini:2: [listen e] address: '80' is a port without an address ("},
    {"[listen e]\naddress = nowhere\nservice = echo\n",
     "t.ini:2: [listen e] address: 'nowhere' is not an address ("},
    {"[listen e]\naddress = 127.0.0.1:70000\nservice = echo\n",
     "t.ini:2: [listen e] address: the port of '127.0.0.1:70000' is not 1 to 65535 "},
    {"[listen e]\naddress =\nservice = echo\n", "t.ini:2: [listen e] address: the value is empty "},
    {"[listen e]\naddress = \"@x\nservice = echo\n",
     "t.ini:2: [listen e] address: the closing quote is missing"},
    {"[listen e]\naddress = /2345678901234567890123456789012345678901234567890123456789012345678901"
     "23456789012345678901234567890123456789\nservice = echo\n",
     "t.ini:2: [listen e] address: "
     "'/234567890123456789012345678901234567890123456789012345678901234"
     "...' is too long for a unix socket, which takes 107 characters "},
    {"[listen e]\naddress = @x\nservice = echo\nreuseport = 2\n",
     "t.ini:4: [listen e] reuseport: the unix socket '@x' cannot be shared "},
    {ECHO "[listen f]\nservice = echo\naddress = *:8, 127.0.0.1:7\n",
     "t.ini:6: [listen f] address: '127.0.0.1:7' is taken by line 2, [listen e] (each address "
     "once)"},
    {"[listen e]\naddress = *:7, [::]:7\nservice = echo\n",
     "t.ini:2: [listen e] address: '[::]:7' is taken by line 2, [listen e] (each address once)"},
    {PROXY, "t.ini:4: [listen p] upstream: there is no [upstream u] (the NAME of an [upstream "
            "NAME])"},
    {PROXY "[upstream us]\nserver.a = @x\n[upstream back]\nserver.a = @x\n",
     "t.ini:4: [listen p] upstream: there is no [upstream u] ("},
    {"[listen p]\naddress = @p\nservice = proxy\nupstream = bakc\n[upstream back]\nserver.a = @x\n",
     "t.ini:4: [listen p] upstream: there is no [upstream bakc] (did you mean 'back'?)"},
    {"[listen p]\naddress = @p\nservice = proxy\n",
     "t.ini:3: [listen p] upstream: is missing: service = proxy needs one "},
    {"[listen p]\naddress = @p\nservice = proxy\nupstream =\n",
     "t.ini:4: [listen p] upstream: is missing: service = proxy needs one "},
    {"[listen p]\naddress = @p\nservice = prxy\nupstream = u\n" SERVER,
     "t.ini:3: [listen p] service: 'prxy' is not known; did you mean 'proxy'? (echo or proxy)"},
    {ECHO "upstream = u\n" SERVER,
     "t.ini:4: [listen e] upstream: has no effect: service = echo connects to no server "},
    {ROUTE "sni:a -> \n" SERVER, "t.ini:5: [listen p] route.x: no '-> UPSTREAM' at the end ("},
    {ROUTE "sni:a\n" SERVER, "t.ini:5: [listen p] route.x: no '-> UPSTREAM' at the end ("},
    {ROUTE "sni:a -> u u\n" SERVER, "t.ini:5: [listen p] route.x: 'u' follows the upstream ("},
    {ROUTE "-> u\n" SERVER, "t.ini:5: [listen p] route.x: no sni: or alpn: (for all other clients"},
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
    {ECHO "route.x = sni:a -> u\n" SERVER,
     "t.ini:4: [listen e] route.x: has no effect: service = echo connects to no server "},
    {PROXY "client_hello_timeout = 1s\n" SERVER,
     "t.ini:5: [listen p] client_hello_timeout: has no effect without routes (set route.ID)"},
    {"[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nroute.x = sni:a -> u\n"
     "[upstream u]\nserver.a = 127.0.0.1:8\n",
     "t.ini:6: [upstream u] server.a: '127.0.0.1:8' is where [listen p] listens: a proxy loop "},
    {PROXY "[upstream u]\nretries = 1\n",
     "t.ini:5: [upstream u] server.ID: is missing: a server, or a name that "},
    {PROXY "[upstream u]\nserver.a = 127.0.0.1:9\nserver.A = 127.0.0.1:10\n",
     "t.ini:7: [upstream u] server.a: is set twice (first on line 6)"},
    {PROXY "[upstream u]\nsever.a = 127.0.0.1:9\nserver.b = @x\n",
     "t.ini:6: [upstream u] sever.a: unknown option (did you mean 'server.ID'?)"},
    {PROXY "[upstream u]\nserver.a = 127.0.0.1:9 weight=257\n",
     "t.ini:6: [upstream u] server.a: '257' is not a weight from 0 to 256 (ADDRESS [weight=0..256] "
     "[max_connections=1..1000000] [resolve=each|one] [check_address=IP] "
     "[check_port=1..65535] [backup] [disabled])"},
    {PROXY "[upstream u]\nserver.a = db.example.com\n",
     "t.ini:6: [upstream u] server.a: 'db.example.com' has no port (ADDRESS "},
    {PROXY "[upstream u]\nserver.a = 127.0.0.1\n",
     "t.ini:6: [upstream u] server.a: '127.0.0.1' has no port (ADDRESS "},
    {PROXY "[upstream u]\nserver.a = @x weight\n",
     "t.ini:6: [upstream u] server.a: 'weight' has no value, as in weight=N without blanks ("},
    {PROXY "[upstream u]\nserver.a = @x weight = 0\n",
     "t.ini:6: [upstream u] server.a: 'weight' has no value, as in weight=N without blanks ("},
    {PROXY "[upstream u]\nserver.a = @x check_port=\n",
     "t.ini:6: [upstream u] server.a: 'check_port' has no value, as in check_port=N without "},
    {PROXY "[upstream u]\nserver.a = @x drain\n",
     "t.ini:6: [upstream u] server.a: 'drain' is not known; here it is 'weight=0' ("},
    {PROXY SERVER "disabled = yes\n",
     "t.ini:7: [upstream u] disabled: unknown option (here it is 'disabled after the address of a "
     "server')"},
    {PROXY SERVER "timeout connect = 5s\n",
     "t.ini:7: 'timeout connect': not a key (key = value, where a key is letters, digits, '_', '.' "
     "and '-'; here it is 'connect_timeout')"},
    {PROXY SERVER "timeout connect 5s\n",
     "t.ini:7: 'timeout connect 5s': no '=' (key = value; here it is 'connect_timeout')"},
    {ECHO "bind *:80\n", "t.ini:4: 'bind *:80': no '=' (key = value; here it is 'address')"},
    {ECHO "timeout connect 5s\n",
     "t.ini:4: 'timeout connect 5s': no '=' (key = value; here it is 'connect_timeout in [upstream "
     "NAME]')"},
    {ECHO "[defaults]\n",
     "t.ini:4: [defaults] is not known (there are no defaults: options are set in "
     "each [listen NAME] and [upstream NAME])"},
    {ECHO "[reactord]\nlog_level = warn\n",
     "t.ini:5: [reactord] log_level: 'warn' is not known; here it is 'warning' ("},
    {ECHO "[reactord]\ndaemon = yes\n",
     "t.ini:5: [reactord] daemon: unknown option (it stays in the foreground: start it by systemd, "
     "or with & in a shell)"},
    {ECHO "[reactord]\ndaemon\n", "t.ini:5: 'daemon': no '=' (key = value; it stays in the "},
    {ECHO "accept_proxy = on\n",
     "t.ini:4: [listen e] accept_proxy: 'on' is not known; here it is 'required, with "
     "trusted_proxies' ("},
    {PROXY "[upstream u]\nserver.a = @x\nhash_balance_factor = 150\n",
     "t.ini:7: [upstream u] hash_balance_factor: has no effect: balance does not hash (set "
     "balance = source_hash or maglev)"},
    {PROXY "[upstream u]\nserver.a = @x\neject_time = 10m\n",
     "t.ini:7: [upstream u] eject_time: is longer than eject_time_max (at most that)"},
    {ECHO "accept_proxy = required\n",
     "t.ini:4: [listen e] accept_proxy: no proxy is trusted (set trusted_proxies)"},
    {ECHO "accept_proxy = optional\ntrusted_proxies =\n",
     "t.ini:4: [listen e] accept_proxy: no proxy is trusted "},
    {ECHO "trusted_proxies = ::1\n",
     "t.ini:4: [listen e] trusted_proxies: has no effect: no PROXY header is read (set "
     "accept_proxy = optional or required)"},
    {ECHO "accept_proxy = off\ntrusted_proxies = ::1\n",
     "t.ini:5: [listen e] trusted_proxies: has no effect: no PROXY header is read "},
    {ECHO "accept_proxy = required\ntrusted_proxies = ::1, 10.0.0.1/8\n",
     "t.ini:5: [listen e] trusted_proxies: '10.0.0.1/8' has bits set after its prefix; did "
     "you mean 10.0.0.0/8? ("},
    {ECHO "accept_proxy = required\ntrusted_proxies = ::1/129\n",
     "t.ini:5: [listen e] trusted_proxies: the prefix of '::1/129' is too long ("},
    {ECHO "accept_proxy = required\ntrusted_proxies = lb1\n",
     "t.ini:5: [listen e] trusted_proxies: 'lb1' is not a block of addresses ("},
    {ECHO "accept_proxy = required\ntrusted_proxies = unix,\n",
     "t.ini:5: [listen e] trusted_proxies: a block of addresses is missing beside a comma "},
    {PROXY SERVER "send_proxy_tlvs = crc32c\n",
     "t.ini:7: [upstream u] send_proxy_tlvs: has no effect: no version 2 PROXY header is sent "
     "(set send_proxy = v2)"},
    {PROXY SERVER "send_proxy = v1\nsend_proxy_tlvs = unique-id\n",
     "t.ini:8: [upstream u] send_proxy_tlvs: has no effect: no version 2 PROXY header is sent "},
    {PROXY SERVER "send_proxy = v2\nsend_proxy_tlvs = crc32c, crc32c\n",
     "t.ini:8: [upstream u] send_proxy_tlvs: 'crc32c' is given twice ("},
    {PROXY SERVER "send_proxy = v2\nsend_proxy_tlvs = certificate, alpn\n",
     "t.ini:8: [upstream u] send_proxy_tlvs: certificate is a part of ssl, which is missing ("},
    {PROXY SERVER "send_proxy = v2\nsend_proxy_tlvs = crc\n",
     "t.ini:8: [upstream u] send_proxy_tlvs: 'crc' is not known ("},
    {PROXY "[upstream u]\nserver.a = @x\ncheck_send = PING\n",
     "t.ini:7: [upstream u] check_send: has no effect without health checks (set check = tcp)"},
    {PROXY "[upstream u]\nserver.a = @x\non_down = close\n",
     "t.ini:7: [upstream u] on_down: has no effect without health checks (set check = tcp)"},
    {PROXY "[upstream u]\nserver.a = @x\ncheck = off\ninitial_state = checked\n",
     "t.ini:8: [upstream u] initial_state: has no effect without health checks (set check = tcp)"},
    {PROXY "[upstream u]\nserver.a = @x\nrise = 2\n",
     "t.ini:7: [upstream u] rise: has no effect without health checks "},
    {PROXY "[upstream u]\nserver.a = @x\nfall = 9\n",
     "t.ini:7: [upstream u] fall: has no effect without health checks "},
    {PROXY "[upstream u]\nserver.a = @x\ncheck_interval = 2s\n",
     "t.ini:7: [upstream u] check_interval: has no effect without health checks "},
    {PROXY "[upstream u]\nserver.a = @x\non_down = keep\n",
     "t.ini:7: [upstream u] on_down: has no effect without health checks "},
    {PROXY "[upstream u]\nserver.a = @x\ncheck = tpc\nfall = 9\n",
     "t.ini:7: [upstream u] check: 'tpc' is not known; did you mean 'tcp'? ("},
    {PROXY "[upstream u]\nserver.a = @x\neject_failures = 0\neject_time = 10m\n",
     "t.ini:8: [upstream u] eject_time: has no effect without ejection (set eject_failures)"},
    {PROXY "[tls t]\n[upstream u]\nserver.a = 127.0.0.1:9\ntls = t\nsend_proxy = v1\nspare = 1\n",
     "t.ini:10: [upstream u] spare: has no effect with tls and send_proxy: "},
    {PROXY "[upstream u]\nserver.a = @x\nresolve_hold = always\n",
     "t.ini:7: [upstream u] resolve_hold: 'always' is not a number with a unit (never, 0, or 1s to "
     "1d, in us, ms, s, m, h or d)"},
    {PROXY "[upstream u]\nserver.a = @x\nresolve_hold = 900ms\n",
     "t.ini:7: [upstream u] resolve_hold: '900ms' is "},
    {PROXY "[upstream u]\nserver.a = @x\nhold nx = 30s\n",
     "t.ini:7: 'hold nx': not a key (key = value, where a key is letters, digits, '_', '.' and '-'; "
     "here it is 'resolve_hold')"},
    {PROXY "[upstream u]\nserver.a = @x\nspare_max_age = 60s\n",
     "t.ini:7: [upstream u] spare_max_age: has no effect without spare connections (set spare)"},
    {ECHO "proxy_header_timeout = 3s\n",
     "t.ini:4: [listen e] proxy_header_timeout: has no effect: no PROXY header is read (set "
     "accept_proxy = "},
    {ECHO "access_log_format = text\n",
     "t.ini:4: [listen e] access_log_format: has no effect without an access log (set access_log)"},
    {ECHO "fault_percent = 100\n",
     "t.ini:4: [listen e] fault_percent: has no effect without a fault ("},
    {ECHO "idle_read = 0\n", "t.ini:4: [listen e] idle_read: needs the handler idle ("},
    {PROXY "[upstream u]\nserver.a = no-.such.name:9\n",
     "t.ini:6: [upstream u] server.a: 'no-.such.name:9' is not an address (ADDRESS "},
    {PROXY "[upstream u]\nserver.a = db.example.com:99999\n",
     "t.ini:6: [upstream u] server.a: the port of 'db.example.com:99999' is not 1 to 65535 "},
    {PROXY "[upstream u]\nserver.a = 127.0.0.1:8\n",
     "t.ini:6: [upstream u] server.a: '127.0.0.1:8' is where [listen p] listens: a proxy loop "},
    {PROXY "[upstream u]\nserver.a = localhost:8\n",
     "t.ini:6: [upstream u] server.a: 'localhost:8' is where [listen p] listens"},
    {"[listen p]\naddress = *:8\nservice = proxy\nupstream = u\n"
     "[upstream u]\nserver.x = @x\nserver.a = 127.0.0.2:8\n",
     "t.ini:7: [upstream u] server.a: '127.0.0.2:8' is where [listen p] listens"},
    {"[listen p]\naddress = /run/p\nservice = proxy\nupstream = u\n"
     "[upstream u]\nserver.a = /run/p\n",
     "t.ini:6: [upstream u] server.a: '/run/p' is where [listen p] listens"},
    {"k = v\n" ECHO, "t.ini:1: 'k' is in no section "},
    {ECHO "[boss\nthreads = 2\n", "t.ini:4: '[boss' has no closing ']'"},
    {ECHO "[]\nthreads = 2\n", "t.ini:4: '[]': a section without a name "},
    {ECHO "backlog 5\n", "t.ini:4: 'backlog 5': no '=' (key = value)"},
    {ECHO "= 5\n", "t.ini:4: '': nothing before the '=' "},
    {ECHO "backlog = 5\\\n", "t.ini:4: the line ends in a backslash "},
    {"\xef\xbb\xbf" ECHO, "t.ini:1: the file begins with a byte order mark (save it without)"},
    {"[boss]\r\nthreads = 2\r\n", "t.ini:1: the line ends in CR LF "},
    {ECHO "\x01\x02", "t.ini:4: byte \\x01: this is not a text file"},
};

#define POINTER "t.ini:0: for lines of HAProxy or nginx see reactord-migrating(7)\n"

GROUP(files, text_file_enter, config_file_leave);

TEST_EACH(files, problem_has_its_line, ARRAY_LEN(broken))
{
    ck_assert_int_eq(config_file_load_text(broken[_i].text), -EINVAL);
    ck_assert_msg(strncmp(config_file.problems, broken[_i].problem, strlen(broken[_i].problem)) ==
                      0,
                  "%s", config_file.problems);
}

TEST_EACH(files, problem_is_reported_once, ARRAY_LEN(broken))
{
    const char *rest;

    ck_assert_int_eq(config_file_load_text(broken[_i].text), -EINVAL);
    rest = strchr(config_file.problems, '\n') + 1;
    ck_assert_msg(*rest == '\0' || strcmp(rest, POINTER) == 0, "%s", config_file.problems);
}

/* Files with one foreign word, of each kind that is known. */
static const char *const foreign[] = {
    ECHO "[backend b]\n",
    ECHO "nbthread = 2\n",
    ECHO "option tcplog\n",
    ECHO "timeout client = 5s\n",
    ECHO SERVER "balance = leastconn\n",
    ECHO "[upstream u]\nserver.a = @x maxconn=5\n",
    ECHO "some_directive on;\n",
    "global\n" ECHO,
};

TEST_EACH(files, file_with_lines_of_other_programs_points_to_the_migration_page, ARRAY_LEN(foreign))
{
    ck_assert_int_eq(config_file_load_text(foreign[_i]), -EINVAL);
    ck_assert_msg(strstr(config_file.problems, "\n" POINTER), "%s", config_file.problems);
}

TEST(files, file_without_lines_of_other_programs_points_to_no_page)
{
    ck_assert_int_eq(config_file_load_text(ECHO "word\n[boss]\nacept_batch = 2\n"), -EINVAL);
    ck_assert_msg(!strstr(config_file.problems, "migrating"), "%s", config_file.problems);
}

TEST(files, each_wrong_word_of_a_server_line_is_reported)
{
    ck_assert_int_eq(
        config_file_load_text(PROXY "[upstream u]\nserver.a = 127.0.0.1:99999 check port 8008 "
                                    "maxconn 100 bakup weight=300 inter 2s backup\n"),
        -EINVAL);
#define AT "t.ini:6: [upstream u] server.a: "
    ck_assert_ptr_eq(strstr(config_file.problems, AT
                            "'check' is not known; here it is 'check = tcp in the section'\n" AT
                            "'port' is not known; here it is 'check_port=N'\n" AT
                            "'maxconn' is not known; here it is 'max_connections=N'\n" AT
                            "'bakup' is not known\n" AT "'300' is not a weight from 0 to 256\n" AT
                            "'inter' is not known; here it is 'check_interval in the section'\n" AT
                            "the port of '127.0.0.1:99999' is not 1 to 65535 (ADDRESS [weight"),
                     config_file.problems);
}

TEST(files, wrong_words_beyond_the_maximum_are_counted)
{
    char text[2048] = PROXY "[upstream u]\nserver.a = @x";

    for (int i = 0; i < 200; i++)
        strcat(text, " x\xff");
    ck_assert_int_eq(config_file_load_text(text), -EINVAL);
    ck_assert_ptr_nonnull(strstr(config_file.problems, "server.a: 'x\\xff' is not known\n"));
    ck_assert_ptr_nonnull(strstr(config_file.problems, " more problems (ADDRESS "));
}

/* 0: [listen]; 1: [upstream]. */
TEST_EACH(files, list_of_allowed_words_is_complete, 2)
{
    enum option_section section = _i == 0 ? OPTION_LISTEN : OPTION_UPSTREAM;
    unsigned n;
    const struct option *table = option_table(section, &n);
    const char *at;

    ck_assert_int_eq(
        config_file_load_text(_i == 0 ? ECHO "qqqqqqqq = 1\n" : ECHO SERVER "qqqqqqqq = 1\n"),
        -EINVAL);
    at = strstr(config_file.problems, "unknown option (");
    ck_assert_ptr_nonnull(at);
    at += strlen("unknown option (");
    for (unsigned i = 0; i < n; i++) {
        size_t len = strlen(table[i].key);

        ck_assert_msg(strncmp(at, table[i].key, len) == 0, "%s: %s", table[i].key, at);
        at += len;
        ck_assert_int_eq(strncmp(at, i + 1 < n ? ", " : ")\n", 2), 0);
        at += 2;
    }
    ck_assert_str_eq(at, "");
}

TEST(files, upstream_whose_servers_get_no_connections_is_valid_with_a_warning)
{
    ck_assert_int_eq(config_file_load_text(
                         PROXY "[upstream u]\nserver.a = @a weight=0\nserver.b = @b disabled\n"),
                     0);
    ck_assert_str_eq(
        config_file.problems,
        "t.ini:5: warning: [upstream u] no server gets connections: all are disabled or "
        "have weight=0; clients are reset\n");
}

TEST(files, upstream_with_one_weighted_server_is_valid_without_a_warning)
{
    ck_assert_int_eq(
        config_file_load_text(PROXY "[upstream u]\nserver.a = @a weight=0\nserver.b = @b backup\n"),
        0);
    ck_assert_str_eq(config_file.problems, "");
}

/* The hard limit of open files is lowered: in a process of its own, for good. */
TEST(files, max_connections_above_the_limit_of_open_files_is_warned_of)
{
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = 1000};

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(config_file_load_text("[reactord]\nmax_connections = 900\n"
                                           "[boss]\nthreads = 1\n[worker]\nthreads = 2\n" PROXY
                                           "max_connections = 300\n" SERVER),
                     0);
    ck_assert_str_eq(config_file.problems,
                     "t.ini:2: warning: [reactord] max_connections: cannot be reached: needs 1844 "
                     "open files, the limit is 1000 (ulimit -Hn; LimitNOFILE=)\n");
    ck_assert_int_eq(config_file_load_text(ECHO "max_connections = 990\n[listen b]\naddress = @b\n"
                                                "service = echo\nmax_connections = 900\n"),
                     0);
    ck_assert_msg(strncmp(config_file.problems, "t.ini:4: warning: [listen ", 26) == 0 &&
                      !strchr(config_file.problems, '\n')[1],
                  "%s", config_file.problems);
}

TEST(files, unreadable_file_is_reported)
{
    config_file_load("/");
    ck_assert_int_eq(config_file.rc, -EISDIR);
    ck_assert_str_eq(config_file.problems, "/:0: is a directory (a file is needed)\n");
    config_file_load("nosuch.ini");
    ck_assert_int_eq(config_file.rc, -ENOENT);
    ck_assert_str_eq(config_file.problems,
                     "nosuch.ini:0: cannot be opened: No such file or directory\n");
}

TEST(files, all_problems_of_a_file_are_reported_in_its_order)
{
    ck_assert_int_eq(config_file_load_text("[listen a]\n"
                                           "address = 127.0.0.1:7, nowhere\n"
                                           "service = proxy\n"
                                           "word\n"
                                           "upstream = none\n"
                                           "[boss]\n"
                                           "threads = 0\n"
                                           "acept_batch = 1\n"
                                           "threads = 1\n"
                                           "[listen b]\n"
                                           "service = echo\n"
                                           "[worker] # here\n"
                                           "[listen b]\n"
                                           "[upstream u]\n"
                                           "retries = 1#\n"),
                     -EINVAL);
    ck_assert_str_eq(
        config_file.problems,
        "t.ini:2: [listen a] address: 'nowhere' is not an address (127.0.0.1:7, [::1]:7, *:7, "
        "/run/x.sock or @name, comma-separated)\n"
        "t.ini:4: 'word': no '=' (key = value)\n"
        "t.ini:5: [listen a] upstream: there is no [upstream none] (the NAME of an [upstream "
        "NAME])\n"
        "t.ini:7: [boss] threads: '0' is out of range (1 to 64)\n"
        "t.ini:8: [boss] acept_batch: unknown option (did you mean 'accept_batch'?)\n"
        "t.ini:9: [boss] threads: is set twice (first on line 7)\n"
        "t.ini:10: [listen b] address: is missing: addresses to listen on (127.0.0.1:7, [::1]:7, "
        "*:7, /run/x.sock or @name, comma-separated)\n"
        "t.ini:12: '# here' follows the closing ']' (nothing may, not even a comment)\n"
        "t.ini:13: [listen b] is defined twice (first on line 10)\n"
        "t.ini:14: [upstream u] server.ID: is missing: a server, or a name that stands for "
        "one or more servers; any number, each with its own ID (ADDRESS [weight=0..256] [max_connections=1..1000000] "
        "[resolve=each|one] [check_address=IP] [check_port=1..65535] [backup] [disabled])\n"
        "t.ini:15: [upstream u] retries: a '#' or ';' inside the value (put a blank before a "
        "comment, or quote the value)\n");
}

TEST(files, loop_over_several_proxies_is_reported_at_each_of_its_servers)
{
    ck_assert_int_eq(config_file_load_text(
                         "[listen a]\naddress = 127.0.0.1:1\nservice = proxy\nupstream = to_b\n"
                         "[listen b]\naddress = 127.0.0.1:2\nservice = proxy\nupstream = to_a\n"
                         "[listen c]\naddress = 127.0.0.1:3\nservice = proxy\nupstream = to_c\n"
                         "[upstream to_b]\nserver.x = @x\nserver.b = 127.0.0.1:2\n"
                         "[upstream to_a]\nserver.a = 127.0.0.1:1\n"
                         "[upstream to_c]\nserver.a = 127.0.0.1:1\n"),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(config_file.problems,
                                 "t.ini:15: [upstream to_b] server.b: '127.0.0.1:2' is "
                                 "where [listen b] listens"));
    ck_assert_ptr_nonnull(strstr(config_file.problems, "\nt.ini:17: [upstream to_a] server.a: "));
    ck_assert_ptr_null(strstr(config_file.problems, "to_c"));
}

TEST(files, proxy_to_an_echo_listener_of_our_own_is_no_loop)
{
    ck_assert_int_eq(config_file_load_text(ECHO PROXY "[upstream u]\nserver.a = 127.0.0.1:7\n"), 0);
    ck_assert_int_eq(
        config_file_load_text("[listen a]\naddress = @a\nservice = proxy\nupstream = to_b\n"
                              "[listen b]\naddress = @b\nservice = proxy\nupstream = u\n"
                              "[upstream to_b]\nserver.b = @b\n" SERVER),
        0);
}

TEST(files, host_name_is_accepted_without_a_lookup)
{
    ck_assert_int_eq(config_file_load_text(
                         PROXY "[upstream u]\nserver.a = p.example.com:8\nserver.b = b:9 backup\n"
                               "server.c = localhost:9\n"),
                     0);
    ck_assert_uint_eq(names_asked(), 0);
}
