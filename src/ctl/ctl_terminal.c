#include "ctl/ctl_terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* ECMA-48 and xterm's control sequences: alternate screen, cursor. */
#define ENTER      "\033[?1049h\033[?25l\033[H\033[2J"
#define LEAVE      "\033[0m\033[?25h\033[?1049l"
#define HOME       "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_REST "\033[J"

#define DEFAULT_COLUMNS 80
#define DEFAULT_ROWS    24

/*
 * State for signal handlers; all but `is_open` and `is_resized` is set before they are installed.
 */
static struct {
    struct termios before, full_screen;
    bool has_keys; /* standard input is a terminal, too */
    sigset_t while_waiting;
    volatile sig_atomic_t is_open, is_resized;
} terminal;

static const int fatal_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT};

/* Write ${codes}. Async-signal-safe, as are tcsetattr(3) and write(2). */
static void ctl_terminal_put(const char *codes)
{
    ssize_t rc = write(STDOUT_FILENO, codes, strlen(codes));

    (void)rc; /* the terminal may be gone */
}

static void ctl_terminal_enter(void)
{
    if (terminal.has_keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &terminal.full_screen);
    ctl_terminal_put(ENTER);
}

static void ctl_terminal_leave(void)
{
    ctl_terminal_put(LEAVE);
    if (terminal.has_keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
}

/* Restore the terminal; the default action of the signal follows when this function returns. */
static void ctl_terminal_on_fatal(int signal_number)
{
    if (terminal.is_open)
        ctl_terminal_leave();
    terminal.is_open = 0;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void ctl_terminal_on_stop(int signal_number)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    struct sigaction ours;
    int error = errno;
    sigset_t set;

    ctl_terminal_leave();
    sigaction(signal_number, &by_default, &ours);
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &set, NULL); /* the process is stopped here until SIGCONT */
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigaction(signal_number, &ours, NULL);
    ctl_terminal_enter();
    terminal.is_resized = 1;
    errno = error;
}

static void ctl_terminal_on_resize(int signal_number)
{
    (void)signal_number;
    terminal.is_resized = 1;
}

static void ctl_terminal_catch(int signal_number, void (*handler)(int signal_number))
{
    struct sigaction action = {.sa_handler = handler}, before;

    sigfillset(&action.sa_mask); /* one handler at a time restores the terminal */
    MUST(sigaction(signal_number, NULL, &before) == 0);
    if (before.sa_handler != SIG_IGN) /* ignored, as under nohup(1) */
        MUST(sigaction(signal_number, &action, NULL) == 0);
}

/* Deliver SIGWINCH and SIGTSTP only while ctl_terminal_wait() waits, so that it misses none. */
static void ctl_terminal_block_resize(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGTSTP);
    MUST(sigprocmask(SIG_BLOCK, &set, &terminal.while_waiting) == 0);
    sigdelset(&terminal.while_waiting, SIGWINCH);
    sigdelset(&terminal.while_waiting, SIGTSTP);
}

int ctl_terminal_open(void)
{
    if (!isatty(STDOUT_FILENO))
        return -ENOTTY;
    terminal.has_keys = tcgetattr(STDIN_FILENO, &terminal.before) == 0;
    terminal.full_screen = terminal.before;
    terminal.full_screen.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    terminal.full_screen.c_cc[VMIN] = 1;
    terminal.full_screen.c_cc[VTIME] = 0;
    ctl_terminal_block_resize();
    terminal.is_open = 1;
    for (size_t i = 0; i < ARRAY_LEN(fatal_signals); i++)
        ctl_terminal_catch(fatal_signals[i], ctl_terminal_on_fatal);
    ctl_terminal_catch(SIGTSTP, ctl_terminal_on_stop);
    ctl_terminal_catch(SIGWINCH, ctl_terminal_on_resize);
    MUST(atexit(ctl_terminal_close) == 0);
    ctl_terminal_enter();
    return 0;
}

void ctl_terminal_close(void)
{
    if (!terminal.is_open)
        return;
    terminal.is_open = 0;
    ctl_terminal_leave();
}

struct ctl_terminal_size ctl_terminal_size(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0)
        return (struct ctl_terminal_size){DEFAULT_COLUMNS, DEFAULT_ROWS};
    return (struct ctl_terminal_size){size.ws_col, size.ws_row};
}

static int ctl_terminal_key(void)
{
    unsigned char key;
    ssize_t n = read(STDIN_FILENO, &key, 1);

    if (n == 1)
        return key;
    return n < 0 && (errno == EINTR || errno == EAGAIN) ? CTL_TERMINAL_NOTHING : CTL_TERMINAL_GONE;
}

int ctl_terminal_wait(int64_t timeout_ns)
{
    struct pollfd input = {.fd = terminal.has_keys ? STDIN_FILENO : -1, .events = POLLIN};
    const struct timespec timeout = {.tv_sec = timeout_ns / NS_PER_S,
                                     .tv_nsec = timeout_ns % NS_PER_S};
    int n = ppoll(&input, 1, &timeout, &terminal.while_waiting);

    if (terminal.is_resized) {
        terminal.is_resized = 0;
        return CTL_TERMINAL_RESIZED;
    }
    return n > 0 ? ctl_terminal_key() : CTL_TERMINAL_NOTHING;
}

void ctl_terminal_draw(const char *frame)
{
    fputs(HOME, stdout);
    while (*frame) {
        size_t len = strcspn(frame, "\n");

        fwrite(frame, 1, len, stdout);
        fputs(CLEAR_LINE, stdout);
        frame += len;
        if (frame[0] == '\n' && frame[1] != '\0')
            fputs("\r\n", stdout);
        frame += *frame == '\n';
    }
    fputs(CLEAR_REST, stdout);
    fflush(stdout);
}
