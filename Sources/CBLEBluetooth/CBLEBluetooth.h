#ifndef CBLUETOOTH_H
#define CBLUETOOTH_H

/*
 * What Swift cannot import by itself from libbluetooth-dev and the C library: request numbers that are macros with
 * sizeof, calls that take unions or variable arguments, constants with casts.
 *
 * Every function returns zero or a useful number on success and the negative errno on failure. Nothing here needs
 * libbluetooth at run time; only its headers are used.
 */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <termios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>

/* ERFKILL is not in every C library's errno.h. */
static const int ble_ERFKILL = 132;

static inline int ble_result(int result) { return result < 0 ? -errno : result; }

/*
 * An epoll instance on which a descriptor waits. It becomes readable when the descriptor has data, an error or a hang-up.
 */
static inline int ble_watch(int fd)
{
    struct epoll_event event;
    int watch = epoll_create1(EPOLL_CLOEXEC);
    if (watch < 0)
        return -errno;
    memset(&event, 0, sizeof(event));
    event.events = EPOLLIN;
    if (epoll_ctl(watch, EPOLL_CTL_ADD, fd, &event) < 0) {
        int error = errno;
        close(watch);
        return -error;
    }
    return watch;
}

/* HCI sockets */

/* A non-blocking raw HCI socket, bound to nothing. */
static inline int ble_hci_socket(void)
{
    return ble_result(socket(AF_BLUETOOTH, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, BTPROTO_HCI));
}

/* Binds to adapter `device` (0xFFFF for none) on one of HCI_CHANNEL_*. */
static inline int ble_hci_bind(int fd, uint16_t device, uint16_t channel)
{
    struct sockaddr_hci address;
    memset(&address, 0, sizeof(address));
    address.hci_family = AF_BLUETOOTH;
    address.hci_dev = device;
    address.hci_channel = channel;
    return ble_result(bind(fd, (struct sockaddr *)&address, sizeof(address)));
}

/*
 * Lets through a raw channel what controllers send: events of every kind, ACL, synchronous and ISO data; and has each
 * packet say which way it went, for what the kernel's own stack sends comes by as well.
 */
static inline int ble_hci_pass_inbound(int fd)
{
    struct hci_filter filter;
    int on = 1;
    memset(&filter, 0, sizeof(filter));
    filter.type_mask = 1u << HCI_ACLDATA_PKT | 1u << HCI_SCODATA_PKT | 1u << HCI_EVENT_PKT | 1u << 5;
    filter.event_mask[0] = 0xFFFFFFFFu;
    filter.event_mask[1] = 0xFFFFFFFFu;
    if (setsockopt(fd, SOL_HCI, HCI_DATA_DIR, &on, sizeof(on)) < 0)
        return -errno;
    return ble_result(setsockopt(fd, SOL_HCI, HCI_FILTER, &filter, sizeof(filter)));
}

/*
 * Reads one message, and copies what comes with it at a level and of a type, if anything; `detail` is left alone where nothing
 * does. -1 sets errno.
 */
static inline ssize_t ble_receive_with(
    int fd, void *bytes, size_t capacity, int level, int type, void *detail, size_t detail_size)
{
    char control[64];
    struct iovec part = { bytes, capacity };
    struct msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    ssize_t count = recvmsg(fd, &message, 0);
    if (count < 0)
        return count;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header))
        if (header->cmsg_level == level && header->cmsg_type == type)
            memcpy(detail, CMSG_DATA(header), detail_size);
    return count;
}

/* Reads one packet of a raw channel and tells whether a controller sent it. -1 sets errno. */
static inline ssize_t ble_hci_receive(int fd, void *bytes, size_t capacity, int *is_inbound)
{
    *is_inbound = 1;
    return ble_receive_with(fd, bytes, capacity, SOL_HCI, HCI_CMSG_DIR, is_inbound, sizeof(*is_inbound));
}

/*
 * Has each message of a socket say when the kernel took it, and gives it room for those that come faster than they are
 * read; what is refused of the latter is not missed.
 */
static inline int ble_socket_record(int fd, int room)
{
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    return ble_result(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)));
}

/* Reads one message and tells when the kernel took it, if it says; `time` is left alone where it does not. -1 sets errno. */
static inline ssize_t ble_receive_timed(int fd, void *bytes, size_t capacity, struct timespec *time)
{
    return ble_receive_with(fd, bytes, capacity, SOL_SOCKET, SCM_TIMESTAMPNS, time, sizeof(*time));
}

