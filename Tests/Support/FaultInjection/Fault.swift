/// A system call of this process that is made to fail.
///
/// A C target in the test program defines the calls. The linker and the loader prefer these definitions to those of the
/// C library, so the modules are tested as they are shipped, including their C headers, Foundation and Dispatch. A
/// seam in the modules would test other code than the shipped one; a library for `LD_PRELOAD` would need a process for
/// each case.
public struct Fault: Sendable, CustomStringConvertible {
    /// The calls that can fail.
    public enum Call: String, CaseIterable, Sendable {
        case accept, bind, chmod, close, closedir, connect, eventfd, fchmod, fcntl, flock, fstat, fsync, ftruncate
        case clock = "clock_gettime"
        case epollCreate = "epoll_create1"
        case epollControl = "epoll_ctl"
        case getaddrinfo, getsockname, getsockopt, ioctl, kill, link, listen, lstat, mkdir, open, opendir, poll, pread
        case pwrite, read, readdir, recvmsg, rename, rmdir, send, setsockopt, shutdown, socket, stat, tcflush, tcgetattr
        case tcsetattr, unlink, usleep, write
    }

    /// What the call does instead of its work.
    public enum Outcome: Sendable {
        /// It fails with an errno. `close` does its work nevertheless, as Linux does.
        case fails(Int32)
        /// It does nothing and returns a number.
        case returns(Int)
        /// It transfers at most this many bytes.
        case transfers(Int)
        /// The realtime clock is ahead by this many seconds.
        case isAhead(seconds: Int)
    }

    /// The calls to which a fault is confined, so that tests can run in parallel.
    public enum Scope: Sendable {
        /// The calls of the thread that adds the fault.
        case thread
        /// The calls with this text in their path, or in the path of their descriptor.
        case path(String)
        /// The calls on a descriptor, until it is closed.
        case descriptor(Int32)
    }

    public var call: Call
    public var outcome: Outcome
    /// The number of calls that succeed before the first failure.
    public var skipped: Int
    /// The number of calls that fail.
    public var count: Int

    /// - Parameters:
    ///   - skipped: the number of calls that succeed before the first failure.
    ///   - count: the number of calls that fail.
    public init(_ call: Call, _ outcome: Outcome, after skipped: Int = 0, count: Int = .max) {
        self.call = call
        self.outcome = outcome
        self.skipped = skipped
        self.count = count
    }

    public var description: String {
        "\(call.rawValue) \(outcome)" + (skipped > 0 ? " after \(skipped)" : "") + (count < .max ? " × \(count)" : "")
    }
}
