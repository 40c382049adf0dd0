# reactord. `make help` lists the targets.

VERSION := 0.1.0

PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR  ?= $(PREFIX)/bin
SBINDIR ?= $(PREFIX)/sbin
MANDIR  ?= $(PREFIX)/share/man
DOCDIR  ?= $(PREFIX)/share/doc/reactord
CONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)/reactord
BASH_COMPLETION_DIR ?= $(PREFIX)/share/bash-completion/completions
# systemd reads these below /usr/local, too.
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
LOGROTATEDIR ?= $(if $(filter /usr,$(PREFIX)),,$(PREFIX))/etc/logrotate.d
UNITDIR ?= $(if $(filter /usr,$(PREFIX)),/lib,$(PREFIX)/lib)/systemd/system

# BUILD: where results go. SANITIZE: address,undefined or thread. WERROR=1: warnings are errors.
# V=1: show whole commands.
BUILD    ?= build
SANITIZE ?=
WERROR   ?=
V        ?=

quoted = '$(subst ','\'',$(1))'

# Make splits names at spaces, so a BUILD with spaces is used through a symbolic link beside the Makefile.
ifneq ($(words $(BUILD)),1)
override BUILD := $(shell dir=$(call quoted,$(BUILD)); link=build-link-$$(printf %s "$$dir" | cksum | cut -d ' ' -f 1); \
                    mkdir -p "$$dir" && ln -sfn "$$(cd "$$dir" && pwd)" "$$link" && echo "$$link")
endif

PKG_CONFIG   ?= pkg-config
PYTHON       ?= python3
CLANG_FORMAT ?= clang-format
INSTALL      ?= install

# CFLAGS, CPPFLAGS, LDFLAGS and LDLIBS are the user's: what the build itself needs is in variables of its own.
CFLAGS ?= -O2 -g

# What the compiler builds for; asked once, and not before it is needed.
MACHINE = $(eval MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null))$(MACHINE)

FORTIFY = $(if $(SANITIZE)$(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),, \
            $(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),-D_FORTIFY_SOURCE=3))
HARDEN  = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer, \
            -fstack-protector-strong -fstack-clash-protection \
            $(if $(filter x86_64-%,$(MACHINE)),-fcf-protection))
WARNINGS = -Wall -Wextra $(if $(filter-out 0,$(WERROR)),-Werror) -Wshadow -Wstrict-prototypes \
           -Wmissing-prototypes -Wvla

ALL_CPPFLAGS = -D_GNU_SOURCE -DREACTORD_VERSION='"$(VERSION)"' -Isrc -U_FORTIFY_SOURCE $(FORTIFY) $(CPPFLAGS)
ALL_CFLAGS   = -std=c11 -pthread -fPIE -fno-strict-aliasing $(WARNINGS) $(HARDEN) $(CFLAGS)
ALL_LDFLAGS  = -pthread -pie $(if $(SANITIZE),-fsanitize=$(SANITIZE),-Wl,-z,relro,-z,now) $(LDFLAGS)

# Only for what says it to a user, so that another PREFIX for `make install` compiles little anew.
PATH_CPPFLAGS = -DREACTORD_CONFIG='"$(CONFDIR)/reactord.ini"' \
                -DREACTORD_LIBSYSTEMD='"$(shell $(PKG_CONFIG) --modversion libsystemd)"'

# libev and iniparser have no pkg-config file in Debian. libm and libresolv are part of libc.
ALL_LDLIBS     = -lm -lev -liniparser -lmicrohttpd -ljansson -lseccomp -lssl -lcrypto -lresolv $(SYSTEMD_LDLIBS) $(LDLIBS)
SYSTEMD_LDLIBS = $(eval SYSTEMD_LDLIBS := $(shell $(PKG_CONFIG) --libs libsystemd))$(SYSTEMD_LDLIBS)
# Of reactorctl.
CTL_LDLIBS     = $(eval CTL_LDLIBS := $(shell $(PKG_CONFIG) --libs libcurl jansson))$(CTL_LDLIBS)
CHECK_CFLAGS   = $(eval CHECK_CFLAGS := $(shell $(PKG_CONFIG) --cflags check))$(CHECK_CFLAGS)
CHECK_LDLIBS   = $(eval CHECK_LDLIBS := $(shell $(PKG_CONFIG) --libs check))$(CHECK_LDLIBS)

BUILD_PACKAGES := gcc libc6-dev pkg-config libev-dev libiniparser-dev libmicrohttpd-dev libjansson-dev \
                  libsystemd-dev libssl-dev libseccomp-dev libcurl4-openssl-dev netcat-openbsd
TEST_PACKAGES  := clang clang-format check libsubunit-dev spin python3 mandoc procps iproute2 psmisc strace \
                  socat curl openssl redis-server redis-tools nginx-light libnginx-mod-stream haproxy \
                  wrk iperf3 dnsmasq-base debootstrap systemd-container keepalived nftables iputils-ping \
                  crun python3-yaml python3-kubernetes \
                  gnutls-bin stunnel4 postgresql postfix rsyslog prometheus chromium chromium-driver

# Of test-programs alone: 200 MB on disk.
PROGRAM_PACKAGES := mariadb-server slapd redis-server redis-tools postgresql postfix

