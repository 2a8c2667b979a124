# SPDX-License-Identifier: GPL-2.0
JSON: DEL is not escaped; timerwheel/wheels:DEL; s/c >= 0x7f && c < 0xa0/c >= 0x80 \&\& c < 0xa0/
JSON: control characters from 0x80 on are not escaped; timerwheel/wheels:control_character; s/c >= 0x7f && c < 0xa0/c == 0x7f/
JSON: a character in too many bytes; timerwheel/wheels:too_many_bytes; s/c < least\[more\] || //
JSON: half of a surrogate; timerwheel/wheels:surrogate; s/ || c >> 11 == 0xd800 >> 11//
JSON: each byte beyond ASCII is a character; timerwheel/wheels:UTF-8; s/^\t\tlength = utf8(.*/\t\tc = (unsigned char)*text, length = 1;/
JSON: a quote is not escaped; timerwheel/wheels:JSON_gives; s/if (c == '"' || c == '\\\\')/if (c == '\\\\')/
names: bytes from 0x80 on reach the terminal; timerwheel/wheels:one_byte; s/\*c < ' ' || \*c > '~'/(unsigned char)*c < ' ' || *c == 0x7f/
pages: a row that is written in part counts; timerwheel/wheels:does_not_fit; s/ends\[items\] <= written; items++/(items ? ends[items - 1] : 0) < written; items++/
pages: a file that cannot be synced; timerwheel/wheels:synced; s/^\t\twritten = 0;/\t\t;/
pages: a signal does not end a write that blocks; timerwheel/wheels:output_is_not_read; s/\.fd = hold_fd(), /.fd = -1, /
