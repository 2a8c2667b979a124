# SPDX-License-Identifier: GPL-2.0
# VERSION of timerwheel for makefiles; see scripts/lint/version.
VERSION	:= $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"$$/\1/p' \
	$(dir $(lastword $(MAKEFILE_LIST)))../dkms.conf)
