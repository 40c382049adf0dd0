/* tls/tls_tickets: the keys of a process, and what another process makes of them. */
#include "tls/tls_tickets.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

GROUP(own_keys, NULL, NULL);

TEST(own_keys, are_those_of_the_process_before)
{
    struct other other;

    run_other(&other);
    ck_assert_uint_gt(other.len, 0);
    ck_assert_int_eq(use(&other.ticket, false), 0);
    ck_assert_int_eq(tls_tickets_import_own(other.keys, other.len), 0);
    ck_assert_int_eq(use(&other.ticket, false), 1);
    ck_assert_int_eq(use(&(struct ticket){.name = "other"}, false), 0);
}

TEST(own_keys, are_exported_as_they_were_imported)
{
    uint8_t again[TLS_TICKETS_OWN_BYTES];
    struct other other;

    ck_assert_uint_eq(tls_tickets_export_own(again), 0);
    run_other(&other);
    ck_assert_int_eq(tls_tickets_import_own(other.keys, other.len), 0);
    ck_assert_uint_eq(tls_tickets_export_own(again), other.len);
    ck_assert_mem_eq(again, other.keys, other.len);
}

TEST(own_keys, of_another_version_are_refused_and_change_nothing)
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
