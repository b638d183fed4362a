import BluetoothTypes
import CBLEBluetooth
import Dispatch
import Glibc
import Synchronization

/// Connects to a socket within a timeout. It blocks its thread until then.
struct SocketConnector {
    /// The name of the address, for errors.
    let name: String
    private let deadline: UInt64

    init(name: String, timeout: Duration) {
        self.name = name
        deadline = monotonicNanoseconds() + UInt64(clamping: max(timeout.wholeNanoseconds, 0))
    }

    private var remainingMilliseconds: Int32 {
        let now = monotonicNanoseconds()
        return now >= deadline ? 0 : Int32(clamping: (deadline - now + 999_999) / 1_000_000)
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
                _ = ble_tcp_set_quick_ack(descriptor.number)
                return descriptor
            } catch {
                failure = error
            }
        }
        throw failure
    }

    /// Resolves the host on another thread, because the lookup has no timeout of its own.
    private func resolve(_ host: String, _ port: UInt16) throws(TransportError) -> [SocketAddress] {
        let lookup = Lookup()
        DispatchQueue.global().async {
            lookup.finish(SocketAddress.all(ofHost: host, port: port))
        }
        guard let addresses = lookup.result(withinMilliseconds: remainingMilliseconds) else {
            throw .connectTimedOut(name)
        }
        guard !addresses.isEmpty else { throw .unknownHost(host) }
        return addresses
    }

    private final class Lookup: Sendable {
        private let addresses = Mutex<[SocketAddress]?>(nil)
        private let isDone = DispatchSemaphore(value: 0)

        func finish(_ found: [SocketAddress]) {
            addresses.withLock { $0 = found }
            isDone.signal()
        }

        func result(withinMilliseconds milliseconds: Int32) -> [SocketAddress]? {
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
            let result = uninterrupted { address.connect(descriptor.number) }
            switch result {
            case .success:
                return descriptor
            case .failure(let error) where error.code == EAGAIN && address.family == AF_UNIX:
                // The listener's queue is full. There is no event to wait for, so retry after a pause.
                guard remainingMilliseconds > 0 else { throw .connectTimedOut(name) }
                _ = poll(-1, events: 0, milliseconds: min(10, remainingMilliseconds))
            case .failure(let error) where error.code == EINPROGRESS:
                guard poll(descriptor.number, events: POLLOUT, milliseconds: remainingMilliseconds / share) else {
                    throw .connectTimedOut(name)
                }
                let failure = ble_socket_error(descriptor.number)
                guard failure == 0 else { throw .connectionFailed(name, errno: failure) }
                return descriptor
            case .failure(let error):
                throw .connectionFailed(name, errno: error.code)
            }
        }
    }
}
