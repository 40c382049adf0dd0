/* config/config_edits: servers that are added to a configuration, and removed from it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/config_edits.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "upstream/upstream.h"

#define FIRST  "[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nupstream = u\n"
#define FILE_1 FIRST "[upstream u]\nserver.a = 127.0.0.1:9\nserver.b = 127.0.0.1:10 weight=2\n"

#define FILE_3                                                             \
    FIRST "[upstream u]\nserver.a = 127.0.0.1:1\nserver.b = 127.0.0.1:2\n" \
          "server.c = 127.0.0.1:3\n"

/* The configuration with edits; NULL: none so far. */
static struct config *edited;
static char *notes;

static void edits_setup(void)
{
    text_file_enter();
    ck_assert_int_eq(config_file_load_text(FILE_1), 0);
}

static void edits_teardown(void)
{
    config_free(edited);
    edited = NULL;
    free(notes);
    notes = NULL;
    config_file_leave();
}

GROUP(edits, edits_setup, edits_teardown);

static struct config *running(void)
{
    return edited ? edited : config_file.config;
}

/* Edit one server of u; the problem. */
static const char *edit(const char *id, const char *line, int rc)
{
    static struct config_edit one;
    struct config_edits *e;
    struct config *next;

    one = (struct config_edit){.upstream = "u", .server = id, .line = line};
    ck_assert_int_eq(config_edits_begin(&e, running(), 1), 0);
    ck_assert_int_eq(config_edits_server(e, &one), rc);
    if (rc < 0) {
        config_edits_cancel(e);
        return one.problem;
    }
    next = config_edits_end(e);
    config_free(edited);
    edited = next;
    return one.problem;
}

/* The server lines of u. */
static const char *lines_of(const struct config *config)
{
    static char text[1000];
    const struct upstream_conf *up = &config->server.upstreams[0];

    text[0] = '\0';
    for (unsigned i = 0; i < up->n_servers; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s=%s*%u ", up->servers[i].id,
                 up->servers[i].address_text, up->servers[i].weight);
    return text;
}

/* Load another file, with the edits in force, and read the notes. */
static void move(const char *text)
{
    size_t size;
    FILE *f;

    free(notes);
    f = open_memstream(&notes, &size);
    if (!edited) /* the loaded one is about to go */
        edited = config_edits_base(config_file.config);
    ck_assert_int_eq(config_file_load_text(text), 0);
    ck_assert_int_eq(config_edits_move(&config_file.config, edited, f), 0);
    fclose(f);
    config_free(edited);
    edited = NULL;
}

TEST(edits, added_server_is_parsed_as_in_file_and_removed_one_is_gone)
{
    edit("c", "127.0.0.1:11 weight=3 backup", 0);
    ck_assert_str_eq(lines_of(running()), "a=127.0.0.1:9*1 b=127.0.0.1:10*2 c=127.0.0.1:11*3 ");
    ck_assert(running()->server.upstreams[0].servers[2].backup);
    edit("a", NULL, 0);
    edit("b", NULL, 0);
    ck_assert_str_eq(lines_of(running()), "c=127.0.0.1:11*3 ");
    ck_assert_uint_eq(config_edits_count(running()), 3);
    ck_assert_str_eq(lines_of(config_file.config), "a=127.0.0.1:9*1 b=127.0.0.1:10*2 ");
}

TEST(edits, change_and_its_opposite_leave_no_edit)
{
    edit("c", "127.0.0.1:11", 0);
    edit("c", NULL, 0);
    edit("b", NULL, 0);
    edit("b", "127.0.0.1:10 weight=2", 0);
    ck_assert_uint_eq(config_edits_count(running()), 0);
    edit("d", "127.0.0.1:12", 0); /* what it has of the file is still there */
    ck_assert_str_eq(lines_of(running()), "a=127.0.0.1:9*1 b=127.0.0.1:10*2 d=127.0.0.1:12*1 ");
}

TEST(edits, wrong_edit_is_refused_and_changes_nothing)
{
    ck_assert_str_eq(edit("a", "127.0.0.1:1", -EEXIST), "server 'u/a' exists already");
    ck_assert_str_eq(edit("x", NULL, -ENOENT), "server 'u/x' does not exist");
    ck_assert_ptr_nonnull(strstr(edit("x", "127.0.0.1:1 wieght=1", -EINVAL),
                                 "[upstream u] server.x: 'wieght=1' is not known (ADDRESS "));
    ck_assert_ptr_nonnull(strstr(edit("x", "127.0.0.1:8", -EINVAL), "a proxy loop"));
    ck_assert_ptr_nonnull(strstr(edit("X", "127.0.0.1:1", -EINVAL), "upper case"));
    edit("b", NULL, 0);
    ck_assert_ptr_nonnull(strstr(edit("a", NULL, -EINVAL), "is the last server"));
    ck_assert_str_eq(lines_of(running()), "a=127.0.0.1:9*1 ");
}

