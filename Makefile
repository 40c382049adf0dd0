# reactord: `make help` lists the targets.
#
#   make [CC=clang] [BUILD=DIR] [SANITIZE=address,undefined|thread]

VERSION := 0.1.0

PREFIX  ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
MANDIR  ?= $(PREFIX)/share/man
CONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)/reactord
UNITDIR ?= $(if $(filter /usr,$(PREFIX)),/lib,$(PREFIX)/lib)/systemd/system

BUILD      ?= build
SANITIZE   ?=
PKG_CONFIG ?= pkg-config
PYTHON     ?= python3

CFLAGS   ?= -O2 -g
WARNINGS := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
CPPFLAGS += -D_GNU_SOURCE -DREACTORD_VERSION='"$(VERSION)"' \
            -DREACTORD_CONFIG='"$(CONFDIR)/reactord.ini"' -Isrc
ALL_CFLAGS := -std=c11 -pthread -fno-strict-aliasing $(WARNINGS) \
              $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer) $(CFLAGS)
ALL_LDFLAGS := -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)

# libev and iniparser have no pkg-config file in Debian.
LDLIBS       += -lev -liniparser $(shell $(PKG_CONFIG) --libs libsystemd)
CHECK_LDLIBS  = $(shell $(PKG_CONFIG) --libs check)
CHECK_CFLAGS  = $(shell $(PKG_CONFIG) --cflags check)

LAYERS   := base engine net service server daemon
SOURCES  := $(foreach l,$(LAYERS),$(wildcard src/$(l)/*.c))
OBJECTS  := $(SOURCES:%.c=$(BUILD)/%.o)
LIBRARY  := $(BUILD)/libreactord.a
PROGRAM  := $(BUILD)/reactord

UNIT_SOURCES := $(wildcard tests/unit/*/test_*.c)
UNIT_TESTS   := $(UNIT_SOURCES:%.c=$(BUILD)/%)
SUPPORT_OBJ  := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))

.PHONY: all
all: $(PROGRAM)

$(PROGRAM): $(BUILD)/src/daemon/main.o $(LIBRARY)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(LIBRARY): $(filter-out $(BUILD)/src/daemon/main.o,$(OBJECTS))
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/unit/%: tests/unit/%.c $(SUPPORT_OBJ) $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests $(CHECK_CFLAGS) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(SUPPORT_OBJ) \
	    $(LIBRARY) $(ALL_LDFLAGS) $(CHECK_LDLIBS) $(LDLIBS)

$(SUPPORT_OBJ): CPPFLAGS += -Itests $(CHECK_CFLAGS)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
