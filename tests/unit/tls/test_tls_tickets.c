/* tls/tls_tickets: the keys of a process, and what another process makes of them. */
#include "tls/tls_tickets.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/suite.h"

struct ticket {
    unsigned char name[16], iv[16];
};

/* Return what the library's callback would return. */
static int use(struct ticket *ticket, bool encrypts)
{
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    const struct tls_tickets_use use = {.name = ticket->name,
                                        .iv = ticket->iv,
                                        .cipher = EVP_CIPHER_CTX_new(),
                                        .mac = EVP_MAC_CTX_new(mac),
                                        .encrypts = encrypts};
    int rc = tls_tickets_use(NULL, &use);

    EVP_CIPHER_CTX_free(use.cipher);
    EVP_MAC_CTX_free(use.mac);
    EVP_MAC_free(mac);
    return rc;
}

struct other {
    struct ticket ticket;
    uint8_t keys[TLS_TICKETS_OWN_BYTES];
    size_t len;
};

/* Another process makes a ticket, and exports its keys. */
static void run_other(struct other *o)
{
    int ends[2], status;
    pid_t pid;

    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (use(&o->ticket, true) != 1)
            _exit(1);
        o->len = tls_tickets_export_own(o->keys);
        _exit(write(ends[1], o, sizeof(*o)) == sizeof(*o) ? 0 : 1);
    }
    ck_assert_int_eq(read(ends[0], o, sizeof(*o)), sizeof(*o));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    close(ends[0]);
    close(ends[1]);
}

/* Where the exported keys have the instant of the next rotation: behind the mark. */
#define ROTATION_AT 8

/* Import what this process exports, with the next rotation at ${at_ns}. */
static void set_rotation(int64_t at_ns)
{
    uint8_t keys[TLS_TICKETS_OWN_BYTES];
    size_t len = tls_tickets_export_own(keys);

    ck_assert_uint_gt(len, 0);
    memcpy(keys + ROTATION_AT, &at_ns, sizeof(at_ns));
    ck_assert_int_eq(tls_tickets_import_own(keys, len), 0);
}

static int64_t next_rotation_ns(void)
{
    uint8_t keys[TLS_TICKETS_OWN_BYTES];
    int64_t at_ns;

    ck_assert_uint_gt(tls_tickets_export_own(keys), 0);
    memcpy(&at_ns, keys + ROTATION_AT, sizeof(at_ns));
    return at_ns;
}

GROUP(own_keys, NULL, NULL);

TEST(own_keys, imported_keys_decrypt_tickets_of_the_previous_process)
{
    struct other other;

    run_other(&other);
    ck_assert_uint_gt(other.len, 0);
    ck_assert_int_eq(use(&other.ticket, false), 0);
    ck_assert_int_eq(tls_tickets_import_own(other.keys, other.len), 0);
    ck_assert_int_eq(use(&other.ticket, false), 1);
    ck_assert_int_eq(use(&(struct ticket){.name = "other"}, false), 0);
}

TEST(own_keys, imported_keys_are_exported_unchanged)
{
    uint8_t again[TLS_TICKETS_OWN_BYTES];
    struct other other;

    ck_assert_uint_eq(tls_tickets_export_own(again), 0);
    run_other(&other);
    ck_assert_int_eq(tls_tickets_import_own(other.keys, other.len), 0);
    ck_assert_uint_eq(tls_tickets_export_own(again), other.len);
    ck_assert_mem_eq(again, other.keys, other.len);
}

TEST(own_keys, keys_of_another_version_are_refused_and_change_nothing)
{
    struct ticket mine;
    struct other other;

    run_other(&other);
    ck_assert_int_eq(use(&mine, true), 1);
    ck_assert_int_eq(tls_tickets_import_own(other.keys, other.len - 1), -EINVAL);
    ck_assert_int_eq(tls_tickets_import_own(other.keys, 0), -EINVAL);
    other.keys[0] ^= 1;
    ck_assert_int_eq(tls_tickets_import_own(other.keys, other.len), -EINVAL);
    other.keys[0] ^= 1;
    other.keys[16] = 3; /* more keys than there are */
    ck_assert_int_eq(tls_tickets_import_own(other.keys, other.len), -EINVAL);
    ck_assert_int_eq(use(&other.ticket, false), 0);
    ck_assert_int_eq(use(&mine, false), 1);
}

TEST(own_keys, previous_key_decrypts_and_renews_the_ticket)
{
    struct ticket old, current;

    ck_assert_int_eq(use(&old, true), 1);
    set_rotation(clock_now_ns());
    ck_assert_int_eq(use(&old, false), 2);
    ck_assert_int_eq(use(&current, true), 1);
    ck_assert_mem_ne(current.name, old.name, sizeof(old.name));
    ck_assert_int_eq(use(&current, false), 1);
    ck_assert_int_eq(use(&old, false), 2);
}

TEST(own_keys, key_before_the_previous_one_is_forgotten)
{
    struct ticket old, previous;

    ck_assert_int_eq(use(&old, true), 1);
    set_rotation(clock_now_ns());
    ck_assert_int_eq(use(&previous, true), 1);
    set_rotation(clock_now_ns());
    ck_assert_int_eq(use(&old, false), 0);
    ck_assert_int_eq(use(&previous, false), 2);
}

TEST(own_keys, one_key_encrypts_for_the_lifetime_of_a_ticket)
{
    int64_t from_ns = clock_now_ns();
    struct ticket first, later;

    ck_assert_int_eq(use(&first, true), 1);
    ck_assert_int_ge(next_rotation_ns(), from_ns + TLS_TICKETS_SECONDS * NS_PER_S);
    ck_assert_int_le(next_rotation_ns(), clock_now_ns() + TLS_TICKETS_SECONDS * NS_PER_S);
    ck_assert_int_eq(use(&later, true), 1);
    ck_assert_mem_eq(later.name, first.name, sizeof(first.name));
}

/* As if the other process had a longer lifetime. */
TEST(own_keys, imported_keys_encrypt_no_longer_than_own_keys)
{
    struct ticket ticket;

    ck_assert_int_eq(use(&ticket, true), 1);
    set_rotation(clock_now_ns() + 2 * TLS_TICKETS_SECONDS * NS_PER_S);
    ck_assert_int_le(next_rotation_ns(), clock_now_ns() + TLS_TICKETS_SECONDS * NS_PER_S);
    ck_assert_int_eq(use(&ticket, false), 1);
}
