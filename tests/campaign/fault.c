/* Counts what a program does to the files below a folder, and at one of these calls stops it or takes its disk away.

   FAULT_ROOT    folder whose files count
   FAULT_LEDGER  file of one `struct ledger`, shared by the processes and threads of a trial
   FAULT_CALL    number of the call, from 1; 0 only counts
   FAULT_KIND    before, after or torn: SIGKILL to the process group at the call, `torn` after a part of the write;
                 full: this write and all later ones that need room fail with ENOSPC, a part of the first one is done
   FAULT_PART    part of the bytes that are written, in thousandths
   FAULT_ALIGN   bytes that the part is a multiple of
   FAULT_ONLY    call and path below the root, as in a note: only such calls count; empty for all */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct ledger {
    _Atomic unsigned long calls;
    _Atomic unsigned long is_struck;
    char note[PATH_MAX + 128];
};

enum kind { COUNT, BEFORE, AFTER, TORN, FULL };

static struct ledger *ledger;
static const char *root, *only;
static size_t root_length;
static unsigned long chosen;
static enum kind kind;
static unsigned long part, align;

static unsigned long read_number(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoul(text, NULL, 10) : otherwise;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FAULT_LEDGER"), *name = getenv("FAULT_KIND");
    root = getenv("FAULT_ROOT");
    if (!path || !root)
        return;
    root_length = strlen(root);
    chosen = read_number("FAULT_CALL", 0);
    part = read_number("FAULT_PART", 500);
    align = read_number("FAULT_ALIGN", 1);
    only = getenv("FAULT_ONLY");
    if (name)
        kind = !strcmp(name, "before") ? BEFORE : !strcmp(name, "after") ? AFTER : !strcmp(name, "torn") ? TORN :
               !strcmp(name, "full") ? FULL : COUNT;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return;
    void *memory = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED)
        ledger = memory;
}

static int is_below(const char *path)
{
    return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

/* Returns whether a descriptor is a file below the root, whose path comes back. */
static int find_file(int file, char *path)
{
    char link[64];
    if (!ledger)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return is_below(path);
}

/* Returns whether a name leads below the root; the absolute path comes back. */
static int find_name(int folder, const char *name, char *path)
{
    if (!ledger || !name)
        return 0;
    if (*name == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return is_below(path);
    }
    char base[PATH_MAX];
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base))
            return 0;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, base, sizeof base - 1);
        if (length <= 0)
            return 0;
        base[length] = 0;
    }
    int length = snprintf(path, PATH_MAX, "%s/%s", base, name);
    return length > 0 && length < PATH_MAX && is_below(path);
}

static void tell(const char *call, const char *path, off_t offset, size_t count)
{
    if (!atomic_exchange(&ledger->is_struck, 1))
        snprintf(ledger->note, sizeof ledger->note, "%s %s at %lld, %zu bytes", call, path + root_length,
                 (long long)offset, count);
}

static void die(void)
{
    kill(0, SIGKILL);
    for (;;)
        pause();
}

/* Counts a call; returns whether it is the chosen one (or a later one on a disk that is full). */
static int count_call(const char *call, const char *path)
{
    if (only && *only) {
        char text[PATH_MAX + 128];
        snprintf(text, sizeof text, "%s %s ", call, path + root_length);
        if (strncmp(text, only, strlen(only)))
            return 0;
    }
    unsigned long number = atomic_fetch_add(&ledger->calls, 1) + 1;
    return chosen && (number == chosen || (kind == FULL && number > chosen));
}

