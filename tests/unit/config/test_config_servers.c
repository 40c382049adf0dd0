/* option/option_server: problems of a server line, and of what it needs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/must.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

#define PROXY "[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nupstream = u\n[upstream u]\n"

/* Lines of an upstream, and the beginning of the first problem that is told. */
static const struct {
    const char *lines;
    const char *problem;
} broken[] = {
    {"server.a = @x check=tcp",
     "t.ini:6: [upstream u] server.a: 'tcp' is not a value of check, which takes only off ("},
    {"server.a = @x eject",
     "t.ini:6: [upstream u] server.a: 'eject' has no value, as in eject=off without blanks ("},
    {"server.a = @x eject=5",
     "t.ini:6: [upstream u] server.a: '5' is not a value of eject, which takes only off ("},
    {"server.a = @x check_interval=5",
     "t.ini:6: [upstream u] server.a: '5' is not a check_interval from 10ms to 1h, with a unit ("},
    {"server.a = @x check_interval=1ms",
     "t.ini:6: [upstream u] server.a: '1ms' is not a check_interval from 10ms to 1h, with a unit"},
    {"server.a = @x rise=0", "t.ini:6: [upstream u] server.a: '0' is not a rise from 1 to 1000 ("},
    {"server.a = @x fall=1001",
     "t.ini:6: [upstream u] server.a: '1001' is not a fall from 1 to 1000 ("},
    {"server.a = @x fall=1 fall=1", "t.ini:6: [upstream u] server.a: 'fall' is given twice ("},
    {"server.a = @x send_proxy=on",
     "t.ini:6: [upstream u] server.a: send_proxy='on' is none of off, v1 and v2 ("},
    {"server.a = @x backup=yes", "t.ini:6: [upstream u] server.a: 'backup=yes' is not known ("},
    {"server.a = @x inter 2s",
     "t.ini:6: [upstream u] server.a: 'inter' is not known; here it is 'check_interval=2s' ("},
    {"server.a = @x rise 2",
     "t.ini:6: [upstream u] server.a: 'rise' has no value, as in rise=N without blanks ("},
    {"server.a = @x rise=2",
     "t.ini:6: [upstream u] server.a: rise has no effect without health checks (set check = tcp)"},
    {"server.a = @x check=off",
     "t.ini:6: [upstream u] server.a: check has no effect without health checks (set check = tcp)"},
    {"server.a = @x check=off fall=2\ncheck = tcp",
     "t.ini:6: [upstream u] server.a: fall has no effect with check=off (remove one of them)"},
    {"eject_failures = 0\nserver.a = @x eject=off",
     "t.ini:7: [upstream u] server.a: eject has no effect without ejection (set eject_failures)"},
    {"server.a = @x\ncheck = tcp\ncheck_send_proxy = v2",
     "t.ini:8: [upstream u] check_send_proxy: 'v2' is not known (auto, yes or no)"},
    {"server.a = @x agent_check=0",
     "t.ini:6: [upstream u] server.a: '0' is neither off, nor a port from 1 to 65535, nor IP:PORT ("},
    {"server.a = @x agent_check=5",
     "t.ini:6: [upstream u] server.a: a unix socket has no port for an agent (set agent_check="},
    {"server.a = /run/x\nagent_check = 5",
     "t.ini:6: [upstream u] server.a: a unix socket has no port for an agent (set agent_check="},
    {"server.a = @x agent_check=there:9",
     "t.ini:6: [upstream u] server.a: 'there:9' is neither off, nor a port from 1 to 65535, nor"},
    {"server.a = @x agent-port 9",
     "t.ini:6: [upstream u] server.a: 'agent-port' is not known; here it is 'agent_check=PORT' ("},
    {"server.a = @x\nagent_check = 65536",
     "t.ini:7: [upstream u] agent_check: '65536' is out of range (0 or off, or 1 to 65535)"},
    {"server.a = @x\nagent_check = on",
     "t.ini:7: [upstream u] agent_check: 'on' is not a plain decimal number (0 or off, or 1 to"},
    {"server.a = @x\nagent_check = off\nagent_send = x",
     "t.ini:8: [upstream u] agent_send: has no effect without agents (set agent_check)"},
    {"server.a = @x\nagent_port = 9",
     "t.ini:7: [upstream u] agent_port: unknown option (here it is 'agent_check')"},
    {"server.a = @x\nhttpchk = GET /",
     "t.ini:7: [upstream u] httpchk: unknown option (here it is 'check = http')"},
    {"server.a = @x\ncheck = ssl",
     "t.ini:7: [upstream u] check: 'ssl' is not known; here it is 'tls' (off, tcp, tls"},
    {"server.a = @x\ncheck = postgres",
     "t.ini:7: [upstream u] check: 'postgres' is not known; here it is 'pgsql' (off, tcp"},
    {"server.a = @x\nagent_send = x",
     "t.ini:7: [upstream u] agent_send: has no effect without agents (set agent_check)"},
    {"server.a = @x\nagent_interval = 1s",
     "t.ini:7: [upstream u] agent_interval: has no effect without agents (set agent_check)"},
    {"server.a = 127.0.0.1:9\nagent_check = 9\nagent_interval = 1",
     "t.ini:8: [upstream u] agent_interval: "},
    {"server.a = @x\ncheck_send_proxy = yes",
     "t.ini:7: [upstream u] check_send_proxy: has no effect without health checks (set check = "},
};

GROUP(servers, text_file_enter, config_file_leave);

TEST_EACH(servers, problem_has_its_line, ARRAY_LEN(broken))
{
    char text[512];

    snprintf(text, sizeof(text), PROXY "%s\n", broken[_i].lines);
    ck_assert_int_eq(config_file_load_text(text), -EINVAL);
    ck_assert_msg(strncmp(config_file.problems, broken[_i].problem, strlen(broken[_i].problem)) ==
                      0,
                  "%s", config_file.problems);
}