/* How many messages the kernel has thrown away for want of room. */
static inline uint32_t ble_socket_drops(int fd)
{
    uint32_t numbers[16];
    socklen_t length = sizeof(numbers);
    memset(numbers, 0, sizeof(numbers));
    /* SO_MEMINFO; the ninth number is SK_MEMINFO_DROPS. */
    return getsockopt(fd, SOL_SOCKET, 55, numbers, &length) < 0 ? 0 : numbers[8];
}

static inline int ble_hci_bring_up(int fd, uint16_t device)
{
    return ble_result(ioctl(fd, HCIDEVUP, (unsigned long)device));
}

static inline int ble_hci_bring_down(int fd, uint16_t device)
{
    return ble_result(ioctl(fd, HCIDEVDOWN, (unsigned long)device));
}

/* Writes the indices of up to 32 adapters and returns how many there are. */
static inline int ble_hci_list(int fd, uint16_t indices[32])
{
    struct {
        struct hci_dev_list_req list;
        struct hci_dev_req room[32];
    } request;
    memset(&request, 0, sizeof(request));
    request.list.dev_num = 32;
    if (ioctl(fd, HCIGETDEVLIST, &request) < 0)
        return -errno;
    int count = request.list.dev_num < 32 ? request.list.dev_num : 32;
    const char *requests = (const char *)&request + offsetof(struct hci_dev_list_req, dev_req);
    for (int i = 0; i < count; i++) {
        struct hci_dev_req one;
        memcpy(&one, requests + (size_t)i * sizeof(one), sizeof(one));
        indices[i] = one.dev_id;
    }
    return count;
}

struct ble_hci_information {
    char name[9];
    uint64_t address;
    uint32_t flags;
    uint8_t bus;
};

static inline int ble_hci_get_information(int fd, uint16_t device, struct ble_hci_information *information)
{
    struct hci_dev_info raw;
    memset(&raw, 0, sizeof(raw));
    raw.dev_id = device;
    if (ioctl(fd, HCIGETDEVINFO, &raw) < 0)
        return -errno;
    memset(information, 0, sizeof(*information));
    memcpy(information->name, raw.name, sizeof(raw.name));
    for (int i = 5; i >= 0; i--)
        information->address = information->address << 8 | raw.bdaddr.b[i];
    information->flags = raw.flags;
    information->bus = raw.type & 0x0F;
    return 0;
}

/* TCP */

static inline int ble_tcp_set_no_delay(int fd)
{
    int on = 1;
    return ble_result(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
}

/* Ends the connection if the other machine is silent for 25 seconds, for example without power: without data in flight,
   after three probes. */
static inline int ble_tcp_notice_silence(int fd)
{
    int on = 1, idle = 10, interval = 5, count = 3;
    unsigned int timeout = 25000;
    if (setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)) < 0
        || setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval)) < 0
        || setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count)) < 0
        || setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout)) < 0)
        return -errno;
    return ble_result(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)));
}

/* The kernel forgets this option; it is set again after every receive. */
static inline int ble_tcp_set_quick_ack(int fd)
{
    int on = 1;
    return ble_result(setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on)));
}

/* The pending error of a socket as a positive errno, zero for none. */
static inline int ble_socket_error(int fd)
{
    int error = 0;
    socklen_t length = sizeof(error);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        return errno;
    return error;
}

/* Lets a TCP port be listened on that connections of an earlier process still linger at. */
static inline int ble_reuse_address(int fd)
{
    int on = 1;
    return ble_result(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
}

/* The port that a TCP socket is bound to. */
static inline int ble_tcp_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t length = sizeof(address);
    if (getsockname(fd, &address.any, &length) < 0)
        return -errno;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

/* Takes a connection that waits; it is non-blocking. */
static inline int ble_accept(int fd)
{
    int connection = accept(fd, NULL, NULL);
    if (connection < 0)
        return -errno;
    if (fcntl(connection, F_SETFD, FD_CLOEXEC) < 0 || fcntl(connection, F_SETFL, O_NONBLOCK) < 0) {
        int error = errno;
        close(connection);
        return -error;
    }
    return connection;
}

/* Descriptors */

static inline int ble_open(const char *path, int flags, unsigned mode)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return ble_result(fd);
}

