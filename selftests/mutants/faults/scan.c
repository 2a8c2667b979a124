# SPDX-License-Identifier: GPL-2.0
list: the last one is left out; ops:capacity.*.list; s/u64 end = tw_index_max(&file->table) + 1ULL;/u64 end = tw_index_max(\&file->table);/
drain: the last one is left out; ops:capacity.*.again; s/u32 end = tw_index_max(&file->table) + 1;/u32 end = tw_index_max(\&file->table);/
drain: the last one is left out with CLOSE; ops:capacity.*.drain_close; s/\t\tend = tw_index_max(&file->table) + 1;/\t\tend = tw_index_max(\&file->table);/
list: no page boundary within an entry; faults:faults.list.end_missing; s/copied = n - DIV_ROUND_UP(missed, sizeof(\*entry));/copied = n - missed \/ sizeof(*entry);/
list: goes on behind what was not copied; faults:faults.list.end_missing; s/next = entry\[copied\].index;/;/
interrupted: by any signal; abuse:storm.*.walks_end; s/return done ? signal_pending(current) : fatal_signal_pending(current);/return signal_pending(current);/
interrupted: never; abuse:storm.*.walks_are_cut; s/return done ? signal_pending(current) : fatal_signal_pending(current);/return done \&\& 0;/
list: walks only once; ops:ops.list_while_changing,ops.list_pages; s/while (done < batch->count \&\& next < end) {/if (done < batch->count \&\& next < end) do {/;/^		cond_resched();/{n;s/^	}$/	} while (0);/}
drain: nothing before where it went on; ops:ops.drain_begins_anew; s/return more < 0 \&\& !done ? more : done + max(more, 0L);/return done;/;s/more = tw_drain_range.*/more = 0;/
drain: at the end of a page it is not begun anew; ops:ops.drain_begins_anew; s/u32 from = clamp(READ_ONCE(file->drain_next), 1U, end);/u32 from = clamp(READ_ONCE(file->drain_next), 1U, end); if (from == end) from = 1;/;s/more = tw_drain_range(file, 1, from,/more = tw_drain_range(file, from, from,/
drain: an error of the second half is taken off; ops:ops.drain_begins_anew; s/return more < 0 \&\& !done ? more : done + max(more, 0L);/return done + more;/
drain: fresh memory is a fault; ops:ops.drain_fresh_memory; s/if (fault \&\& fault_in_subpage_writeable(.*)))*$/if (fault)/
close: nobody is kept out; ops:ops.close_add; s/WRITE_ONCE(file->closed, true);/;/
list: other than the caller's clock; time:namespace.*.look; /^long tw_scan_list/,/^}/s/u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));/u64 offset = 0;/
drain: other than the caller's clock; time:namespace.*.look; /^static long tw_drain_range/,/^}/s/u64 offset = tw_clock_offset(READ_ONCE(file->setup.clock));/u64 offset = 0;/
