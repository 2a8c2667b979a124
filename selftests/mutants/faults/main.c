# SPDX-License-Identifier: GPL-2.0
everybody may open it; abi:device.node; s/mode = 0660;/mode = 0666;/
only root may open it; abi:device.node; s/mode = 0660;/mode = 0600;/
exit: the device stays; lifetime:module.rmmod_takes_device; s/^\tdevice_destroy(.*//
exit: does not wait for what is to be freed; lifetime:module.unload_while_they_are_freed; /^static void __exit tw_exit/,/^}/s/^\ttw_file_exit();//
exit: the number stays; lifetime:module.rmmod_takes_device; /^static void __exit tw_device_exit/,/^}/s/^\t__unregister_chrdev(.*//
