# SPDX-License-Identifier: GPL-2.0
line: the bytes are the other way round; log_text; s/(unsigned long long)client->bytes, (unsigned long long)server->bytes,/(unsigned long long)server->bytes, (unsigned long long)client->bytes,/
line: seconds since the start of the machine; log_text; s/(now_ns() - conn->opened) \/ 1e9/now_ns() \/ 1e9/
line: the client is the server; log_text log_json; s/address_text(&client->address, client_text)/address_text(\&server->address, client_text)/
line: without priority; log_journal; s/log_prefix(LOG_INFO)/""/
buffer: a full one is thrown away; log_of_many; /^void record(/,/^}/s/records_flush(loop);/loop->nr_records = 0;/
lost: not counted; log_that_nobody_reads; s/counter_add(&loop->counters.log_lost, lines);/;/
file: everybody may read it; log_text; s/0640/0644/
