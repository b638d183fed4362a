import BluetoothTypes
import CBLEBluetooth
import Dispatch
import Glibc
import Synchronization

/// Connects to a socket within a timeout. It blocks its thread until then. After a cancellation, it begins no other
/// attempt.
struct SocketConnector {
    /// The name of the address, for errors.
    let name: String
    private let deadline: UInt64
    private let isCancelled: CancellationCheck

    init(name: String, timeout: Duration, isCancelled: @escaping CancellationCheck = { false }) {
        self.name = name
        deadline = monotonicNanoseconds() + UInt64(clamping: max(timeout.wholeNanoseconds, 0))
        self.isCancelled = isCancelled
    }

    init(name: String, _ options: TransportOptions) {
        self.init(name: name, timeout: options.connectTimeout, isCancelled: options.isCancelled)
    }

    // MARK: UNIX

    func connect(path: String) throws(TransportError) -> OwnedDescriptor {
        guard let address = SocketAddress(path: path) else { throw .connectionFailed(name, errno: ENAMETOOLONG) }
        return try connect(address)
    }

    /// Connects to a socket that preserves packet boundaries.
    func connect(packetsAt path: String) throws(TransportError) -> OwnedDescriptor {
        guard let address = SocketAddress(path: path) else { throw .connectionFailed(name, errno: ENAMETOOLONG) }
        return try connect(address, by: ble_seqpacket_socket)
    }

    // MARK: TCP

    /// Tries each address of the host. Each gets an equal part of the remaining time.
    func connect(host: String, port: UInt16) throws(TransportError) -> OwnedDescriptor {
        let addresses = try resolve(host, port)
        var failure = TransportError.unknownHost(host)
        for (index, address) in addresses.enumerated() {
            do throws(TransportError) {
                let descriptor = try connect(address, share: Int32(addresses.count - index))
                _ = ble_tcp_set_no_delay(descriptor.number)
                _ = ble_tcp_notice_silence(descriptor.number)
                _ = ble_tcp_set_quick_ack(descriptor.number)
                return descriptor
            } catch {
                failure = error
            }
        }
        throw failure
    }

    /// Resolves the name of a host on another thread, because the lookup has no timeout of its own. An address is not
    /// looked up.
    private func resolve(_ host: String, _ port: UInt16) throws(TransportError) -> [SocketAddress] {
        if let addresses = try? SocketAddress.all(ofHost: host, port: port, isNumeric: true).get(), !addresses.isEmpty {
            return addresses
        }
        let lookup = Lookup()
        startBlocking {
            lookup.finish(SocketAddress.all(ofHost: host, port: port))
        }
        switch lookup.result(withinMilliseconds: milliseconds(until: deadline)) {
        case .success(let addresses) where addresses.isEmpty: throw .unknownHost(host)
        case .success(let addresses): return addresses
        case .failure(let error) where error.code == EAGAIN: throw .hostLookupFailed(host)
        case .failure(let error): throw .connectionFailed(name, errno: error.code)
        case nil: throw .connectTimedOut(name)
        }
    }

    private final class Lookup: Sendable {
        private let addresses = Mutex<Result<[SocketAddress], Errno>?>(nil)
        private let isDone = DispatchSemaphore(value: 0)

        func finish(_ found: Result<[SocketAddress], Errno>) {
            addresses.withLock { $0 = found }
            isDone.signal()
        }

        func result(withinMilliseconds milliseconds: Int32) -> Result<[SocketAddress], Errno>? {
            _ = isDone.wait(timeout: .now() + .milliseconds(Int(milliseconds)))
            return addresses.withLock { $0 }
        }
    }

    // MARK: Both

    private func connect(
        _ address: SocketAddress,
        share: Int32 = 1,
        by makeSocket: (_ family: Int32) -> Int32 = ble_stream_socket
    ) throws(TransportError) -> OwnedDescriptor {
        let descriptor = OwnedDescriptor(makeSocket(address.family))
        guard descriptor.number >= 0 else { throw .connectionFailed(name, errno: -descriptor.number) }
        while true {
            guard !isCancelled() else { throw .connectionFailed(name, errno: ECANCELED) }
            switch uninterrupted({ address.connect(descriptor.number) }) {
            case .success: return descriptor
            case .failure(let error):
                switch error.code {
                case EAGAIN where address.family == AF_UNIX:
                    // The listener's queue is full. There is no event to wait for, so retry after a pause.
                    let left = milliseconds(until: deadline)
                    guard left > 0 else { throw .connectTimedOut(name) }
                    pause(milliseconds: min(10, left))
                // With EALREADY and EISCONN, an interrupted call has begun or made the connection.
                case EINPROGRESS, EALREADY:
                    try waitForConnection(descriptor, share: share)
                    return descriptor
                case EISCONN: return descriptor
                default: throw .connectionFailed(name, errno: error.code)
                }
            }
        }
    }

    private func waitForConnection(_ descriptor: OwnedDescriptor, share: Int32) throws(TransportError) {
        let now = monotonicNanoseconds()
        let end = now + (deadline - min(now, deadline)) / UInt64(share)
        do throws(Errno) {
            guard try poll(descriptor.number, events: POLLOUT, until: end) else {
                throw Errno(code: ETIMEDOUT)
            }
            let failure = ble_socket_error(descriptor.number)
            guard failure == 0 else { throw Errno(code: failure) }
        } catch {
            throw error.code == ETIMEDOUT ? .connectTimedOut(name) : .connectionFailed(name, errno: error.code)
        }
    }
}
