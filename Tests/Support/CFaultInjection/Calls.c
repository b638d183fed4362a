/*
 * Definitions of system calls that the program's own objects and its shared libraries use in place of the C library's.
 * Each asks for a fault and then calls the C library's function.
 */

/* With GNU extensions, the address parameters of sockets have another type. */
#undef _GNU_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "CFaultInjection.h"
#include "Rules.h"

/* RTLD_NEXT, which the headers define with GNU extensions only. */
static void *const next_library = (void *)-1L;

/* The C library's function of the same name. */
#define REAL(name) \
    ({ \
        static __typeof__(name) *function; \
        __typeof__(name) *found = __atomic_load_n(&function, __ATOMIC_RELAXED); \
        if (!found) { \
            found = (__typeof__(name) *)dlsym(next_library, #name); \
            __atomic_store_n(&function, found, __ATOMIC_RELAXED); \
        } \
        found; \
    })

/* Returns from the call if a fault makes it fail or return a number. */
#define APPLY(name, descriptor, text, other, failure) \
    struct decision decision = decide(call_##name, descriptor, text, other); \
    if (decision.applies && decision.outcome == fault_fails) { \
        errno = (int)decision.value; \
        return failure; \
    } \
    if (decision.applies && decision.outcome == fault_returns) \
        return (__typeof__(failure))decision.value

#define CALL(type, name, parameters, arguments, descriptor, text, other) \
    type name parameters \
    { \
        APPLY(name, descriptor, text, other, (type)-1); \
        return REAL(name) arguments; \
    }

/* A call that opens a descriptor. */
#define OPENING(name, parameters, arguments, descriptor) \
    int name parameters \
    { \
        APPLY(name, descriptor, NULL, NULL, -1); \
        int opened = REAL(name) arguments; \
        note_open(opened); \
        return opened; \
    }

/* A call that transfers `count` bytes. */
#define TRANSFERRING(name, parameters, arguments) \
    ssize_t name parameters \
    { \
        APPLY(name, fd, NULL, NULL, (ssize_t)-1); \
        if (decision.applies && decision.outcome == fault_shortens && count > (size_t)decision.value) \
            count = (size_t)decision.value; \
        return REAL(name) arguments; \
    }

/* Files */

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    APPLY(open, -1, path, NULL, -1);
    int opened = REAL(open)(path, flags, mode);
    note_open(opened);
    return opened;
}

int close(int fd)
{
    struct decision decision = decide(call_close, fd, NULL, NULL);
    note_close(fd);
    end_faults_of(fd);
    int result = REAL(close)(fd);
    if (!decision.applies)
        return result;
    errno = (int)decision.value;
    return -1;
}

TRANSFERRING(read, (int fd, void *bytes, size_t count), (fd, bytes, count))
TRANSFERRING(write, (int fd, const void *bytes, size_t count), (fd, bytes, count))
TRANSFERRING(pread, (int fd, void *bytes, size_t count, off_t offset), (fd, bytes, count, offset))
TRANSFERRING(pwrite, (int fd, const void *bytes, size_t count, off_t offset), (fd, bytes, count, offset))
CALL(int, fsync, (int fd), (fd), fd, NULL, NULL)
CALL(int, ftruncate, (int fd, off_t length), (fd, length), fd, NULL, NULL)
CALL(int, flock, (int fd, int operation), (fd, operation), fd, NULL, NULL)
CALL(int, fchmod, (int fd, mode_t mode), (fd, mode), fd, NULL, NULL)
CALL(int, chmod, (const char *path, mode_t mode), (path, mode), -1, path, NULL)
CALL(int, fstat, (int fd, struct stat *status), (fd, status), fd, NULL, NULL)
CALL(int, stat, (const char *path, struct stat *status), (path, status), -1, path, NULL)
CALL(int, lstat, (const char *path, struct stat *status), (path, status), -1, path, NULL)
CALL(int, rename, (const char *from, const char *to), (from, to), -1, from, to)
CALL(int, link, (const char *from, const char *to), (from, to), -1, from, to)
CALL(int, unlink, (const char *path), (path), -1, path, NULL)
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, path, NULL)
CALL(int, rmdir, (const char *path), (path), -1, path, NULL)

