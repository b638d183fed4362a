import Foundation

/// The service manager that has started the process, and receives its state: systemd's notify protocol (sd_notify(3)).
struct ServiceManager: Sendable {
    private let path: String
    /// The time after which the manager ends a process that gave no sign of life; nil for no limit.
    let watchdogTimeout: Duration?

    /// Finds the manager in the environment. Returns nil if there is none.
    ///
    /// - Parameter processIdentifier: the number of this process; the watchdog may be meant for another one.
    init?(environment: [String: String], processIdentifier: Int32 = getpid()) {
        guard let path = environment["NOTIFY_SOCKET"], path.hasPrefix("/") || path.hasPrefix("@") else { return nil }
        self.path = path
        let isMeant = environment["WATCHDOG_PID"].map { Int32($0) == processIdentifier } ?? true
        let time = environment["WATCHDOG_USEC"].flatMap { Int64($0) }.flatMap { $0 > 0 ? $0 : nil }
        watchdogTimeout = isMeant ? time.map { .microseconds($0) } : nil
    }

    /// A state for the manager.
    enum State: String {
        case ready = "READY=1"
        case stopping = "STOPPING=1"
        case alive = "WATCHDOG=1"
    }

    /// Reports a state to the manager.
    ///
    /// - Returns: false if the manager cannot be reached.
    @discardableResult
    func notify(_ state: State) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
        // An abstract address begins with a zero byte.
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = MemoryLayout<sockaddr_un>.offset(of: \.sun_path)! + name.count
        let text = state.rawValue
        return withUnsafePointer(to: address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                sendto(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL), address, socklen_t(length))
            }
        } == text.utf8.count
    }
}