static inline int ble_duplicate(int fd)
{
    return ble_result(fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

static inline int ble_stream_socket(int family)
{
    return ble_result(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/* Keeps packets apart as the HCI sockets do: each read gives one. */
static inline int ble_seqpacket_socket(int family)
{
    return ble_result(socket(family, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/*
 * Writes to a file without raising a signal. If it is a pipe whose reader has closed it, fails with EPIPE. If it has
 * reached the size limit of the process (RLIMIT_FSIZE), fails with EFBIG. SIGPIPE and SIGXFSZ are blocked during the
 * call, and the one that the call raises is discarded. Returns -1 and sets errno on failure.
 */
static inline ssize_t ble_write_without_signal(int fd, const void *bytes, size_t count)
{
    static const struct timespec now = { 0, 0 };
    sigset_t blocked, before, pending;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
    sigaddset(&blocked, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    ssize_t result = write(fd, bytes, count);
    int error = errno;
    int raised = result >= 0 ? 0 : error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    if (raised && !sigismember(&pending, raised)) {
        sigset_t discarded;
        sigemptyset(&discarded);
        sigaddset(&discarded, raised);
        (void)sigtimedwait(&discarded, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return result;
}

/* Makes a pipe hold at least `size` bytes. Fails if this user may not have such a large pipe. */
static inline int ble_pipe_enlarge(int fd, int size)
{
    /* F_SETPIPE_SZ and F_GETPIPE_SZ, which the headers define with GNU extensions only. */
    enum { set_size = 1031, get_size = 1032 };
    int present = fcntl(fd, get_size, 0);
    return ble_result(present < 0 || present >= size ? present : fcntl(fd, set_size, size));
}

static inline int ble_eventfd(void)
{
    return ble_result(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

/* Serial lines */

static inline int ble_baud_constant(uint32_t rate, speed_t *speed)
{
    switch (rate) {
#define BLE_BAUD(n) case n: *speed = B##n; return 0;
    BLE_BAUD(1200) BLE_BAUD(2400) BLE_BAUD(4800) BLE_BAUD(9600) BLE_BAUD(19200) BLE_BAUD(38400) BLE_BAUD(57600)
    BLE_BAUD(115200) BLE_BAUD(230400) BLE_BAUD(460800) BLE_BAUD(500000) BLE_BAUD(576000) BLE_BAUD(921600)
    BLE_BAUD(1000000) BLE_BAUD(1152000) BLE_BAUD(1500000) BLE_BAUD(2000000) BLE_BAUD(2500000) BLE_BAUD(3000000)
    BLE_BAUD(3500000) BLE_BAUD(4000000)
#undef BLE_BAUD
    default: return -EINVAL;
    }
}

/*
 * Makes the line raw, eight bits, no parity, one stop bit (Vol 4, Part A, 3), at `rate`, with RTS/CTS where asked, takes
 * it for this process alone and throws away what had arrived before. Fails with EINVAL if the device does not support
 * the rate. ble_serial_release ends the use of the line.
 */
static inline int ble_serial_configure(int fd, uint32_t rate, int rts_cts)
{
    struct termios settings, accepted;
    speed_t speed;
    int result = ble_baud_constant(rate, &speed);
    if (result < 0)
        return result;
    if (tcgetattr(fd, &settings) < 0)
        return -errno;
    cfmakeraw(&settings);
    /* Raw mode keeps these. An earlier program may have set them, and their XOFF would be a byte of a packet. */
    settings.c_iflag &= ~(tcflag_t)(IXOFF | IXANY | INPCK);
    settings.c_cflag |= CLOCAL | CREAD;
    settings.c_cflag &= ~(tcflag_t)CSTOPB;
    if (rts_cts)
        settings.c_cflag |= CRTSCTS;
    else
        settings.c_cflag &= ~(tcflag_t)CRTSCTS;
    settings.c_cc[VMIN] = 1;
    settings.c_cc[VTIME] = 0;
    if (cfsetispeed(&settings, speed) < 0 || cfsetospeed(&settings, speed) < 0)
        return -errno;
    if (tcsetattr(fd, TCSANOW, &settings) < 0)
        return -errno;
    /* A device that does not support the rate keeps another one, and reports no error. */
    if (tcgetattr(fd, &accepted) < 0)
        return -errno;
    if (cfgetospeed(&accepted) != speed)
        return -EINVAL;
    if (ioctl(fd, TIOCEXCL) < 0)
        return -errno;
    if (tcflush(fd, TCIOFLUSH) < 0) {
        int error = errno;
        (void)ioctl(fd, TIOCNXCL);
        return -error;
    }
    return 0;
}

/*
 * Ends the use of a configured line before it is closed. Discards the output that waits, and turns off RTS/CTS for the
 * bytes that the device has already. Otherwise close would wait up to 30 s for a controller that accepts nothing. Other
 * programs can open the line again, also if this descriptor is not its last.
 */
static inline void ble_serial_release(int fd)
{
    struct termios settings;
    (void)tcflush(fd, TCOFLUSH);
    if (tcgetattr(fd, &settings) == 0 && (settings.c_cflag & CRTSCTS)) {
        settings.c_cflag &= ~(tcflag_t)CRTSCTS;
        (void)tcsetattr(fd, TCSANOW, &settings);
    }
    (void)ioctl(fd, TIOCNXCL);
}

#endif
