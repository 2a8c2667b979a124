# SPDX-License-Identifier: GPL-2.0
# Places of this project's guests: in the kernel's tree TW_MODULE names the module's file.
s/, or timerwheel\.ko in \/lib\/modules, \/, \/work or \/vm\./, or timerwheel.ko in \/lib\/modules or \/./
/^\t\t"\/lib\/modules\/timerwheel\.ko", "\/timerwheel\.ko", "\/work\/timerwheel\.ko",$/{
N
s/ "\/work\/timerwheel\.ko",\n.*//
}
