# SPDX-License-Identifier: GPL-2.0
#
# Installed files and their destinations; the top Makefile includes this file. Each file is named, so
# that a missing file causes an error instead of being skipped.
#
# PREFIX is /usr/local, where linker, compiler, udev, systemd, man and bash all search;
# DESTDIR goes before each path, for packages.

include scripts/version.mk

PREFIX		?= /usr/local
BINDIR		?= $(PREFIX)/bin
SBINDIR		?= $(PREFIX)/sbin
INCLUDEDIR	?= $(PREFIX)/include
LIBDIR		?= $(PREFIX)/lib
MANDIR		?= $(PREFIX)/share/man
COMPLETIONDIR	?= $(PREFIX)/share/bash-completion/completions
UDEVDIR		?= $(PREFIX)/lib/udev
MODULESLOADDIR	?= $(PREFIX)/lib/modules-load.d
SYSUSERSDIR	?= $(PREFIX)/lib/sysusers.d
UNITDIR		?= $(PREFIX)/lib/systemd/system
# The folder that the unit uses, whatever the PREFIX.
DEFAULTDIR	?= /etc/default

# The manuals of the functions timerwheel_...; functions that share a page are links to it.
MANUALS_LIBRARY := \
	add add_socket adopt advance arm backend cancel close drain fd get info list mapped_arm \
	mapped_cancel mapped_entry mapped_refresh monitor move move_handles now open queue_add \
	queue_arm queue_cancel queue_commands queue_completed queue_flush queue_free queue_move \
	queue_new queue_refresh queue_remove refresh remove remove_handles ring_drop ring_look \
	ring_next ring_sleep ring_take share stats strerror table table_arm table_cancel \
	table_prefetch table_refresh take wait

# mode:file:destination
INSTALLED := \
	755:tools/timerwheel/timerwheel:$(BINDIR)/timerwheel \
	755:tools/proxy/timerwheel-proxy:$(SBINDIR)/timerwheel-proxy \
	755:tools/guard/timerwheel-guard:$(SBINDIR)/timerwheel-guard \
	644:tools/timerwheel/completion.bash:$(COMPLETIONDIR)/timerwheel \
	644:tools/proxy/completion.bash:$(COMPLETIONDIR)/timerwheel-proxy \
	644:tools/guard/completion.bash:$(COMPLETIONDIR)/timerwheel-guard \
	644:Documentation/man/timerwheel.1:$(MANDIR)/man1/timerwheel.1 \
	644:Documentation/man/libtimerwheel.3:$(MANDIR)/man3/libtimerwheel.3 \
	$(foreach m,$(MANUALS_LIBRARY:%=timerwheel_%.3),644:Documentation/man/$m:$(MANDIR)/man3/$m) \
	644:Documentation/man/timerwheel.4:$(MANDIR)/man4/timerwheel.4 \
	644:Documentation/man/timerwheel-porting.7:$(MANDIR)/man7/timerwheel-porting.7 \
	644:Documentation/man/timerwheel-proxy.8:$(MANDIR)/man8/timerwheel-proxy.8 \
	644:Documentation/man/timerwheel-guard.8:$(MANDIR)/man8/timerwheel-guard.8 \
	644:tools/proxy/timerwheel-proxy.service:$(UNITDIR)/timerwheel-proxy.service \
	644:tools/guard/timerwheel-guard.service:$(UNITDIR)/timerwheel-guard.service \
	644:packaging/60-timerwheel.rules:$(UDEVDIR)/rules.d/60-timerwheel.rules \
	644:packaging/modules-load.conf:$(MODULESLOADDIR)/timerwheel.conf \
	644:packaging/sysusers.conf:$(SYSUSERSDIR)/timerwheel.conf

# Files that lib installs.
INSTALLED_LIBRARY := $(INCLUDEDIR)/linux/timerwheel.h $(INCLUDEDIR)/timerwheel.h \
	$(INCLUDEDIR)/timerwheel-mapped.h $(LIBDIR)/libtimerwheel.so.1 \
	$(LIBDIR)/libtimerwheel.so $(LIBDIR)/libtimerwheel.a $(LIBDIR)/pkgconfig/timerwheel.pc

# The units say where Debian has the daemons.
UNITS := $(UNITDIR)/timerwheel-proxy.service $(UNITDIR)/timerwheel-guard.service

# Files that the machine's owner may change. Existing files stay, and uninstall removes only unchanged
# files.
CONFIGS := \
	644:tools/proxy/timerwheel-proxy.default:$(DEFAULTDIR)/timerwheel-proxy \
	644:tools/guard/timerwheel-guard.default:$(DEFAULTDIR)/timerwheel-guard

# Folders for such files only; uninstall removes them when empty.
INSTALLED_FOLDERS := $(INCLUDEDIR)/linux $(LIBDIR)/pkgconfig $(UDEVDIR)/rules.d $(UDEVDIR) \
	$(MODULESLOADDIR) $(SYSUSERSDIR) $(UNITDIR) $(dir $(UNITDIR)) $(COMPLETIONDIR) \
	$(dir $(COMPLETIONDIR)) $(foreach n,1 3 4 7 8,$(MANDIR)/man$n)

