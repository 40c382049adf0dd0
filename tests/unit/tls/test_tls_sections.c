/* tls/tls_sections: which section a client gets, by the name it asks for, and its sessions. */
#include "tls/tls_sections.h"

#include <openssl/ssl.h>

#include "support/certificates.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "tls/tls_hello.h"
#include "tls/tls_profile.h"
#include "tls/tls_slot.h"
#include "tls/tls_stream.h"

#define SECTIONS 3

static struct certificate ca, leaf;
static struct tls_slot *slots[SECTIONS];
static struct tls_sections *sections;
static struct tls_profile *client;
static SSL *at_client;
static struct tls_stream *stream;

static void setup(void)
{
    text_file_enter();
    certificates_make(&ca, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificates_write("ca.pem", "c", &ca);
}

static void forget(void)
{
    tls_sections_release(sections);
    sections = NULL;
    for (unsigned i = 0; i < SECTIONS; i++) {
        tls_slot_release(slots[i]);
        slots[i] = NULL;
    }
}

static void teardown(void)
{
    tls_stream_free(stream);
    SSL_free(at_client);
    forget();
    tls_profile_release(client);
    certificates_free(&leaf);
    certificates_free(&ca);
    text_file_leave();
}

GROUP(sections, setup, teardown);

static struct tls_profile *load(const struct tls_profile_conf *conf)
{
    struct tls_profile *p;
    char why[512];

    ck_assert_msg(tls_profile_load(conf, &p, why, sizeof(why)) == 0, "%s", why);
    return p;
}

struct wish {
    const char *name;
    const char *hosts;    /* in the certificate; NULL: none for a client to ask for */
    const char *names[3]; /* option `names` */
    const char *client_ca;
    enum tls_unknown_name unknown_name;
};

static struct tls_profile *make(const struct wish *w)
{
    const char *path = "a.pem";
    struct tls_profile_conf conf = {.name = w->name,
                                    .for_clients = true,
                                    .certificates = {&path, 1},
                                    .names = {(const char **)w->names, 0},
                                    .client_ca = w->client_ca,
                                    .unknown_name = w->unknown_name};

    while (conf.names.n < 3 && w->names[conf.names.n])
        conf.names.n++;
    certificates_free(&leaf);
    certificates_make(&leaf,
                      &(struct certificate_wish){.name = "no name",
                                                 .hosts = w->hosts ? w->hosts : "IP:192.0.2.1",
                                                 .issuer = &ca});
    certificates_write("a.pem", "ck", &leaf, &leaf);
    return load(&conf);
}

static void use(const struct wish *list, unsigned n)
{
    const char *names[SECTIONS];

    forget();
    for (unsigned i = 0; i < n; i++) {
        names[i] = list[i].name;
        ck_assert_int_eq(tls_slot_create(&slots[i], make(&list[i])), 0);
    }
    ck_assert_int_eq(tls_sections_create(&sections, names, slots, n), 0);
}

static const char *chosen(const char *sni)
{
    const char *section = NULL;

    tls_profile_release(tls_sections_choose(sections, sni, &section));
    return section;
}

TEST(sections, exact_name_before_wildcard_before_the_first)
{
    static const struct wish list[] = {{.name = "first", .hosts = "DNS:a.example"},
                                       {.name = "wild", .hosts = "DNS:*.b.example,DNS:c.example"},
                                       {.name = "exact", .hosts = "DNS:x.b.example,DNS:*.d"}};

    use(list, 3);
    ck_assert_str_eq(chosen("a.example"), "first");
    ck_assert_str_eq(chosen("c.example"), "wild");
    ck_assert_str_eq(chosen("y.b.example"), "wild");
    ck_assert_str_eq(chosen("x.b.example"), "exact");
    ck_assert_str_eq(chosen("z.y.b.example"), "first");
    ck_assert_str_eq(chosen("b.example"), "first");
    ck_assert_str_eq(chosen("z.d"), "exact");
    ck_assert_str_eq(chosen("d"), "first");
    ck_assert_str_eq(chosen(""), "first");
}

TEST(sections, first_of_equal_names_wins)
{
    static const struct wish list[] = {{.name = "none"},
                                       {.name = "one", .hosts = "DNS:a.example,DNS:*.b"},
                                       {.name = "two", .hosts = "DNS:a.example,DNS:*.b"}};

    use(list, 3);
    ck_assert_str_eq(chosen("a.example"), "one");
    ck_assert_str_eq(chosen("x.b"), "one");
}

TEST(sections, names_replace_those_of_the_certificates)
{
    static const struct wish list[] = {
        {.name = "all", .hosts = "DNS:*.example"},
        {.name = "some", .hosts = "DNS:*.example", .names = {"api.example", "*.x.example"}}};

    use(list, 2);
    ck_assert_str_eq(chosen("api.example"), "some");
    ck_assert_str_eq(chosen("y.x.example"), "some");
    ck_assert_str_eq(chosen("www.example"), "all");
}

TEST(sections, a_replaced_profile_is_used_at_once)
{
    static const struct wish list[] = {{.name = "a", .hosts = "DNS:a.example"},
                                       {.name = "b", .hosts = "DNS:b.example"}};
    static const struct wish other = {.name = "b", .hosts = "DNS:c.example"};

    use(list, 2);
    tls_slot_replace(slots[1], make(&other));
    ck_assert_str_eq(chosen("b.example"), "a");
    ck_assert_str_eq(chosen("c.example"), "b");
}

TEST(sections, shared_names_are_counted_and_the_first_is_told)
{
    static const struct wish a = {.name = "a", .hosts = "DNS:z.example,DNS:*.y,DNS:b.example"};
    static const struct wish b = {.name = "b", .hosts = "DNS:z.example,DNS:*.y,DNS:c.example"};
    static const struct wish none = {.name = "none"};
    struct tls_profile *one = make(&a), *two = make(&b), *empty = make(&none);
    const char *first;

    ck_assert_uint_eq(tls_profile_shared_names(two, &one, 1, &first), 2);
    ck_assert_str_eq(first, "*.y");
    ck_assert_uint_eq(tls_profile_shared_names(two, NULL, 0, &first), 3);
    ck_assert_uint_eq(tls_profile_shared_names(empty, NULL, 0, &first), 0);
    ck_assert_uint_eq(tls_profile_shared_names(two, &empty, 1, &first), 0);
    tls_profile_release(one);
    tls_profile_release(two);
    tls_profile_release(empty);
}

/* ---- handshakes ---- */

/* The server's end for a client whose first bytes these are. */
static void open_stream(const uint8_t *data, size_t len)
{
    struct tls_hello *hello;
    const char *section;
    struct tls_profile *p;

    ck_assert_int_eq(tls_hello_create(&hello, data, len), 0);
    p = tls_sections_choose(sections, hello->sni, &section);
    tls_stream_free(stream);
    ck_assert_int_eq(tls_stream_create(&stream, tls_profile_new_server(p)), 0);
    tls_stream_set_hello(stream, hello);
    tls_profile_release(p);
    tls_hello_release(hello);
}

/* True: the server has finished its handshake with a client that asks for ${name}. */
static bool shake(const char *name, int version, SSL_SESSION *session)
{
    static uint8_t data[16384];
    enum tls_stream_result result = TLS_STREAM_INPUT;
    const uint8_t *records;
    char byte;
    size_t n;

    SSL_free(at_client);
    at_client = tls_profile_new_client(client, name, CLIENT_HELLO_NONE);
    SSL_set_max_proto_version(at_client, version);
    ck_assert(!session || SSL_set_session(at_client, session) == 1);
    SSL_set_bio(at_client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    for (int i = 0; i < 6 && result == TLS_STREAM_INPUT; i++) {
        int got;

        SSL_do_handshake(at_client);
        got = BIO_read(SSL_get_wbio(at_client), data, sizeof(data));
        if (i == 0)
            open_stream(data, (size_t)got);
        tls_stream_input(stream, data, got > 0 ? (size_t)got : 0);
        result = tls_stream_handshake(stream);
        records = tls_stream_output(stream, &n);
        if (n > 0)
            ck_assert_int_eq(BIO_write(SSL_get_rbio(at_client), records, (int)n), (int)n);
    }
    SSL_do_handshake(at_client);
    SSL_read(at_client, &byte, 1); /* tickets of TLS 1.3 */
    return result == TLS_STREAM_DONE;
}

static bool is_resumed(void)
{
    return SSL_session_reused(tls_stream_ssl(stream)) == 1;
}

static SSL_SESSION *last;

static int keep_session(SSL *ssl, SSL_SESSION *session)
{
    (void)ssl;
    SSL_SESSION_free(last);
    last = session;
    return 1;
}

static void load_client(void)
{
    const struct tls_profile_conf conf = {
        .name = "c", .for_servers = true, .verify = TLS_VERIFY_OFF};
    SSL *ssl;

    client = load(&conf);
    ssl = tls_profile_new_client(client, "a.example", CLIENT_HELLO_NONE);
    SSL_CTX_set_session_cache_mode(SSL_get_SSL_CTX(ssl),
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(SSL_get_SSL_CTX(ssl), keep_session);
    SSL_free(ssl);
}

/* The name moves from a section without a CA to one that demands a certificate. */
TEST_EACH(sections, a_session_is_not_resumed_in_another_section, 2)
{
    static const struct wish before[] = {{.name = "open", .hosts = "DNS:a.example"},
                                         {.name = "closed", .hosts = "DNS:b.example"}};
    static const struct wish after[] = {{.name = "open", .hosts = "DNS:b.example"},
                                        {.name = "closed", .hosts = "DNS:a.example"}};
    static const struct wish demanding[] = {
        {.name = "open", .hosts = "DNS:b.example"},
        {.name = "closed", .hosts = "DNS:a.example", .client_ca = "ca.pem"}};
    int version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    SSL_SESSION *session;

    load_client();
    use(before, 2);
    ck_assert(shake("a.example", version, NULL));
    ck_assert_ptr_nonnull(last);
    session = SSL_SESSION_dup(last);
    ck_assert(shake("a.example", version, session));
    ck_assert(is_resumed());
    use(after, 2);
    ck_assert(shake("a.example", version, session));
    ck_assert(!is_resumed());
    use(demanding, 2);
    ck_assert(!shake("a.example", version, session));
    SSL_SESSION_free(session);
    SSL_SESSION_free(last);
}

/* A reload of one section makes no other one forget its sessions. */
TEST_EACH(sections, other_sections_keep_their_sessions, 2)
{
    static const struct wish list[] = {{.name = "a", .hosts = "DNS:a.example"},
                                       {.name = "b", .hosts = "DNS:b.example"}};
    static const struct wish other = {.name = "b", .hosts = "DNS:b.example", .client_ca = "ca.pem"};
    int version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    SSL_SESSION *session;

    load_client();
    use(list, 2);
    ck_assert(shake("a.example", version, NULL));
    session = SSL_SESSION_dup(last);
    tls_slot_replace(slots[1], make(&other));
    ck_assert(shake("a.example", version, session));
    ck_assert(is_resumed());
    SSL_SESSION_free(session);
    SSL_SESSION_free(last);
}

TEST(sections, a_name_of_the_option_is_not_unknown)
{
    static const struct wish list[] = {{.name = "strict",
                                        .hosts = "DNS:a.example",
                                        .names = {"b.example"},
                                        .unknown_name = TLS_UNKNOWN_NAME_REJECT}};

    load_client();
    use(list, 1);
    ck_assert(shake("a.example", TLS1_3_VERSION, NULL));
    ck_assert(shake("b.example", TLS1_3_VERSION, NULL));
    ck_assert(!shake("c.example", TLS1_3_VERSION, NULL));
    SSL_SESSION_free(last);
}
