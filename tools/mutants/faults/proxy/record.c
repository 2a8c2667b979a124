# SPDX-License-Identifier: GPL-2.0
line: the bytes are the other way round; proxy/run:log_text; s/up = client->bytes, down = server->bytes/up = server->bytes, down = client->bytes/
line: seconds since the start of the machine; proxy/run:log_text; s/(now_ns() - conn->opened) \/ 1e9/now_ns() \/ 1e9/
line: the client is the server; proxy/run:log_text proxy/run:log_json; s/address_text(&client->address, client_text)/address_text(\&server->address, client_text)/
line: without priority; proxy/run:log_journal; s/priority = "<6>";/;/
buffer: a full one is thrown away; proxy/run:log_of_many; /^void record(/,/^}/s/records_flush(loop);/loop->nr_records = 0;/
lost: not counted; proxy/run:log_that_nobody_reads; s/counter_add(\&loop->counters.log_lost, lost);/(void)lost;/
file: everybody may read it; proxy/run:log_text; s/0640/0644/
file: a named pipe is waited for; proxy/run:log_pipe_full; s/O_APPEND | O_NONBLOCK))/O_APPEND))/
file: threads wait for its disk; proxy/run:log_file_frozen; s/S_ISREG(stat.st_mode))/0)/
file: lines that it does not accept are not counted; proxy/run:log_file_limit; s/counter_add(&lost, .*/;/
