/* config/config_addresses: ranges of ports that are wrong, or overlap. */
#include <errno.h>
#include <string.h>

#include "base/must.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

#define ECHO "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"

/* Text in the file, and the beginning of the only line that is then told. */
static const struct {
    const char *text;
    const char *problem;
} broken[] = {
    {"[listen f]\naddress = *:9-7\nservice = echo\n",
     "t.ini:2: [listen f] address: the range of '*:9-7' ends before it begins (127.0.0.1:7, "},
    {"[listen f]\naddress = *:7-\nservice = echo\n",
     "t.ini:2: [listen f] address: '*:7-' has no range of ports, as in *:7000-7010 ("},
    {"[listen f]\naddress = *:7-8-9\nservice = echo\n",
     "t.ini:2: [listen f] address: '*:7-8-9' has no range of ports, "},
    {"[listen f]\naddress = *:0-9\nservice = echo\n",
     "t.ini:2: [listen f] address: a port of '*:0-9' is not 1 to 65535 ("},
    {"[listen f]\naddress = *:9-65536\nservice = echo\n",
     "t.ini:2: [listen f] address: a port of '*:9-65536' is not 1 to 65535 ("},
    {"[listen f]\naddress = localhost:7-8\nservice = echo\n",
     "t.ini:2: [listen f] address: 'localhost:7' is a host name, "},
    {"[listen f]\naddress = *:1-65535\nservice = echo\n",
     "t.ini:2: [listen f] address: too many addresses, at most 1024 for one listener ("},
    {ECHO "[listen f]\naddress = 127.0.0.1:5-9\nservice = echo\n",
     "t.ini:5: [listen f] address: '127.0.0.1:7' is taken by line 2, [listen e] (each address "},
    {"[listen f]\naddress = 127.0.0.1:5-9, 127.0.0.1:8-12\nservice = echo\n",
     "t.ini:2: [listen f] address: '127.0.0.1:8' is taken by line 2, [listen f] (each address "},
    {"[listen f]\naddress = 127.0.0.1:5-9\nservice = echo\n[listen g]\naddress = *:6-12\n"
     "service = echo\n",
     "t.ini:5: [listen g] address: '0.0.0.0:6' conflicts with '127.0.0.1:6' of line 2, [listen "},
    {"[listen f]\naddress = 127.0.0.3:6-8, 127.0.0.1:7\nservice = echo\n[listen g]\naddress = "
     "127.0.0.2:6-8\nservice = echo\n[listen h]\naddress = [::]:7, *:8\nservice = echo\n",
     "t.ini:8: [listen h] address: '0.0.0.0:8' conflicts with '127.0.0.3:8' of line 2, [listen "},
    {"[listen f]\naddress = 127.0.0.1:5-9\nservice = echo\n[listen g]\naddress = 127.0.0.1:10-14\n"
     "service = echo\n[listen h]\naddress = 127.0.0.1:15, 127.0.0.1:12-14\nservice = echo\n",
     "t.ini:8: [listen h] address: '127.0.0.1:12' is taken by line 5, [listen g] (each address "},
    {ECHO "[admin]\naddress = 127.0.0.1:8-9\n", "t.ini:5: [admin] address: "},
};

GROUP(ranges, text_file_enter, config_file_leave);

TEST_EACH(ranges, wrong_range_is_reported_once_with_its_line, ARRAY_LEN(broken))
{
    ck_assert_int_eq(config_file_load_text(broken[_i].text), -EINVAL);
    ck_assert_msg(strncmp(config_file.problems, broken[_i].problem, strlen(broken[_i].problem)) ==
                      0,
                  "%s", config_file.problems);
    ck_assert_str_eq(strchr(config_file.problems, '\n'), "\n");
}
