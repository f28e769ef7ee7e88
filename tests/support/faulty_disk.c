/* A disk that fails, for one process: load with LD_PRELOAD.

   FAULT=CALL:NUMBER:ERRNO:PART   the NUMBERth call (from 1) of `write` (write, pwrite, pwrite64) or `sync` (fsync, fdatasync) on a file
   whose path has PART in it fails with ERRNO, and so does every later one, as a disk that is gone or full does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count;

static int fails(const char *call, int fd) {
    static char kind[16], part[256];
    static int number, code, read_once;
    char link[64], path[4096];
    if (!read_once) {
        const char *fault = getenv("FAULT");
        if (!fault || sscanf(fault, "%15[^:]:%d:%d:%255s", kind, &number, &code, part) != 4) number = 0;
        read_once = 1;
    }
    if (!number || strcmp(kind, call)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (!strstr(path, part) || ++count < number) return 0;
    errno = code;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) { return fails("write", fd) ? -1 : REAL(write)(fd, data, size); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return fails("write", fd) ? -1 : REAL(pwrite)(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return fails("write", fd) ? -1 : REAL(pwrite64)(fd, data, size, at); }
int fsync(int fd) { return fails("sync", fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails("sync", fd) ? -1 : REAL(fdatasync)(fd); }
