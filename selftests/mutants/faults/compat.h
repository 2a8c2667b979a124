# SPDX-License-Identifier: GPL-2.0
uring: a positive result cuts links in 6.1; uring:way.plain.links; s/if (result > 0) {/if (0) {/
