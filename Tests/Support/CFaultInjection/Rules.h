#ifndef RULES_H
#define RULES_H

/* The interposed calls. */
#define CALLS(X) \
    X(accept) X(bind) X(chmod) X(clock_gettime) X(close) X(closedir) X(connect) X(epoll_create1) X(epoll_ctl) \
    X(eventfd) X(fchmod) X(fcntl) X(flock) X(fstat) X(fsync) X(ftruncate) X(getaddrinfo) X(getsockname) X(getsockopt) X(ioctl) X(kill) X(link) X(listen) X(lstat) \
    X(mkdir) X(open) X(opendir) X(poll) X(pread) X(pwrite) X(read) X(readdir) X(recvmsg) X(rename) X(rmdir) X(send) \
    X(setsockopt) X(shutdown) X(socket) X(stat) X(tcflush) X(tcgetattr) X(tcsetattr) X(unlink) X(usleep) X(write)

enum call {
#define X(name) call_##name,
    CALLS(X)
#undef X
    call_count
};

struct decision {
    int applies;
    int outcome;
    long value;
};

/* Decides about a call. `text` and `other` are its paths, or NULL. errno stays as it is. */
struct decision decide(enum call call, int descriptor, const char *text, const char *other);

/* Ends the faults of a descriptor, whose number the next one may get. */
void end_faults_of(int descriptor);

/* Notes that this thread has opened or closed a descriptor. */
void note_open(int descriptor);
void note_close(int descriptor);

#endif
