/* daemon/notify: what arrives at the socket of a service manager. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/notify.h"

static int manager_fd;

/* A service manager's socket, in the abstract name space so that nothing stays behind. */
static void setup(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[64];
    int len = snprintf(name, sizeof(name), "@reactord-test-notify-%ld", (long)getpid());

    memcpy(address.sun_path + 1, name + 1, (size_t)len - 1);
    manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(manager_fd, 0);
    ck_assert_int_eq(bind(manager_fd, (struct sockaddr *)&address,
                          (socklen_t)offsetof(struct sockaddr_un, sun_path) + (socklen_t)len),
                     0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
}

static void teardown(void)
{
    close(manager_fd);
}

/* The next message that arrived, "" for none. */
static const char *received(void)
{
    static char message[512];
    ssize_t n = recv(manager_fd, message, sizeof(message) - 1, 0);

    message[n > 0 ? n : 0] = '\0';
    return message;
}

START_TEST(ready_is_told_with_the_process_and_a_status)
{
    char expected[128];

    notify_ready("Accepting, listen addresses: %d", 3);
    snprintf(expected, sizeof(expected),
             "READY=1\nMAINPID=%ld\nSTATUS=Accepting, listen addresses: 3\n", (long)getpid());
    ck_assert_str_eq(received(), expected);
}
END_TEST

START_TEST(stopping_is_told_with_a_status)
{
    notify_stopping("Draining, sessions left: %u", 2u);
    ck_assert_str_eq(received(), "STOPPING=1\nSTATUS=Draining, sessions left: 2\n");
}
END_TEST

START_TEST(a_status_alone_changes_no_state)
{
    notify_status("Draining, sessions left: %u", 1u);
    ck_assert_str_eq(received(), "STATUS=Draining, sessions left: 1\n");
}
END_TEST

START_TEST(an_extension_is_told_in_microseconds)
{
    notify_extend(20 * NS_PER_S);
    ck_assert_str_eq(received(), "EXTEND_TIMEOUT_USEC=20000000\n");
}
END_TEST

START_TEST(a_status_that_is_too_long_is_cut)
{
    char status[1024];
    const char *message;

    memset(status, 'x', sizeof(status) - 1);
    status[sizeof(status) - 1] = '\0';
    notify_status("%s", status);
    message = received();
    ck_assert_uint_gt(strlen(message), 200);
    ck_assert_str_eq(message + strlen(message) - 2, "x\n");
}
END_TEST

START_TEST(without_a_service_manager_nothing_is_sent)
{
    ck_assert_int_eq(unsetenv("NOTIFY_SOCKET"), 0);
    notify_ready("ready");
    notify_stopping("stopping");
    notify_status("status");
    notify_extend(NS_PER_S);
    ck_assert_str_eq(received(), "");
}
END_TEST

START_TEST(a_service_manager_that_is_gone_is_no_error)
{
    close(manager_fd);
    notify_ready("ready");
    notify_status("status");
    manager_fd = -1;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("daemon/notify");
    TCase *tc = tcase_create("notify");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, ready_is_told_with_the_process_and_a_status);
    tcase_add_test(tc, stopping_is_told_with_a_status);
    tcase_add_test(tc, a_status_alone_changes_no_state);
    tcase_add_test(tc, an_extension_is_told_in_microseconds);
    tcase_add_test(tc, a_status_that_is_too_long_is_cut);
    tcase_add_test(tc, without_a_service_manager_nothing_is_sent);
    tcase_add_test(tc, a_service_manager_that_is_gone_is_no_error);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
