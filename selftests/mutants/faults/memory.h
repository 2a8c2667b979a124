# SPDX-License-Identifier: GPL-2.0
gfp: no cgroup sees it; lifetime:memcg.charges_timers; s/GFP_KERNEL_ACCOUNT |/GFP_KERNEL |/
gfp: somebody is killed for it; lifetime:memcg_full.nobody_killed,memcg_full.results_enomem; s/ | __GFP_RETRY_MAYFAIL//