LAYERS  := base ini engine net stats tls limits balance check upstream names handlers service listen sessions spare server handover \
           option config admin system log reload upgrade daemon
SOURCES := $(foreach layer,$(LAYERS),$(wildcard src/$(layer)/*.c))
MAIN    := $(BUILD)/src/daemon/main.o
OBJECTS := $(filter-out $(MAIN),$(SOURCES:%.c=$(BUILD)/%.o))
LIBRARY := $(BUILD)/libreactord.a
PROGRAM := $(BUILD)/reactord

# reactorctl: of the layers it uses base.
CTL_SOURCES := $(wildcard src/ctl/*.c)
CTL_MAIN    := $(BUILD)/src/ctl/main.o
CTL_OBJECTS := $(filter-out $(CTL_MAIN),$(CTL_SOURCES:%.c=$(BUILD)/%.o))
CTL_LIBRARY := $(BUILD)/libreactorctl.a
CTL_PROGRAM := $(BUILD)/reactorctl

SUPPORT      := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))
# Many cases, and no thread that ThreadSanitizer could see.
UNTHREADED   := $(if $(filter thread,$(SANITIZE)),$(patsubst %,tests/unit/%.c,config/% option/% ini/% ctl/% admin/test_arguments admin/test_host daemon/test_cli \
                    base/test_buffer base/test_parse handlers/test_frame_decoder% limits/test_acl limits/test_prefix_table \
                    net/test_address net/test_cidr net/test_proxy_header% net/test_resolve net/test_sock% \
                    tls/test_client_hello% tls/test_server_name \
                    balance/test_balancer_keys balance/test_balancer_steps))
UNIT_TESTS   := $(patsubst %.c,$(BUILD)/%,$(filter-out $(UNTHREADED),$(wildcard tests/unit/*/test_*.c)))
# In front of functions of libraries these put their own, which others must not get.
UNIT_ALONE    := $(filter $(addprefix $(BUILD)/tests/unit/, reload/test_process_change daemon/test_run% \
                     system/test_safe_open system/test_watchdog_feeder engine/test_watchdog engine/test_watchdog_doze \
                     net/test_channel_end net/test_connector \
                     net/test_connector_race sessions/test_overload server/test_threads \
                     check/test_check check/test_check_answer check/test_checker check/test_checker_life \
                     check/test_checker_pace),$(UNIT_TESTS))
