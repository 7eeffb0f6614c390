/* A library to preload: stops the process at the n-th call that touches a folder, or makes that call fail.

   It stands before the C library, so that calls of Python, SQLite, LMDB and Arrow count alike. A call touches the folder
   if it names a path in it, or a descriptor that was opened by such a path. Nothing counts before faults_arm. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* What happens: killed before the call; killed when half of a write is done; one call fails with an error; and the disk
   is full from a call on. */
enum { KILLED, TORN, NO_SPACE, FULL, DENIED, BROKEN, INTERRUPTED, KINDS };
static const int errors[KINDS] = {0, 0, ENOSPC, ENOSPC, EACCES, EIO, EINTR};

/* What can happen to whom. */
#define ALL (1 << KILLED | 1 << BROKEN)
#define READS (ALL | 1 << INTERRUPTED)
#define LOOKS (ALL | 1 << DENIED)
#define OPENS (LOOKS | 1 << INTERRUPTED)
#define CHANGES (LOOKS | 1 << NO_SPACE | 1 << FULL)
#define SYNCS (READS | 1 << NO_SPACE | 1 << FULL)
#define WRITES (SYNCS | 1 << TORN)

static char root[PATH_MAX];
static size_t root_length;
static int kind = -1;
static long at, seen;
static char hit[64];
static unsigned char watched[1 << 16];

void faults_arm(const char *folder, int what, long when) {
    strncpy(root, folder, sizeof root - 1);
    root_length = strlen(root);
    at = when, seen = 0, hit[0] = 0, kind = what;
}
void faults_disarm(void) { kind = -1; }
long faults_seen(void) { return seen; }
const char *faults_hit(void) { return hit; }