# Below DESTDIR, a stage for a package, all folders are.
EMPTIED	:= $(INSTALLED_FOLDERS) $(BINDIR) $(SBINDIR) $(INCLUDEDIR) $(LIBDIR) $(MANDIR) $(DEFAULTDIR)

# Sources of the module, for DKMS.
MODULE_SOURCES := Kbuild dkms.conf uapi/linux/timerwheel.h $(addprefix module/, \
	main.c file.c map.c ioctl.c setup.c batch.c scan.c ops.c handle.c table.c memory.c pages.c user.c \
	engine.c cpu.c wheel.c resident.c sock.c tcp.c alarm.c clockset.c events.c flow.c ring.c log.c monitor.c stats.c \
	uring.c \
	alarm.h clock.h clockset.h compat.h cover.h cpu.h deadlines.h deliver.h engine.h events.h flow.h \
	internal.h log.h map.h memory.h monitor.h ops.h pages.h resident.h ring.h run.h slots.h sock.h stats.h table.h tcp.h \
	timer.h trace.h uring.h user.h wheel.h) \
	module/compat/linux/align.h module/compat/linux/io_uring/cmd.h \
	module/compat/linux/kmsan-checks.h

part = $(word $(1),$(subst :, ,$(2)))

# A word for the shell with any content; and a path below DESTDIR, which may have blanks.
quoted = '$(subst ','\'',$(1))'
below = $(call quoted,$(DESTDIR)$(1))

# The folders are parts of lists, and so are their names.
FOLDERS	:= PREFIX BINDIR SBINDIR INCLUDEDIR LIBDIR MANDIR COMPLETIONDIR UDEVDIR MODULESLOADDIR \
	   SYSUSERSDIR UNITDIR DEFAULTDIR
$(foreach v,$(FOLDERS),$(if $(filter-out 1,$(words $($v)))$(findstring :,$($v)),\
	$(error $v is '$($v)': it must be one word, without blanks and colons)))

define newline


endef

installable:
	@scripts/vm/need gcc libc6-dev libmicrohttpd-dev libncurses-dev libsystemd-dev make
	$(call build,lib)
	@$(MAKE) $(if $(V),,-s) -C tools timerwheel/timerwheel proxy/timerwheel-proxy \
		guard/timerwheel-guard

install: installable ## Install headers, library, tools, manuals and rules (PREFIX, DESTDIR)
	@$(foreach f,$(INSTALLED), \
		umask 022 && install -D -m $(call part,1,$f) $(call part,2,$f) $(call below,$(call part,3,$f))$(newline)@)
	@sed -i 's|/usr/sbin/|$(SBINDIR)/|' $(foreach u,$(UNITS),$(call below,$u))
	@$(foreach f,$(CONFIGS), \
		umask 022 && [ -e $(call below,$(call part,3,$f)) ] || \
		install -D -m 644 $(call part,2,$f) $(call below,$(call part,3,$f))$(newline)@)
	@umask 022 && $(MAKE) -s -C lib install DESTDIR=$(call quoted,$(DESTDIR)) PREFIX='$(PREFIX)' \
		LIBDIR='$(LIBDIR)' INCLUDEDIR='$(INCLUDEDIR)'
	@$(if $(DESTDIR),,packaging/settle)

uninstall: ## Remove what install has installed, with the same PREFIX and DESTDIR
	@rm -f $(foreach f,$(INSTALLED),$(call below,$(call part,3,$f))) \
		$(foreach f,$(INSTALLED_LIBRARY),$(call below,$f))
	@$(foreach f,$(CONFIGS), \
		! cmp -s $(call part,2,$f) $(call below,$(call part,3,$f)) || \
		rm $(call below,$(call part,3,$f))$(newline)@)
	@cd $(call below,/) 2>/dev/null || exit 0; \
	for folder in $(if $(DESTDIR),$(EMPTIED:/%=%),$(INSTALLED_FOLDERS)); do \
		[ ! -d $$folder ] || \
			rmdir $(if $(DESTDIR),-p) --ignore-fail-on-non-empty $$folder; \
	done
	@$(if $(DESTDIR),,packaging/settle)

modules_install: ## Build the module for the kernel with the headers in KDIR and install it
	@DESTDIR=$(call quoted,$(DESTDIR)) packaging/modules '$(KDIR)'

modules_uninstall: ## Take it out of that kernel's modules again
	@DESTDIR=$(call quoted,$(DESTDIR)) packaging/modules --remove '$(KDIR)'

dkms-install: ## Have DKMS build the module, for each kernel to come as well
	@SOURCES='$(MODULE_SOURCES)' packaging/dkms

dkms-remove: ## Take it out of DKMS and all kernels again
	@packaging/dkms --remove

dkms-source: # For the package, which hands them to DKMS itself
	@$(foreach f,$(MODULE_SOURCES), \
		umask 022 && install -D -m 644 $f $(call below,/usr/src/timerwheel-$(VERSION)/$f)$(newline)@)

deb: ## Build Debian packages into build/deb
	@packaging/deb

.PHONY: install uninstall installable modules_install modules_uninstall dkms-install \
	dkms-remove dkms-source deb