UNIT_JOINED   := $(filter-out $(UNIT_ALONE),$(UNIT_TESTS))
UNIT_TOGETHER := $(BUILD)/tests/unit/together
STRESS_TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/stress/*.c))
FUZZERS      := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS      := $(FUZZERS:%=$(BUILD)/tests/fuzz/replay_%)

quiet = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)';)

.PHONY: all
all: $(PROGRAM) $(CTL_PROGRAM)

.PHONY: help
help:
	@sed -n 's/^#: //p' $(firstword $(MAKEFILE_LIST))

#: make [all]               build build/reactord and build/reactorctl (CC=clang, SANITIZE=..., BUILD=DIR, V=1)
#: make deps                install what building needs (Debian; deps-deb: what the package needs)
#: make deps-test           install what the tests need, among it servers, which Debian may start (see TEST_PACKAGES)
#: make quickstart          run an echo on the default config and have a real client answered
#: make check               all tests: lint, models, unit, stress, fuzz corpus, integration
#: make asan | tsan         the unit, stress and integration tests under sanitizers
#: make test-unit | test-stress | test-fuzz-corpus | test-integration | lint
#: make test-accepting      the integration tests with workers that accept, unless a test says otherwise
#: make test-programs       each named health check against the real server, also MariaDB and slapd, which it installs
#: make test-faults         every call of the C library fails in each phase (minutes; FAULT_SEED=N repeats a run)
#: make test-kills          either process of an upgrade is killed at each call of the hand-off (minutes; FAULT_SEED=N repeats a run)
#: make test-tls-long       the tests of TLS with more of everything (minutes)
#: make static              gcc -fanalyzer, clang-tidy and cppcheck, as Debian 12 has them, over src (minutes; STATIC_FLAGS="--tool gcc")
#: make house               figures of the source: sizes, folders, circles of includes; lint holds their limits
#: make model               check the wake-up and the gate with Spin (MODEL=long: minutes)
#: make monkey               sessions of every kind that move without pause, for a minute
#: make soak                 streams that know every byte, beside random actions (DURATION=60, SEED=N, SOAK_FLAGS; asan-soak, tsan-soak)
#: make stress-long         the stress tests at full load, the queue under TSan too (minutes)
#: make fuzz-NAME           fuzz one parser for FUZZ_SECONDS (600): config, acl, hand_over, ctl, ...: tests/fuzz/README.md lists them
#: make mutate              faults in FILE=src/... or LAYER=... that no test notices (COUNT, SEED, MUTATE_GOAL; root, minutes)
#: make bench               compare with bare loops, HAProxy and nginx (BENCH_FLAGS)
#: make bench-tls            what TLS costs, and what handshakes cost other clients, beside HAProxy and nginx (BENCH_FLAGS, ISOLATION_FLAGS)
#: make bench-engine        compare the engine with Netty, libuv and a loop by hand (BENCH_FLAGS)
#: make bench-failover      whose clients fail when servers fail, beside HAProxy and nginx (root; BENCH_FLAGS)
#: make bench-pair            what clients notice when the address of a pair moves, beside HAProxy (root, keepalived, nftables; BENCH_FLAGS)
#: make bench-examples       how many clients are lost after each fault, with the configurations of conf/examples/from-*
#: make bench-slow-server    what clients notice of a slow or stalling server, by balancing method, beside HAProxy and nginx (BENCH_FLAGS)
#: make bench-control        what clients notice while thousands of sessions are listed or ended, beside HAProxy (BENCH_FLAGS)
#: make bench-servers        what clients notice of servers that are added and removed, beside HAProxy (BENCH_FLAGS)
#: make bench-report         all rows and memory, as a page with tables and plots (python3-matplotlib; HAPROXY, HAPROXY3, NGINX, BENCH_FLAGS)
#: make bench-upgrade        what becomes of open sessions at an upgrade, beside HAProxy and nginx (BENCH_FLAGS)
#: make bench-nodes          what becomes of connections when a node behind a router leaves, dies or is upgraded (root; BENCH_FLAGS)
#: make bench-skew           what light connections notice of heavy ones on one loop, beside HAProxy and nginx (BENCH_FLAGS)
#: make bench-io-ratio       what io_ratio does to tasks and to clients, under three mixes (BENCH_FLAGS)
#: make bench-moves          how long a client waits while its session moves to another loop (BENCH_FLAGS)
#: make bench-resize         what clients notice of workers that come and go, beside HAProxy and nginx (BENCH_FLAGS)
#: make bench-reload         what clients notice of reloads and upgrades, beside HAProxy and nginx (BENCH_FLAGS)
#: make test-build          build with other flags, paths and tools, and install (minutes)
#: make test-systemd        run it as a service of a systemd that systemd-nspawn boots in a new Debian root (as root)
#: make test-fresh          the two commands of README.md in new Debian 12 and 13 roots (as root; FRESH="trixie:quickstart")
#: make install | uninstall PREFIX, DESTDIR, BINDIR, SBINDIR, MANDIR, DOCDIR, CONFDIR, UNITDIR
#: make deb                 build the Debian package in BUILD/deb, clean for lintian
#: make test-deb            build, install, upgrade and purge it in new Debian 12 and 13 roots, booted (as root)
#: make image               an OCI image in BUILD/image from the programs and this machine's libraries: no network, no root
#: make dist | format | clean

# ---- build ----

# What is built depends on the flags it is built with: each of these files changes when its flags do.
FLAGS      := $(BUILD)/flags
PATH_FLAGS := $(BUILD)/flags-path
write_flags = @mkdir -p $(@D); printf '%s\n' $(call quoted,$(1)) > $@.new; \
              if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi

.PHONY: FORCE
$(FLAGS): FORCE
	$(call write_flags,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(TEST_CFLAGS) $(ALL_LDFLAGS) $(ALL_LDLIBS))
$(PATH_FLAGS): FORCE
	$(call write_flags,$(PATH_CPPFLAGS))

$(PROGRAM): $(MAIN) $(LIBRARY)
	$(call quiet,LINK,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

$(CTL_PROGRAM): $(CTL_MAIN) $(CTL_LIBRARY) $(LIBRARY)
	$(call quiet,LINK,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(CTL_LDLIBS) -lm $(LDLIBS)

$(LIBRARY): $(OBJECTS)
$(CTL_LIBRARY): $(CTL_OBJECTS)
$(LIBRARY) $(CTL_LIBRARY):
	$(call quiet,AR,$@)rm -f $@ && $(AR) rcs $@ $^

WITH_PATHS := $(BUILD)/src/daemon/cli.o $(BUILD)/tests/unit/daemon/test_cli.o
$(WITH_PATHS): $(PATH_FLAGS)
$(WITH_PATHS): private ALL_CPPFLAGS += $(PATH_CPPFLAGS)

$(BUILD)/src/%.o: src/%.c $(FLAGS)
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/src/admin/route_page.o: $(wildcard src/admin/page*)

$(BUILD)/tests/%.o: tests/%.c $(FLAGS)
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALL_CPPFLAGS) -Itests $(CHECK_CFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Half the time to compile; only the stress tests have to be fast.
TEST_CFLAGS ?= -O0 -U_FORTIFY_SOURCE
$(BUILD)/tests/unit/%: private ALL_CFLAGS += $(TEST_CFLAGS)
$(BUILD)/tests/support/%: private ALL_CFLAGS += $(TEST_CFLAGS)

link_test = $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
            $(CHECK_LDLIBS) $(ALL_LDLIBS) -ldl -Wl,--as-needed $(CTL_LDLIBS)

# For tests/support/fault: allocations that fail.
WRAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc

$(UNIT_TESTS) $(UNIT_TOGETHER): $(BUILD)/tests/unit/main.o
$(UNIT_TOGETHER): $(UNIT_JOINED:%=%.o) $(SUPPORT) $(CTL_LIBRARY) $(LIBRARY)
	$(call quiet,TEST,$@)$(link_test) $(WRAP)
$(UNIT_TESTS) $(STRESS_TESTS): %: %.o $(SUPPORT) $(CTL_LIBRARY) $(LIBRARY)
	$(call quiet,TEST,$@)$(link_test) $(WRAP)

$(BUILD)/tests/lint/%: $(BUILD)/tests/lint/%.o $(CTL_LIBRARY) $(LIBRARY)
	$(call quiet,TEST,$@)$(link_test)

$(BUILD)/tests/fuzz/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/replay.o $(CTL_LIBRARY) $(LIBRARY)
	$(call quiet,TEST,$@)$(link_test)

# Kept: what make finds a way to by itself it removes again.
.SECONDARY: $(FUZZERS:%=$(BUILD)/tests/fuzz/fuzz_%.o) $(BUILD)/tests/fuzz/replay.o \
            $(BUILD)/tests/lint/print_options.o $(BUILD)/tests/lint/print_commands.o

-include $(shell find $(BUILD)/ -type f -name '*.d' 2>/dev/null)

# ---- tests ----

# Side by side, unless -j says otherwise: most tests wait most of the time.
.PHONY: check
check:
	$(MAKE) $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc)) checks

.PHONY: checks
checks: lint model test-mutate test-unit test-stress test-fuzz-corpus test-integration

TEST_JOBS ?= $(shell echo $$((3 * $$(nproc))))

# A process for each suite.
.PHONY: test-unit
test-unit: $(UNIT_TOGETHER) $(UNIT_ALONE)
	@printf '%s\n' $(UNIT_ALONE) \
	    $(patsubst $(BUILD)/tests/unit/%,'CK_RUN_SUITE=% $(UNIT_TOGETHER)',$(subst /test_,/,$(UNIT_JOINED))) | \
	    tests/unit/run.sh $(TEST_JOBS) $(BUILD)/tests/unit/output

.PHONY: test-stress
test-stress: $(STRESS_TESTS)
	@for test in $^; do "$$test" || { echo "failed: $$test"; exit 1; }; done

# Ten times the usual load; ten million single tasks for the wake-up, and eight times a million under TSan for the queue.
.PHONY: stress-long
stress-long: $(STRESS_TESTS)
	$(MAKE) BUILD=$(BUILD)-tsan SANITIZE=thread $(BUILD)-tsan/tests/stress/queue
	@set -e; for test in $(filter-out %/queue %/wakeup,$^); do "$$test" 10; done
	$(BUILD)/tests/stress/queue
	$(BUILD)/tests/stress/wakeup 50
	TSAN_OPTIONS=halt_on_error=1 $(BUILD)-tsan/tests/stress/queue 10

# Sessions of every kind that move from loop to loop without pause, beside resets and reloads, for a minute.
.PHONY: monkey
monkey: $(PROGRAM) $(CTL_PROGRAM)
	$(PYTHON) tests/integration/run.py --reactord $(PROGRAM) --long -k "session_moves: every session moves each"

# Configuration and actions are drawn from SEED, another one each time: tests/soak/README.md.
DURATION ?= 60
.PHONY: soak asan-soak tsan-soak
soak: $(PROGRAM) $(CTL_PROGRAM)
	$(PYTHON) tests/soak/run.py --reactord $(PROGRAM) --duration $(DURATION) \
	    $(if $(filter file,$(origin SEED)),,--seed $(SEED)) $(SOAK_FLAGS)
asan-soak:
	+ASAN_OPTIONS=$(ASAN_DAEMON) $(make_asan) soak
tsan-soak:
	+TSAN_OPTIONS=$(call quoted,$(TSAN_DAEMON)) $(make_tsan) soak

.PHONY: model
model:
	tests/model/run.sh $(BUILD)/model $(MODEL)

.PHONY: test-fuzz-corpus
test-fuzz-corpus: $(REPLAYS)
	@set -e; for name in $(FUZZERS); do \
	    $(BUILD)/tests/fuzz/replay_$$name tests/fuzz/corpus/$$name/*; done

.PHONY: test-integration
test-integration: $(PROGRAM) $(CTL_PROGRAM)
	$(PYTHON) tests/integration/run.py --reactord $(PROGRAM) $(if $(SANITIZE),--sanitized) \
	    --jobs $(TEST_JOBS) --most $$((2 * $(TEST_JOBS) + 2)) $(TEST_FLAGS)

# The same where the workers accept, unless a test says otherwise.
make_accepting = $(MAKE) BUILD=$(BUILD)-accepting CPPFLAGS='$(CPPFLAGS) -DBOSS_THREADS="\"0\""'
.PHONY: test-accepting
test-accepting:
	+$(make_accepting) test-integration

# With 10,000 slow clients, 20 MB in records of a byte, and certificates replaced every second for a minute.
.PHONY: test-tls-long
test-tls-long: $(PROGRAM) $(CTL_PROGRAM)
	$(PYTHON) tests/integration/run.py --reactord $(PROGRAM) --jobs 2 --long -v -k tls

# Each call of the C library fails, at the start, while clients are served, in reloads, upgrades and answers.
.PHONY: test-faults
test-faults: $(PROGRAM) $(CTL_PROGRAM)
	$(PYTHON) tests/integration/run.py --reactord $(PROGRAM) --jobs 2 --long -v -k "fault_plan:" $(TEST_FLAGS)

# Either process of an upgrade is killed at each call by which sessions change hands.
.PHONY: test-kills
test-kills: $(PROGRAM) $(CTL_PROGRAM)
	$(PYTHON) tests/integration/run.py --reactord $(PROGRAM) --jobs 2 --long -v -k "upgrade_kills:" $(TEST_FLAGS)

# The named health checks against real servers, also those that make check is too light for. Debian may start them.
.PHONY: test-programs
test-programs: $(PROGRAM) $(CTL_PROGRAM)
	$(APT) update
	$(APT) install -y --no-install-recommends $(PROGRAM_PACKAGES)
	$(PYTHON) tests/integration/run.py --reactord $(PROGRAM) --jobs 2 -v -k _states

# All that the tests run.
.PHONY: build-tests
build-tests: $(PROGRAM) $(CTL_PROGRAM) $(UNIT_TOGETHER) $(UNIT_ALONE) $(STRESS_TESTS)

# Half the time to compile, and lines enough for a report.
SANITIZED_CFLAGS ?= -O1 -g1

ASAN_DAEMON = detect_leaks=1
TSAN_DAEMON = halt_on_error=1:second_deadlock_stack=1:history_size=6:suppressions=$(CURDIR)/tests/support/tsan.supp
make_asan = $(MAKE) BUILD=build-asan SANITIZE=address,undefined CFLAGS='$(SANITIZED_CFLAGS)'
make_tsan = $(MAKE) BUILD=build-tsan SANITIZE=thread CFLAGS='$(SANITIZED_CFLAGS)'

.PHONY: asan tsan asan-build tsan-build
asan-build:
	+$(make_asan) build-tests
tsan-build:
	+$(make_tsan) build-tests
asan:
	+ASAN_OPTIONS=$(ASAN_DAEMON) CK_TIMEOUT_MULTIPLIER=5 \
	    $(make_asan) test-unit test-stress test-fuzz-corpus test-integration
tsan:
	+TSAN_OPTIONS=$(call quoted,$(TSAN_DAEMON)) \
	CK_TIMEOUT_MULTIPLIER=5 \
	    $(make_tsan) test-unit test-stress test-integration

.PHONY: lint
lint: $(PROGRAM) $(CTL_PROGRAM) $(BUILD)/tests/lint/print_options $(BUILD)/tests/lint/print_commands
	$(PYTHON) tests/lint/check_format.py $(CLANG_FORMAT)
	$(PYTHON) tests/lint/check_layers.py
	$(PYTHON) tests/lint/house.py --check
	$(PYTHON) tests/lint/check_symbols.py $(BUILD)
	$(if $(SANITIZE),,$(PYTHON) tests/lint/check_hardening.py $(if $(strip $(FORTIFY)),--fortify) $(BUILD))
	$(PYTHON) tests/lint/check_headers.py
	$(PYTHON) tests/lint/check_sizes.py
	$(PYTHON) tests/lint/check_design.py
	$(PYTHON) tests/lint/check_options.py $(BUILD)/tests/lint/print_options
	$(PYTHON) tests/lint/check_migrating.py $(BUILD)/tests/lint/print_options
	$(PYTHON) tests/lint/check_statistics.py
	$(PYTHON) tests/lint/check_commands.py $(BUILD)/tests/lint/print_commands
	@mkdir -p $(BUILD)/tests/lint && $(substitute) systemd/reactord.service > $(BUILD)/tests/lint/reactord.service
	$(PYTHON) tests/lint/check_unit.py $(BUILD)/tests/lint/reactord.service
	mandoc -T lint -W warning man/reactord.8 man/reactord.ini.5 man/reactord-migrating.7 man/reactord-fleet.7 man/reactorctl.1
	$(PROGRAM) -t -c conf/reactord.ini
	$(PROGRAM) -t -c conf/reactord-minimal.ini

# What is accepted, with the reason: tests/lint/static.txt.
.PHONY: static
static:
	$(PYTHON) tests/lint/static.py --jobs $$(nproc) $(STATIC_FLAGS) -- \
	    $(call quoted,$(ALL_CPPFLAGS) $(PATH_CPPFLAGS) $(ALL_CFLAGS))

# How much there is to read, in which folders, and what includes itself in a circle.
.PHONY: house
house:
	$(PYTHON) tests/lint/house.py

.PHONY: format
format:
	$(PYTHON) tests/lint/check_format.py $(CLANG_FORMAT) -i

# One fault at a time: tests/mutate/README.md.
COUNT       ?= 20
SEED        ?= 1
MUTATE_GOAL ?= 85
.PHONY: mutate test-mutate
mutate:
	$(PYTHON) tests/mutate/mutate.py --file '$(FILE)' --layer '$(LAYER)' --count $(COUNT) --seed '$(SEED)' \
	    --goal $(MUTATE_GOAL) $(MUTATE_FLAGS)
test-mutate:
	$(PYTHON) -B tests/mutate/test_operators.py --quiet

# For tests/mutate: how one object is compiled and a program linked.
.PHONY: mutate-commands
mutate-commands:
	@printf '%s\n' $(call quoted,layers=$(LAYERS)) \
	    $(call quoted,compile=$(CC) $(ALL_CPPFLAGS) $(PATH_CPPFLAGS) $(ALL_CFLAGS)) \
	    $(call quoted,link=$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)) \
	    $(call quoted,libraries=$(ALL_LDLIBS) $(CTL_LDLIBS)) \
	    $(call quoted,test_libraries=$(CHECK_LDLIBS) $(ALL_LDLIBS) $(CTL_LDLIBS) -ldl $(WRAP))

# Lines that the unit and the integration tests run, by folder (COVERAGE_FLAGS: --goal, --files; see tests/build/coverage.py).
.PHONY: coverage
# Of fork() and execve() only GNU C counts what was run before.
coverage: private export CFLAGS = -std=gnu11 -O0 -g0 --coverage -fprofile-update=atomic
coverage: private export LDFLAGS = --coverage -Wl,--wrap=_exit,--wrap=chroot,--wrap=open build-coverage/tests/build/coverage.o
coverage:
	for goal in build-coverage/tests/build/coverage.o build-tests; do \
	    $(MAKE) BUILD=build-coverage $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc)) CFLAGS='$(CFLAGS)' LDFLAGS='$(LDFLAGS)' WERROR= $$goal || exit; \
	done
	$(PYTHON) tests/build/coverage.py build-coverage $(COVERAGE_FLAGS)

FUZZ_SECONDS ?= 600
.PHONY: fuzz-%
fuzz-%:
	$(MAKE) BUILD=build-fuzz CC=clang SANITIZE=fuzzer-no-link,address,undefined \
	    build-fuzz/libreactord.a build-fuzz/libreactorctl.a
	clang $(ALL_CPPFLAGS) -Itests -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -o build-fuzz/fuzz_$* \
	    tests/fuzz/fuzz_$*.c build-fuzz/libreactorctl.a build-fuzz/libreactord.a \
	    $(ALL_LDLIBS) $(CTL_LDLIBS)
	mkdir -p build-fuzz/found_$*
	build-fuzz/fuzz_$* -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build-fuzz/ \
	    build-fuzz/found_$* tests/fuzz/corpus/$*

.PHONY: bench
bench: $(PROGRAM)
	$(MAKE) -C tests/bench
	$(PYTHON) tests/bench/run.py --reactord $(PROGRAM) $(BENCH_FLAGS)

.PHONY: bench-tls
bench-tls: $(PROGRAM)
	$(MAKE) -C tests/bench BUILD=$(abspath $(BUILD))/bench
	$(PYTHON) tests/bench/run.py --tls --rounds 5 --seconds 1 --reactord $(PROGRAM) \
	    --build $(abspath $(BUILD))/bench $(BENCH_FLAGS)
	$(PYTHON) tests/bench/isolation.py --rounds 3 --reactord $(PROGRAM) \
	    --build $(abspath $(BUILD))/bench $(ISOLATION_FLAGS)

.PHONY: bench-engine
bench-engine: $(PROGRAM)
	$(MAKE) -C tests/bench engine BUILD=$(abspath $(BUILD))/bench LIBRARY=$(abspath $(LIBRARY))
	$(PYTHON) tests/bench/engine/run.py --reactord $(PROGRAM) --build $(abspath $(BUILD))/bench \
	    $(BENCH_FLAGS)

.PHONY: bench-failover
bench-failover: $(PROGRAM)
	$(MAKE) -C tests/bench BUILD=$(abspath $(BUILD))/bench
	$(PYTHON) tests/bench/failover.py --reactord $(PROGRAM) --build $(abspath $(BUILD))/bench \
	    $(BENCH_FLAGS)

.PHONY: bench-pair
bench-pair: $(PROGRAM) $(CTL_PROGRAM)
	$(PYTHON) tests/bench/pair.py --reactord $(PROGRAM) $(BENCH_FLAGS)

.PHONY: bench-examples
bench-examples: $(PROGRAM)
	$(PYTHON) tests/bench/examples.py --reactord $(PROGRAM) $(BENCH_FLAGS)

.PHONY: bench-slow-server
bench-slow-server: $(PROGRAM)
	$(PYTHON) tests/bench/least_time.py --reactord $(PROGRAM) $(BENCH_FLAGS)

# reactord that measures its tasks: see tests/bench/control/task_cpu.c.
BENCH_TASKS := $(BUILD)/bench/reactord_tasks
$(BENCH_TASKS): tests/bench/control/task_cpu.c $(MAIN) $(LIBRARY)
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS) \
	    $(foreach f,loop_submit loop_submit_lazy loop_reap loop_schedule,-Wl,--wrap=$(f))

.PHONY: bench-control
bench-control: $(PROGRAM) $(BENCH_TASKS)
	$(MAKE) -C tests/bench BUILD=$(abspath $(BUILD))/bench
	$(PYTHON) tests/bench/control.py --reactord $(PROGRAM) --build $(abspath $(BUILD))/bench \
	    $(BENCH_FLAGS)

.PHONY: bench-servers
bench-servers: $(PROGRAM)
	$(MAKE) -C tests/bench BUILD=$(abspath $(BUILD))/bench
	$(PYTHON) tests/bench/servers.py --reactord $(PROGRAM) --build $(abspath $(BUILD))/bench \
	    $(BENCH_FLAGS)

.PHONY: bench-report
bench-report: $(PROGRAM)
	$(MAKE) -C tests/bench BUILD=$(abspath $(BUILD))/bench
	$(PYTHON) tests/bench/report.py --reactord $(PROGRAM) --build $(abspath $(BUILD))/bench \
	    --output $(abspath $(BUILD))/bench/report $(BENCH_FLAGS)

.PHONY: bench-upgrade
bench-upgrade: $(PROGRAM)
	$(PYTHON) tests/bench/upgrade.py --reactord $(PROGRAM) $(BENCH_FLAGS)

.PHONY: bench-nodes
bench-nodes: $(PROGRAM) $(CTL_PROGRAM)
	$(PYTHON) tests/bench/nodes.py --reactord $(PROGRAM) $(BENCH_FLAGS)

.PHONY: bench-skew
bench-skew: $(PROGRAM)
	$(MAKE) -C tests/bench BUILD=$(abspath $(BUILD))/bench
	$(PYTHON) tests/bench/skew.py --reactord $(PROGRAM) --build $(abspath $(BUILD))/bench \
	    $(BENCH_FLAGS)

.PHONY: bench-io-ratio
bench-io-ratio: $(PROGRAM)
	$(MAKE) -C tests/bench all engine BUILD=$(abspath $(BUILD))/bench LIBRARY=$(abspath $(LIBRARY))
	$(PYTHON) tests/bench/io_ratio.py --build $(abspath $(BUILD))/bench $(BENCH_FLAGS)

.PHONY: bench-moves
bench-moves: $(PROGRAM)
	$(PYTHON) tests/bench/moves.py --reactord $(PROGRAM) $(BENCH_FLAGS)

.PHONY: bench-resize
bench-resize: $(PROGRAM)
	$(PYTHON) tests/bench/reload.py --reactord $(PROGRAM) --workers 1,4,2,1 $(BENCH_FLAGS)

.PHONY: bench-reload
bench-reload: $(PROGRAM)
	$(PYTHON) tests/bench/reload.py --reactord $(PROGRAM) $(BENCH_FLAGS)

.PHONY: test-fresh
test-fresh:
	tests/build/fresh.sh $(FRESH)

.PHONY: test-systemd
test-systemd: $(PROGRAM)
	tests/systemd/run.sh $(TEST_FLAGS)

.PHONY: test-build
test-build:
	tests/build/variants.sh

# ---- a new machine ----

SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
# It waits for another apt, such as that of unattended-upgrades.
APT  := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300

.PHONY: deps deps-test deps-deb
deps:
	$(APT) update
	$(APT) install -y --no-install-recommends $(BUILD_PACKAGES)
deps-test:
	@echo 'deps-test: installs servers as clients and peers of the tests, which Debian may start:' \
	    '$(filter redis% nginx% haproxy postgres% postfix rsyslog prometheus stunnel4,$(TEST_PACKAGES))'
	$(APT) update
	$(APT) install -y --no-install-recommends $(BUILD_PACKAGES) $(TEST_PACKAGES)
# What .debian/control names.
deps-deb:
	$(APT) update
	$(APT) satisfy -y --no-install-recommends "build-essential, lintian, \
	    $$(sed -n '/^Build-Depends:/,/^[^ ]/ { s/^Build-Depends://; /^[A-Z]/d; p; }' .debian/control | tr -d '\n')"

.PHONY: quickstart
quickstart:
	$(MAKE) $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc)) all
	tests/integration/quickstart.sh $(PROGRAM) conf/reactord.ini

# With -j, too, what is needed is installed before it is used.
ifneq ($(filter deps%,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

# ---- install ----

substitute = sed -e $(call quoted,s|@SBINDIR@|$(SBINDIR)|g) -e $(call quoted,s|@CONFDIR@|$(CONFDIR)|g)
in_destdir = $(call quoted,$(DESTDIR)$(1))

EXAMPLE_DIRS := examples examples/from-haproxy examples/from-nginx examples/prometheus examples/grafana examples/kubernetes

.PHONY: install
install: $(PROGRAM) $(CTL_PROGRAM)
	$(INSTALL) -d $(call in_destdir,$(BINDIR)) $(call in_destdir,$(SBINDIR)) $(call in_destdir,$(CONFDIR)) \
	    $(call in_destdir,$(UNITDIR)) $(call in_destdir,$(BASH_COMPLETION_DIR)) \
	    $(call in_destdir,$(SYSUSERSDIR)) $(call in_destdir,$(TMPFILESDIR)) $(call in_destdir,$(LOGROTATEDIR)) \
	    $(call in_destdir,$(MANDIR)/man1) $(call in_destdir,$(MANDIR)/man5) $(call in_destdir,$(MANDIR)/man7) \
	    $(call in_destdir,$(MANDIR)/man8) $(EXAMPLE_DIRS:%=$(call in_destdir,$(DOCDIR)/%))
	$(INSTALL) -m 755 $(PROGRAM) $(call in_destdir,$(SBINDIR)/reactord)
	$(INSTALL) -m 755 $(CTL_PROGRAM) $(call in_destdir,$(BINDIR)/reactorctl)
	$(INSTALL) -m 644 conf/bash-completion/reactorctl $(call in_destdir,$(BASH_COMPLETION_DIR)/)
	$(INSTALL) -m 644 man/reactorctl.1 $(call in_destdir,$(MANDIR)/man1/)
	$(INSTALL) -m 644 man/reactord.8 $(call in_destdir,$(MANDIR)/man8/)
	$(INSTALL) -m 644 man/reactord.ini.5 $(call in_destdir,$(MANDIR)/man5/)
	$(INSTALL) -m 644 man/reactord-migrating.7 man/reactord-fleet.7 $(call in_destdir,$(MANDIR)/man7/)
	$(INSTALL) -m 644 $(wildcard conf/examples/*.*) $(call in_destdir,$(DOCDIR)/examples/)
	$(INSTALL) -m 644 $(wildcard conf/examples/from-haproxy/*) $(call in_destdir,$(DOCDIR)/examples/from-haproxy/)
	$(INSTALL) -m 644 $(wildcard conf/examples/from-nginx/*) $(call in_destdir,$(DOCDIR)/examples/from-nginx/)
	$(INSTALL) -m 644 $(wildcard conf/prometheus/*) $(call in_destdir,$(DOCDIR)/examples/prometheus/)
	$(INSTALL) -m 644 $(wildcard conf/grafana/*) $(call in_destdir,$(DOCDIR)/examples/grafana/)
	$(INSTALL) -m 644 $(wildcard conf/kubernetes/*.yaml) $(call in_destdir,$(DOCDIR)/examples/kubernetes/)
	$(substitute) systemd/reactord.service > $(call in_destdir,$(UNITDIR)/reactord.service)
	chmod 644 $(call in_destdir,$(UNITDIR)/reactord.service)
	$(INSTALL) -m 644 systemd/reactord.socket $(call in_destdir,$(UNITDIR)/reactord.socket)
	$(INSTALL) -m 644 systemd/reactord.sysusers $(call in_destdir,$(SYSUSERSDIR)/reactord.conf)
	$(INSTALL) -m 644 systemd/reactord.tmpfiles $(call in_destdir,$(TMPFILESDIR)/reactord.conf)
	$(INSTALL) -m 644 conf/reactord.logrotate $(call in_destdir,$(LOGROTATEDIR)/reactord)
	@# A configuration that is there is the administrator's.
	test -e $(call in_destdir,$(CONFDIR)/reactord.ini) || \
	    $(INSTALL) -m 644 conf/reactord.ini $(call in_destdir,$(CONFDIR)/reactord.ini)

.PHONY: uninstall
uninstall:
	rm -f $(call in_destdir,$(SYSUSERSDIR)/reactord.conf) $(call in_destdir,$(TMPFILESDIR)/reactord.conf) \
	    $(call in_destdir,$(LOGROTATEDIR)/reactord)
	rm -f $(call in_destdir,$(BINDIR)/reactorctl) $(call in_destdir,$(BASH_COMPLETION_DIR)/reactorctl) \
	    $(call in_destdir,$(MANDIR)/man1/reactorctl.1) \
	    $(call in_destdir,$(SBINDIR)/reactord) $(call in_destdir,$(UNITDIR)/reactord.service) \
	    $(call in_destdir,$(UNITDIR)/reactord.socket) $(call in_destdir,$(MANDIR)/man8/reactord.8) $(call in_destdir,$(MANDIR)/man5/reactord.ini.5) \
	    $(call in_destdir,$(MANDIR)/man7/reactord-migrating.7) $(call in_destdir,$(MANDIR)/man7/reactord-fleet.7)
	rm -rf $(call in_destdir,$(DOCDIR)/examples)

.PHONY: deb test-deb
deb:
	tests/build/deb.sh $(BUILD)/deb
test-deb:
	tests/build/deb_installed.sh $(SUITES)

# In the image reactord is installed below /usr, whatever PREFIX is: the one object that knows the paths comes before the library's.
IMAGE := $(BUILD)/image
$(IMAGE)/cli.o: private PATH_CPPFLAGS = -DREACTORD_CONFIG='"/etc/reactord/reactord.ini"' \
    -DREACTORD_LIBSYSTEMD='"$(shell $(PKG_CONFIG) --modversion libsystemd)"'
$(IMAGE)/cli.o: src/daemon/cli.c $(FLAGS)
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALL_CPPFLAGS) $(PATH_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(IMAGE)/reactord: $(MAIN) $(IMAGE)/cli.o $(LIBRARY)
	$(call quiet,LINK,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

.PHONY: image
image: $(IMAGE)/reactord $(CTL_PROGRAM)
	$(PYTHON) conf/kubernetes/image.py --reactord $(IMAGE)/reactord --reactorctl $(CTL_PROGRAM) --output $(IMAGE) \
	    --version $(VERSION)

# Without a repository, as in an unpacked archive, what is there goes into the archive, less what was built.
DIST_NAME  := reactord-$(VERSION)
DIST_FILES  = $(filter-out build build-% $(DIST_NAME) $(DIST_NAME).tar.gz,$(wildcard * .ci .clang-format .gitignore))

.PHONY: dist
dist:
	if test -e .git; then git archive --prefix=$(DIST_NAME)/ -o $(DIST_NAME).tar.gz HEAD; \
	else tar -czf $(DIST_NAME).tar.gz --owner=0 --group=0 --exclude=__pycache__ \
	    --transform='s|^|$(DIST_NAME)/|' $(DIST_FILES); fi

.PHONY: clean
clean:
	rm -rf build build-asan build-clang build-coverage build-tsan build-fuzz build-link-* $(DIST_NAME).tar.gz