static void stop(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* Whether this call is the one; errno says what is wrong with it. */
static int strikes(const char *name, int kinds) {
    if (kind < 0 || !(kinds & 1 << kind)) return 0;
    long now = __sync_add_and_fetch(&seen, 1);
    if (kind == FULL ? now < at : now != at) return 0;
    if (!hit[0]) strncpy(hit, name, sizeof hit - 1);
    if (kind == KILLED) stop();
    if (kind == TORN) return 1;
    errno = errors[kind];
    return 1;
}
static int is_in(int folder, const char *path) {
    if (kind < 0 || !path) return 0;
    if (path[0] == '/') return !strncmp(path, root, root_length);
    return folder >= 0 && folder < (int)sizeof watched && watched[folder];
}
static int is_open_in(int file) { return kind >= 0 && file >= 0 && file < (int)sizeof watched && watched[file]; }
static int opened(int file, int inside) {
    if (file >= 0 && file < (int)sizeof watched) watched[file] = inside;
    return file;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

/* ---- open and close ---- */
#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, name, const char *, int, ...); \
        va_list more; \
        va_start(more, flags); \
        int mode = va_arg(more, int), inside = is_in(AT_FDCWD, path); \
        va_end(more); \
        if (inside && strikes(#name, flags & O_CREAT ? OPENS | CHANGES : OPENS)) return -1; \
        return opened(real(path, flags, mode), inside); \
    }
#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(int, name, int, const char *, int, ...); \
        va_list more; \
        va_start(more, flags); \
        int mode = va_arg(more, int), inside = is_in(folder, path); \
        va_end(more); \
        if (inside && strikes(#name, flags & O_CREAT ? OPENS | CHANGES : OPENS)) return -1; \
        return opened(real(folder, path, flags, mode), inside); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int file) {
    REAL(int, close, int);
    int inside = is_open_in(file);
    opened(file, 0);
    int failed = inside && strikes("close", READS) ? errno : 0;
    int result = real(file); /* it is closed all the same, as on Linux */
    if (!failed) return result;
    errno = failed;
    return -1;
}
int dup(int file) {
    REAL(int, dup, int);
    return opened(real(file), is_open_in(file));
}
int fcntl64(int file, int what, ...) {
    REAL(int, fcntl64, int, int, ...);
    va_list more;
    va_start(more, what);
    void *argument = va_arg(more, void *);
    va_end(more);
    if ((what == F_SETLK || what == F_SETLKW) && is_open_in(file) && strikes("fcntl", READS)) return -1;
    int result = real(file, what, argument);
    return what == F_DUPFD || what == F_DUPFD_CLOEXEC ? opened(result, is_open_in(file)) : result;
}
int fcntl(int file, int what, ...) {
    va_list more;
    va_start(more, what);
    void *argument = va_arg(more, void *);
    va_end(more);
    return fcntl64(file, what, argument);
}
int flock(int file, int how) {
    REAL(int, flock, int, int);
    if (is_open_in(file) && strikes("flock", READS)) return -1;
    return real(file, how);
}

/* ---- bytes ---- */
#define WRITE(name, half, whole) \
    if (is_open_in(file) && strikes(name, WRITES)) { \
        if (kind != TORN) return -1; \
        half; \
        stop(); \
    } \
    return whole
ssize_t write(int file, const void *data, size_t n) {
    REAL(ssize_t, write, int, const void *, size_t);
    WRITE("write", (void)!real(file, data, n / 2), real(file, data, n));
}
ssize_t pwrite(int file, const void *data, size_t n, off_t where) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    WRITE("pwrite", (void)!real(file, data, n / 2, where), real(file, data, n, where));
}
ssize_t pwrite64(int file, const void *data, size_t n, off64_t where) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    WRITE("pwrite64", (void)!real(file, data, n / 2, where), real(file, data, n, where));
}
ssize_t writev(int file, const struct iovec *parts, int n) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    WRITE("writev", (void)!real(file, parts, n / 2), real(file, parts, n));
}
ssize_t pwritev(int file, const struct iovec *parts, int n, off_t where) {
    REAL(ssize_t, pwritev, int, const struct iovec *, int, off_t);
    WRITE("pwritev", (void)!real(file, parts, n / 2, where), real(file, parts, n, where));
}

#define BY_FILE(type, name, kinds, declared, given) \
    type name declared { \
        REAL(type, name, BARE declared); \
        if (is_open_in(file) && strikes(#name, kinds)) return -1; \
        return real given; \
    }
#define BARE(...) __VA_ARGS__
BY_FILE(ssize_t, read, READS, (int file, void *data, size_t n), (file, data, n))
BY_FILE(ssize_t, pread, READS, (int file, void *data, size_t n, off_t where), (file, data, n, where))
BY_FILE(ssize_t, pread64, READS, (int file, void *data, size_t n, off64_t where), (file, data, n, where))
BY_FILE(int, fsync, SYNCS, (int file), (file))
BY_FILE(int, fdatasync, SYNCS, (int file), (file))
BY_FILE(int, ftruncate, SYNCS, (int file, off_t size), (file, size))
BY_FILE(int, ftruncate64, SYNCS, (int file, off64_t size), (file, size))
BY_FILE(int, fallocate, SYNCS, (int file, int mode, off_t from, off_t size), (file, mode, from, size))
BY_FILE(int, fchmod, LOOKS, (int file, mode_t mode), (file, mode))
BY_FILE(int, fchown, LOOKS, (int file, uid_t user, gid_t group), (file, user, group))
BY_FILE(int, fstat, ALL, (int file, struct stat *found), (file, found))
BY_FILE(int, fstat64, ALL, (int file, struct stat64 *found), (file, found))

/* ---- names ---- */
#define BY_PATH(type, name, failed, kinds, declared, given) \
    type name declared { \
        REAL(type, name, BARE declared); \
        if (is_in(AT_FDCWD, path) && strikes(#name, kinds)) return failed; \
        return real given; \
    }
#define BY_PLACE(type, name, kinds, declared, given) \
    type name declared { \
        REAL(type, name, BARE declared); \
        if (is_in(folder, path) && strikes(#name, kinds)) return -1; \
        return real given; \
    }
BY_PATH(int, stat, -1, LOOKS, (const char *path, struct stat *found), (path, found))
BY_PATH(int, stat64, -1, LOOKS, (const char *path, struct stat64 *found), (path, found))
BY_PATH(int, lstat, -1, LOOKS, (const char *path, struct stat *found), (path, found))
BY_PATH(int, lstat64, -1, LOOKS, (const char *path, struct stat64 *found), (path, found))
BY_PATH(int, access, -1, LOOKS, (const char *path, int how), (path, how))
BY_PATH(ssize_t, readlink, -1, LOOKS, (const char *path, char *found, size_t n), (path, found, n))
BY_PATH(int, mkdir, -1, CHANGES, (const char *path, mode_t mode), (path, mode))
BY_PATH(int, unlink, -1, LOOKS, (const char *path), (path))
BY_PATH(int, rmdir, -1, LOOKS, (const char *path), (path))
BY_PATH(int, chmod, -1, LOOKS, (const char *path, mode_t mode), (path, mode))
BY_PATH(int, chown, -1, LOOKS, (const char *path, uid_t user, gid_t group), (path, user, group))
BY_PATH(int, truncate, -1, CHANGES, (const char *path, off_t size), (path, size))
BY_PATH(int, truncate64, -1, CHANGES, (const char *path, off64_t size), (path, size))
BY_PATH(int, link, -1, CHANGES, (const char *path, const char *other), (path, other))
BY_PATH(int, rename, -1, CHANGES, (const char *path, const char *other), (path, other))
BY_PLACE(int, fstatat, LOOKS, (int folder, const char *path, struct stat *found, int how), (folder, path, found, how))
BY_PLACE(int, fstatat64, LOOKS, (int folder, const char *path, struct stat64 *found, int how), (folder, path, found, how))
BY_PLACE(int, faccessat, LOOKS, (int folder, const char *path, int mode, int how), (folder, path, mode, how))
BY_PLACE(int, mkdirat, CHANGES, (int folder, const char *path, mode_t mode), (folder, path, mode))
BY_PLACE(int, unlinkat, LOOKS, (int folder, const char *path, int how), (folder, path, how))
BY_PLACE(int, fchmodat, LOOKS, (int folder, const char *path, mode_t mode, int how), (folder, path, mode, how))
BY_PLACE(int, renameat, CHANGES, (int folder, const char *path, int other, const char *name), (folder, path, other, name))
BY_PLACE(int, linkat, CHANGES, (int folder, const char *path, int other, const char *name, int how),
         (folder, path, other, name, how))
BY_PLACE(int, renameat2, CHANGES, (int folder, const char *path, int other, const char *name, unsigned how),
         (folder, path, other, name, how))

/* ---- folders ---- */
DIR *opendir(const char *path) {
    REAL(DIR *, opendir, const char *);
    int inside = is_in(AT_FDCWD, path);
    if (inside && strikes("opendir", LOOKS)) return NULL;
    DIR *found = real(path);
    if (found) opened(dirfd(found), inside);
    return found;
}
#define READDIR(type, name) \
    type *name(DIR *folder) { \
        REAL(type *, name, DIR *); \
        if (is_open_in(dirfd(folder)) && strikes(#name, ALL)) return NULL; \
        return real(folder); \
    }
READDIR(struct dirent, readdir)
READDIR(struct dirent64, readdir64)
int closedir(DIR *folder) {
    REAL(int, closedir, DIR *);
    opened(dirfd(folder), 0);
    return real(folder);
}