DIR *opendir(const char *path)
{
    APPLY(opendir, -1, path, NULL, (DIR *)NULL);
    DIR *directory = REAL(opendir)(path);
    if (directory)
        note_open(dirfd(directory));
    return directory;
}

struct dirent *readdir(DIR *directory)
{
    APPLY(readdir, dirfd(directory), NULL, NULL, (struct dirent *)NULL);
    return REAL(readdir)(directory);
}

int closedir(DIR *directory)
{
    struct decision decision = decide(call_closedir, dirfd(directory), NULL, NULL);
    note_close(dirfd(directory));
    int result = REAL(closedir)(directory);
    if (!decision.applies)
        return result;
    errno = (int)decision.value;
    return -1;
}

/* Sockets */

OPENING(socket, (int family, int type, int protocol), (family, type, protocol), -1)
OPENING(accept, (int fd, struct sockaddr *restrict address, socklen_t *restrict length), (fd, address, length), fd)
TRANSFERRING(send, (int fd, const void *bytes, size_t count, int flags), (fd, bytes, count, flags))
CALL(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), fd, NULL, NULL)
CALL(int, bind, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length), fd, NULL, NULL)
CALL(int, connect, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length), fd, NULL, NULL)
CALL(int, listen, (int fd, int backlog), (fd, backlog), fd, NULL, NULL)
CALL(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t length),
    (fd, level, option, value, length), fd, NULL, NULL)
CALL(int, getsockopt, (int fd, int level, int option, void *restrict value, socklen_t *restrict length),
    (fd, level, option, value, length), fd, NULL, NULL)
CALL(int, shutdown, (int fd, int how), (fd, how), fd, NULL, NULL)
CALL(int, getsockname, (int fd, struct sockaddr *restrict address, socklen_t *restrict length), (fd, address, length),
    fd, NULL, NULL)

int getaddrinfo(
    const char *restrict host, const char *restrict service, const struct addrinfo *restrict hints,
    struct addrinfo **restrict list)
{
    APPLY(getaddrinfo, -1, host, NULL, EAI_SYSTEM);
    return REAL(getaddrinfo)(host, service, hints, list);
}

/* Other descriptors */

OPENING(eventfd, (unsigned count, int flags), (count, flags), -1)
OPENING(epoll_create1, (int flags), (flags), -1)
CALL(int, epoll_ctl, (int watch, int operation, int fd, struct epoll_event *event), (watch, operation, fd, event), fd,
    NULL, NULL)

int poll(struct pollfd *entries, nfds_t count, int timeout)
{
    if (count == 0) {
        APPLY(poll, -1, NULL, NULL, -1);
    }
    for (nfds_t index = 0; index < count; index++) {
        APPLY(poll, entries[index].fd, NULL, NULL, -1);
    }
    return REAL(poll)(entries, count, timeout);
}

int fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    APPLY(fcntl, fd, NULL, NULL, -1);
    int result = REAL(fcntl)(fd, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        note_open(result);
    return result;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    APPLY(ioctl, fd, NULL, NULL, -1);
    return REAL(ioctl)(fd, request, argument);
}

CALL(int, tcgetattr, (int fd, struct termios *settings), (fd, settings), fd, NULL, NULL)
CALL(int, tcsetattr, (int fd, int action, const struct termios *settings), (fd, action, settings), fd, NULL, NULL)
CALL(int, tcflush, (int fd, int queue), (fd, queue), fd, NULL, NULL)

/* Processes and time */

CALL(int, kill, (pid_t process, int number), (process, number), -1, NULL, NULL)
CALL(int, usleep, (useconds_t microseconds), (microseconds), -1, NULL, NULL)

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = REAL(clock_gettime)(clock, time);
    if (clock != CLOCK_REALTIME)
        return result;
    struct decision decision = decide(call_clock_gettime, -1, NULL, NULL);
    if (decision.applies)
        time->tv_sec += decision.value;
    return result;
}