TEST(edits, server_beyond_limit_of_upstream_is_refused)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    fputs(FIRST "[upstream u]\n", f);
    for (unsigned i = 0; i < BALANCER_MAX_ENDPOINTS; i++)
        fprintf(f, "server.s%u = 127.0.0.1:9\n", i);
    fclose(f);
    ck_assert_int_eq(config_file_load_text(text), 0);
    free(text);
    ck_assert_str_eq(edit("x", "127.0.0.1:1", -E2BIG), "upstream u has 65535 servers, the maximum");
    edit("s77", NULL, 0);
    edit("x", "127.0.0.1:1", 0);
}

TEST(edits, several_edits_at_a_time_are_one_configuration)
{
    struct config_edit one = {.upstream = "u", .line = "127.0.0.1:1"};
    struct config_edits *e;
    char id[16];

    ck_assert_int_eq(config_edits_begin(&e, running(), 9), 0);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(id, sizeof(id), "n%u", i);
        one.server = id;
        ck_assert_int_eq(config_edits_server(e, &one), 0);
    }
    one.line = NULL;
    ck_assert_int_eq(config_edits_server(e, &one), 0);
    edited = config_edits_end(e);
    ck_assert_uint_eq(running()->server.upstreams[0].n_servers, 9);
    ck_assert_uint_eq(config_edits_count(running()), 7);
}

TEST(edits, new_file_keeps_edits_of_servers_with_same_line)
{
    edit("c", "127.0.0.1:11", 0);
    edit("a", NULL, 0);
    edit("b", NULL, 0);
    edit("b", "127.0.0.1:10 weight=7", 0);
    move(FILE_1 "server.d = 127.0.0.1:12\n");
    ck_assert_str_eq(notes, "");
    ck_assert_str_eq(lines_of(config_file.config),
                     "b=127.0.0.1:10*7 d=127.0.0.1:12*1 c=127.0.0.1:11*1 ");
}

TEST(edits, new_file_ends_edits_of_servers_with_another_line)
{
    edit("c", "127.0.0.1:11", 0);
    edit("a", NULL, 0);
    move(FIRST "[upstream u]\nserver.a = 127.0.0.1:9 weight=4\nserver.c = 127.0.0.1:13\n");
    ck_assert_str_eq(lines_of(config_file.config), "a=127.0.0.1:9*4 c=127.0.0.1:13*1 ");
    ck_assert_uint_eq(config_edits_count(config_file.config), 0);
    ck_assert_ptr_nonnull(strstr(notes, "upstream u: server c: added by an administrator: not so"));
    ck_assert_ptr_nonnull(strstr(notes, "upstream u: server a: removed by an administrator: not"));
}

TEST(edits, edits_that_new_file_agrees_with_end_without_note)
{
    edit("c", "127.0.0.1:11", 0);
    edit("a", NULL, 0);
    move(FIRST "[upstream u]\nserver.b = 127.0.0.1:10 weight=2\nserver.c = 127.0.0.1:11\n");
    ck_assert_uint_eq(config_edits_count(config_file.config), 0);
    ck_assert_str_eq(notes, "");
}

TEST(edits, edit_of_removed_upstream_ends_with_note)
{
    edit("c", "127.0.0.1:11", 0);
    move("[listen e]\naddress = 127.0.0.1:7\nservice = echo\n");
    ck_assert_uint_eq(config_edits_count(config_file.config), 0);
    ck_assert_ptr_nonnull(strstr(notes, "upstream 'u' does not exist"));
}

TEST(edits, last_servers_of_new_file_stay)
{
    edit("a", NULL, 0);
    move(FIRST "[upstream u]\nserver.a = 127.0.0.1:9\n");
    ck_assert_str_eq(lines_of(config_file.config), "a=127.0.0.1:9*1 ");
    ck_assert_ptr_nonnull(strstr(notes, "is the last server"));
}

TEST(edits, edits_reach_another_process_as_text)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    edit("c", "127.0.0.1:11", 0);
    edit("a", NULL, 0);
    edit("b", NULL, 0);
    edit("b", "127.0.0.1:10 weight=7", 0);
    config_edits_write(running(), f);
    fclose(f);
    ck_assert_str_eq(text, "edit u/c + 0 - 127.0.0.1:11\nedit u/a - 11 127.0.0.1:9\n"
                           "edit u/b + 21 127.0.0.1:10 weight=2 127.0.0.1:10 weight=7\n");
    ck_assert_int_eq(config_file_load_text(FILE_1), 0);
    ck_assert_int_eq(config_edits_read(&config_file.config, text, stderr), 0);
    ck_assert_str_eq(lines_of(config_file.config), "b=127.0.0.1:10*7 c=127.0.0.1:11*1 ");
    free(text);
}

/* The order of the servers after the edits reached another process. */
static const char *lines_elsewhere(void)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    config_edits_write(running(), f);
    fclose(f);
    ck_assert_int_eq(config_file_load_text(FILE_3), 0);
    ck_assert_int_eq(config_edits_read(&config_file.config, text, stderr), 0);
    free(text);
    return lines_of(config_file.config);
}

