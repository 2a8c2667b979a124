# SPDX-License-Identifier: GPL-2.0
everybody may open it; abi:device.node; s/\.mode\t= 0660,/.mode\t= 0666,/
only root may open it; abi:device.node; s/\.mode\t= 0660,/.mode\t= 0600,/
exit: the device stays; lifetime:module.rmmod_takes_device; s/^\tmisc_deregister(&tw_device);//
exit: does not wait for what is to be freed; lifetime:module.unload_while_they_are_freed; /^static void __exit tw_exit/,/^}/s/^\ttw_file_exit();//