static size_t take_part(size_t count)
{
    size_t some = count / 1000 * part + count % 1000 * part / 1000;
    return some - some % align;
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) \
        next = (__typeof__(next))dlsym(RTLD_NEXT, #name)

/* A call that writes `count` bytes: `whole` does it, `some` does the part of it that a torn write leaves. */
#define WRITE(call, type, count, offset, whole, some) \
    do { \
        char path[PATH_MAX]; \
        if (!find_file(file, path) || !count_call(call, path)) \
            return whole; \
        tell(call, path, offset, count); \
        size_t torn = take_part(count); \
        if (kind == FULL) { \
            if (atomic_fetch_add(&ledger->is_struck, 1) == 1 && torn) \
                return some; \
            errno = ENOSPC; \
            return -1; \
        } \
        if (kind == AFTER) { \
            type done = whole; \
            (void)done; \
        } else if (kind == TORN && torn) { \
            type done = some; \
            (void)done; \
        } \
        die(); \
        return -1; \
    } while (0)

/* A call that changes names or lengths; one that needs room fails on a full disk. */
#define CHANGE(call, found, needs_room, whole) \
    do { \
        char path[PATH_MAX]; \
        if (!(found) || !count_call(call, path)) \
            return whole; \
        if (kind == FULL) { \
            if (!(needs_room)) \
                return whole; \
            tell(call, path, 0, 0); \
            errno = ENOSPC; \
            return -1; \
        } \
        tell(call, path, 0, 0); \
        if (kind == AFTER) { \
            int done = whole; \
            (void)done; \
        } \
        die(); \
        return -1; \
    } while (0)

ssize_t write(int file, const void *bytes, size_t count)
{
    NEXT(write);
    WRITE("write", ssize_t, count, lseek(file, 0, SEEK_CUR), next(file, bytes, count), next(file, bytes, torn));
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset)
{
    NEXT(pwrite);
    WRITE("pwrite", ssize_t, count, offset, next(file, bytes, count, offset), next(file, bytes, torn, offset));
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset)
{
    NEXT(pwrite64);
    WRITE("pwrite64", ssize_t, count, offset, next(file, bytes, count, offset), next(file, bytes, torn, offset));
}

ssize_t writev(int file, const struct iovec *pieces, int length)
{
    NEXT(writev);
    size_t total = 0;
    for (int index = 0; index < length; index++)
        total += pieces[index].iov_len;
    WRITE("writev", ssize_t, total, lseek(file, 0, SEEK_CUR), next(file, pieces, length), next(file, pieces, 1));
}

ssize_t sendfile(int file, int source, off_t *offset, size_t count)
{
    NEXT(sendfile);
    WRITE("sendfile", ssize_t, count, 0, next(file, source, offset, count), next(file, source, offset, torn));
}

ssize_t sendfile64(int file, int source, off64_t *offset, size_t count)
{
    NEXT(sendfile64);
    WRITE("sendfile64", ssize_t, count, 0, next(file, source, offset, count), next(file, source, offset, torn));
}

ssize_t copy_file_range(int source, off64_t *from, int file, off64_t *to, size_t count, unsigned flags)
{
    NEXT(copy_file_range);
    WRITE("copy_file_range", ssize_t, count, 0, next(source, from, file, to, count, flags),
          next(source, from, file, to, torn, flags));
}

int fsync(int file)
{
    NEXT(fsync);
    CHANGE("fsync", find_file(file, path), 0, next(file));
}

int fdatasync(int file)
{
    NEXT(fdatasync);
    CHANGE("fdatasync", find_file(file, path), 0, next(file));
}

static int grows(int file, off_t length)
{
    struct stat found;
    return !fstat(file, &found) && length > found.st_size;
}

int ftruncate(int file, off_t length)
{
    NEXT(ftruncate);
    CHANGE("ftruncate", find_file(file, path), grows(file, length), next(file, length));
}

int ftruncate64(int file, off64_t length)
{
    NEXT(ftruncate64);
    CHANGE("ftruncate64", find_file(file, path), grows(file, length), next(file, length));
}

int posix_fallocate(int file, off_t offset, off_t length)
{
    NEXT(posix_fallocate);
    CHANGE("posix_fallocate", find_file(file, path), 1, next(file, offset, length));
}

int fallocate(int file, int mode, off_t offset, off_t length)
{
    NEXT(fallocate);
    CHANGE("fallocate", find_file(file, path), 1, next(file, mode, offset, length));
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    CHANGE("rename", find_name(AT_FDCWD, to, path), 0, next(from, to));
}

int renameat(int source, const char *from, int target, const char *to)
{
    NEXT(renameat);
    CHANGE("renameat", find_name(target, to, path), 0, next(source, from, target, to));
}

int link(const char *from, const char *to)
{
    NEXT(link);
    CHANGE("link", find_name(AT_FDCWD, to, path), 1, next(from, to));
}

int linkat(int source, const char *from, int target, const char *to, int flags)
{
    NEXT(linkat);
    CHANGE("linkat", find_name(target, to, path), 1, next(source, from, target, to, flags));
}

int symlink(const char *from, const char *to)
{
    NEXT(symlink);
    CHANGE("symlink", find_name(AT_FDCWD, to, path), 1, next(from, to));
}

int unlink(const char *name)
{
    NEXT(unlink);
    CHANGE("unlink", find_name(AT_FDCWD, name, path), 0, next(name));
}

int unlinkat(int folder, const char *name, int flags)
{
    NEXT(unlinkat);
    CHANGE("unlinkat", find_name(folder, name, path), 0, next(folder, name, flags));
}

int remove(const char *name)
{
    NEXT(remove);
    CHANGE("remove", find_name(AT_FDCWD, name, path), 0, next(name));
}

int mkdir(const char *name, mode_t mode)
{
    NEXT(mkdir);
    CHANGE("mkdir", find_name(AT_FDCWD, name, path), 1, next(name, mode));
}

int mkdirat(int folder, const char *name, mode_t mode)
{
    NEXT(mkdirat);
    CHANGE("mkdirat", find_name(folder, name, path), 1, next(folder, name, mode));
}

int rmdir(const char *name)
{
    NEXT(rmdir);
    CHANGE("rmdir", find_name(AT_FDCWD, name, path), 0, next(name));
}

/* Opening counts where it makes a file or empties one. */
#define OPEN(call, folder, whole) \
    do { \
        mode_t mode = 0; \
        if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        if (!(flags & (O_CREAT | O_TRUNC)) || !ledger) \
            return whole; \
        CHANGE(call, find_name(folder, name, path), is_new(folder, name), whole); \
    } while (0)

static int is_new(int folder, const char *name)
{
    return faccessat(folder, name, F_OK, 0) != 0;
}

int open(const char *name, int flags, ...)
{
    NEXT(open);
    OPEN("open", AT_FDCWD, next(name, flags, mode));
}

int open64(const char *name, int flags, ...)
{
    NEXT(open64);
    OPEN("open64", AT_FDCWD, next(name, flags, mode));
}

int openat(int folder, const char *name, int flags, ...)
{
    NEXT(openat);
    OPEN("openat", folder, next(folder, name, flags, mode));
}

int openat64(int folder, const char *name, int flags, ...)
{
    NEXT(openat64);
    OPEN("openat64", folder, next(folder, name, flags, mode));
}
