/* option/option_syslog: addresses and words of syslog and the journal, good and bad. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "option/option_syslog.h"
#include "stats/syslog_conf.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

static struct syslog_conf conf;

static void parse(const char *text)
{
    struct option_value v = {.text = text};

    ck_assert_msg(option_syslog_parse(&conf, &v) == 0, "%s", v.problem);
}

static const char *address(void)
{
    static char text[ADDRESS_TEXT_BYTES];

    return address_format(text, sizeof(text), &conf.address);
}

GROUP(parse, NULL, NULL);

TEST(parse, syslog_alone_is_dev_log_as_libc_has_it)
{
    parse("syslog");
    ck_assert_str_eq(address(), "/dev/log");
    ck_assert_int_eq(conf.protocol, SYSLOG_RFC3164);
    ck_assert_uint_eq(conf.facility, 3);
    ck_assert_int_eq(conf.severity, -1);
    ck_assert_uint_eq(conf.max_bytes, 0);
    ck_assert_str_eq(conf.tag, "reactord");
    ck_assert_str_eq(conf.host, "");
}

TEST(parse, words_need_no_address)
{
    parse("syslog facility=local7 severity=warning tag=lb-1 host=edge.example");
    ck_assert_str_eq(address(), "/dev/log");
    ck_assert_uint_eq(conf.facility, 23);
    ck_assert_int_eq(conf.severity, 4);
    ck_assert_str_eq(conf.tag, "lb-1");
    ck_assert_str_eq(conf.host, "edge.example");
}

TEST(parse, udp_has_a_length_and_the_name_of_this_host)
{
    char host[SYSLOG_CONF_HOST_BYTES + 1] = "";

    parse("syslog \t 192.0.2.9:5140  format=rfc5424");
    ck_assert_int_eq(gethostname(host, sizeof(host) - 1), 0);
    ck_assert_str_eq(address(), "192.0.2.9:5140");
    ck_assert_int_eq(conf.protocol, SYSLOG_RFC5424);
    ck_assert_uint_eq(conf.max_bytes, 8192);
    ck_assert_str_eq(conf.host, host);
    parse("syslog [2001:db8::9]:99 host=off length=480");
    ck_assert_str_eq(address(), "[2001:db8::9]:99");
    ck_assert_str_eq(conf.host, "");
    ck_assert_uint_eq(conf.max_bytes, 480);
}

static const struct {
    const char *text;
    const char *address;
} addresses[] = {
    {"syslog 192.0.2.9", "192.0.2.9:514"},
    {"syslog 2001:db8::9", "[2001:db8::9]:514"},
    {"syslog [2001:db8::9]", "[2001:db8::9]:514"},
    {"syslog /run/log", "/run/log"},
    {"syslog @a=b", "@a=b"},
    {"journal", "/run/systemd/journal/socket"},
    {"journal facility=user severity=notice tag=x", "/run/systemd/journal/socket"},
};

TEST_EACH(parse, address_is_taken_in_each_form, ARRAY_LEN(addresses))
{
    parse(addresses[_i].text);
    ck_assert_str_eq(address(), addresses[_i].address);
}

GROUP(files, text_file_enter, config_file_leave);

TEST(files, a_log_is_its_text_with_single_blanks)
{
    ck_assert_msg(config_file_load_text("[reactord]\nlog = syslog   @x  \t tag=a\n"
                                        "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"
                                        "access_log = syslog  @x   severity=info\n") == 0,
                  "%s", config_file.problems);
    ck_assert_str_eq(config_file.config->process.log, "syslog @x tag=a");
    ck_assert_str_eq(listener_conf_log(&config_file.config->server.listeners[0], 0)->where,
                     "syslog @x severity=info");
}

static const struct {
    const char *target;
    const char *problem;
} broken[] = {
    {"syslog 192.0.2.9:0", "the port of '192.0.2.9:0' is not 1 to 65535"},
    {"syslog 192.0.2.9:65536", "the port of '192.0.2.9:65536' is not 1 to 65535"},
    {"syslog 192.0.2.256:514", "'192.0.2.256:514' is "},
    {"syslog log.example:514", "'log.example:514' is a host name, and a log needs a numeric"},
    {"syslog log.example", "'log.example' is "},
    {"syslog *:514", "'*:514' is for listening, a log needs one address"},
    {"syslog @", "'@' is "},
    {"syslog facility=local8", "there is no facility 'local8'; did you mean 'local"},
    {"syslog facility=3", "there is no facility '3'; they are kern to local7"},
    {"syslog facility=", "'facility' has no value, as in facility=local0 without blanks"},
    {"syslog facility", "'facility' has no value, as in facility=local0 without blanks"},
    {"syslog facility = local0", "'facility' has no value, as in facility=local0 without blanks"},
    {"syslog facility=user facility=user", "'facility' is given twice"},
    {"syslog severity=warn", "there is no severity 'warn'"},
    {"syslog severity=9", "there is no severity '9'; they are emerg to debug"},
    {"syslog tag=a:b", "'a:b' is not a tag of 1 to 32 letters"},
    {"syslog tag=123456789012345678901234567890123", "'12345678"},
    {"syslog format=json", "format='json' is neither rfc3164 nor rfc5424; the text of a line is"},
    {"syslog host=a/b", "'a/b' is neither off nor a host name"},
    {"syslog length=479", "'479' is not a length from 480 to 65000"},
    {"syslog length=65001", "'65001' is not a length from 480 to 65000"},
    {"syslog local0", "'local0' is not known; here it is 'facility=local0'"},
    {"syslog info", "'info' is not known; did you mean 'severity=info'?"},
    {"syslog len=80", "'len=80' is not known; here it is 'length=N'"},
    {"syslog nohostname", "'nohostname' is not known; here it is 'host=off'"},
    {"syslog facilty=user", "'facilty=user' is not known; did you mean 'facility='?"},
    {"syslog /dev/log /dev/log", "'/dev/log' is not known"},
    {"journal /run/x", "the journal has no address '/run/x'"},
    {"journal format=rfc5424", "the journal takes no format="},
    {"journal host=off", "the journal takes no host="},
    {"journal length=800", "the journal takes no length="},
    {"/dev/log local0", "'/dev/log' is the address of a syslog; here it is 'syslog /dev/log'"},
    {"127.0.0.1:514 local0", "'127.0.0.1:514' is the address of a syslog; here it is 'syslog "},
    {"syslog:server=192.0.2.9", "'syslog:server=192.0.2.9' is not known; here it is 'syslog ADD"},
};

TEST_EACH(files, bad_target_is_refused_with_its_line_in_a_section_and_a_listener, ARRAY_LEN(broken))
{
    char text[512], wanted[512];

    snprintf(text, sizeof(text),
             "[access_log a]\ntarget = %s\n[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"
             "access_log = a\n",
             broken[_i].target);
    snprintf(wanted, sizeof(wanted), "t.ini:2: [access_log a] target: %s", broken[_i].problem);
    ck_assert_int_eq(config_file_load_text(text), -EINVAL);
    ck_assert_msg(strncmp(config_file.problems, wanted, strlen(wanted)) == 0, "%s",
                  config_file.problems);
    config_file_free();
    snprintf(text, sizeof(text),
             "[listen e]\naddress = 127.0.0.1:7\nservice = echo\naccess_log = %s\n",
             broken[_i].target);
    snprintf(wanted, sizeof(wanted), "t.ini:4: [listen e] access_log: %s", broken[_i].problem);
    ck_assert_int_eq(config_file_load_text(text), -EINVAL);
    ck_assert_msg(strncmp(config_file.problems, wanted, strlen(wanted)) == 0, "%s",
                  config_file.problems);
}

TEST(files, lines_of_the_log_have_their_own_severity)
{
    ck_assert_int_eq(config_file_load_text("[reactord]\nlog = syslog severity=info\n"
                                           "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"),
                     -EINVAL);
    ck_assert_msg(strncmp(config_file.problems,
                          "t.ini:2: [reactord] log: severity= is for access logs: a line of the",
                          68) == 0,
                  "%s", config_file.problems);
}
