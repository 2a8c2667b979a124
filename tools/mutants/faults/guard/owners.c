# SPDX-License-Identifier: GPL-2.0
take: whatever is there now; guard/run:children guard/run:moved_descriptor; s/cookie == wanted->cookie/cookie != wanted->cookie/