TEST(edits, server_of_file_that_is_added_again_is_where_file_has_it)
{
    ck_assert_int_eq(config_file_load_text(FILE_3), 0);
    edit("a", NULL, 0);
    edit("a", "127.0.0.1:1", 0);
    ck_assert_str_eq(lines_of(running()), "a=127.0.0.1:1*1 b=127.0.0.1:2*1 c=127.0.0.1:3*1 ");
    ck_assert_uint_eq(config_edits_count(running()), 0);
    edit("b", NULL, 0);
    edit("x", "127.0.0.1:9", 0);
    edit("a", NULL, 0);
    edit("b", "127.0.0.1:2", 0);
    ck_assert_str_eq(lines_of(running()), "b=127.0.0.1:2*1 c=127.0.0.1:3*1 x=127.0.0.1:9*1 ");
    edit("a", "127.0.0.1:1", 0);
    edit("c", NULL, 0);
    edit("c", "127.0.0.1:3", 0);
    ck_assert_str_eq(lines_of(running()),
                     "a=127.0.0.1:1*1 b=127.0.0.1:2*1 c=127.0.0.1:3*1 x=127.0.0.1:9*1 ");
}

TEST(edits, order_in_another_process_is_that_of_this_one)
{
    static const struct {
        const char *id, *line;
    } edits[] = {{"y", "127.0.0.1:18"}, {"a", NULL}, {"x", "127.0.0.1:9"},  {"b", NULL},
                 {"b", "127.0.0.1:22"}, {"y", NULL}, {"a", "127.0.0.1:11"}, {"y", "127.0.0.1:18"},
                 {"c", NULL},           {"a", NULL}, {"a", "127.0.0.1:1"},  {"x", NULL},
                 {"x", "127.0.0.1:9"},  {"b", NULL}, {"c", "127.0.0.1:33"}};
    char here[500];

    ck_assert_int_eq(config_file_load_text(FILE_3), 0);
    edited = config_edits_base(config_file.config);
    for (unsigned i = 0; i < ARRAY_LEN(edits); i++) {
        edit(edits[i].id, edits[i].line, 0);
        snprintf(here, sizeof(here), "%s", lines_of(running()));
        ck_assert_str_eq(lines_elsewhere(), here);
    }
}

/* The text of the running configuration. */
static char *dump(void)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    ck_assert_int_eq(config_dump(running(), f), 0);
    fclose(f);
    return text;
}

TEST(edits, line_that_no_file_could_keep_is_refused_and_any_other_can_be_loaded)
{
    static const char *const lines[] = {"/tmp/a'b",      "/tmp/a\"b", "/tmp/a#b", "/tmp/a;b",
                                        "/tmp/\xc3\xa9", "/tmp/a\\",  "/tmp/$a",  "/tmp/$$"};
    char *text;

    ck_assert_ptr_nonnull(strstr(edit("x", "/tmp/a'\"b", -EINVAL), "which no file could keep"));
    ck_assert_ptr_nonnull(strstr(edit("x", "/tmp/${A}", -EINVAL), "which no file could keep"));
    for (unsigned i = 0; i < ARRAY_LEN(lines); i++) {
        edit("x", lines[i], 0);
        text = dump();
        ck_assert_int_eq(config_file_load_text(text), 0);
        free(text);
        ck_assert_str_eq(config_file.config->server.upstreams[0].servers[2].address_text, lines[i]);
        edit("x", NULL, 0);
    }
}

TEST(edits, text_that_is_cut_anywhere_is_read_as_far_as_it_goes)
{
    static const char text[] = "edit u/c + 0 - 127.0.0.1:11\nedit u/b - 21 127.0.0.1:10 weight=2\n";
    char cut[sizeof(text)];
    FILE *f = fopen("/dev/null", "w");

    for (size_t n = 0; n < sizeof(text); n++) {
        memcpy(cut, text, n);
        cut[n] = '\0';
        ck_assert_int_eq(config_file_load_text(FILE_1), 0);
        ck_assert_int_eq(config_edits_read(&config_file.config, cut, f), 0);
    }
    fclose(f);
    ck_assert_str_eq(lines_of(config_file.config), "a=127.0.0.1:9*1 c=127.0.0.1:11*1 ");
}

TEST(edits, unchanged_upstreams_keep_their_memory)
{
    struct arena *memory;

    ck_assert_int_eq(config_file_load_text(FILE_1 "[upstream v]\nserver.a = 127.0.0.1:20\n"), 0);
    memory = config_file.config->server.upstreams[1].memory;
    edit("c", "127.0.0.1:11", 0);
    ck_assert_ptr_eq(running()->server.upstreams[1].memory, memory);
    ck_assert_ptr_ne(running()->server.upstreams[0].memory,
                     config_file.config->server.upstreams[0].memory);
}
