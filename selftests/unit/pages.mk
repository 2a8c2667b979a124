# SPDX-License-Identifier: GPL-2.0
#
# The same test with page sizes of 16 and 64 kB. To be included by a Makefile whose target $(TEST)
# builds $(BUILD)/$(TEST) with $(CFLAGS).
#
#   $(PAGES)           the programs
#   $(call run_pages,FIRST,SEED)
#                      run them with a tenth of the operations each and print KTAP: two results,
#                      numbered from FIRST on. Sets the shell's $result to 1 if one failed.

PAGE_SHIFTS	:= 14 16
PAGES		:= $(PAGE_SHIFTS:%=$(BUILD)/pages-%/$(TEST))

$(BUILD)/pages-%/$(TEST): $(BUILD)/$(TEST)
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/pages-$* \
		CFLAGS="$(CFLAGS) -DPAGE_SHIFT=$*" $(TEST)

define run_pages
	number=$(1); \
	for shift in $(PAGE_SHIFTS); do \
		log=$(BUILD)/pages-$$shift/log; \
		$(BUILD)/pages-$$shift/$(TEST) --short --seed $(2) > $$log; failed=$$?; \
		[ $$failed = 0 ] || { result=1; grep -v '^ok' $$log; printf 'not '; }; \
		echo "ok $$number - $(TEST:_test=): pages of $$((1 << shift - 10)) kB"; \
		number=$$((number + 1)); \
	done
endef
