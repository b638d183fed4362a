import CBLEBluetooth
import Dispatch
import Glibc

extension AdapterSpecification {
    /// Opens a transport to the controller on a queue.
    package func open(
        on queue: DispatchQueue,
        options: TransportOptions = TransportOptions(),
        makeVirtual: (@Sendable (_ name: String) -> any Transport)? = nil
    ) async throws(TransportError) -> any Transport {
        try await open(on: LoopQueue(queue, linger: nil), options: options, makeVirtual: makeVirtual)
    }

    /// Opens a transport to the controller on a loop's queue. See ``openController(on:options:makeVirtual:)``.
    package func open(
        on loop: LoopQueue,
        options: TransportOptions = TransportOptions(),
        makeVirtual: (@Sendable (_ name: String) -> any Transport)? = nil
    ) async throws(TransportError) -> any Transport {
        try await openController(on: loop, options: options, makeVirtual: makeVirtual).transport
    }

    /// Opens a transport to the controller on a loop's queue.
    ///
    /// An address is looked up each time. ``automatic`` tries each adapter that could be free, and brings it down
    /// first.
    ///
    /// - Parameters:
    ///   - loop: the loop on whose queue the transport calls its owner.
    ///   - options: timeouts and memory limits of the transport, and whether the opening was cancelled.
    ///   - makeVirtual: creates a controller in this process on the air of the given name. Without it,
    ///     ``virtual(name:)`` cannot be opened.
    package func openController(
        on loop: LoopQueue,
        options: TransportOptions = TransportOptions(),
        makeVirtual: (@Sendable (_ name: String) -> any Transport)? = nil
    ) async throws(TransportError) -> OpenedController {
        switch self {
        case .address, .automatic:
            let opened = try await runBlocking { () throws(TransportError) in
                try openCandidate(in: AdapterInventory.read(), options: options)
            }
            let transport = DescriptorTransport(opened.descriptor, kind: opened.kind, loop: loop, options: options)
            return OpenedController(transport: transport, specification: opened.specification, adapter: opened.adapter)
        default:
            let transport = try await openNamed(on: loop, options: options, makeVirtual: makeVirtual)
            return OpenedController(transport: transport, specification: self)
        }
    }

    /// Opens a transport to a controller that needs no search.
    private func openNamed(
        on loop: LoopQueue,
        options: TransportOptions,
        makeVirtual: (@Sendable (_ name: String) -> any Transport)?
    ) async throws(TransportError) -> any Transport {
        let kind: DescriptorTransport.Kind
        let descriptor: OwnedDescriptor
        switch self {
        case .address, .automatic: throw .noAdapter
        case .virtual(let name):
            guard let makeVirtual else { throw .unsupported("a virtual adapter") }
            return makeVirtual(name)
        case .hci(let index, let channel):
            kind = .hci(index: index, channel: channel)
            descriptor = try await runBlocking { () throws(TransportError) in
                try openHCISocket(
                    index: index,
                    channel: channel,
                    bringsDown: options.bringsAdapterDown,
                    isCancelled: options.isCancelled
                )
            }
        case .unix(let path):
            kind = .unix
            descriptor = try await runBlocking { () throws(TransportError) in
                try SocketConnector(name: "\(self)", options).connect(path: path)
            }
        case .seqpacket(let path):
            kind = .seqpacket
            descriptor = try await runBlocking { () throws(TransportError) in
                try SocketConnector(name: "\(self)", options).connect(packetsAt: path)
            }
        case .tcp(let host, let port):
            kind = .tcp
            descriptor = try await runBlocking { () throws(TransportError) in
                try SocketConnector(name: "\(self)", options).connect(host: host, port: port)
            }
        case .serial(let path, let rate, let usesFlowControl):
            kind = .serial
            descriptor = try await runBlocking { () throws(TransportError) in
                guard !options.isCancelled() else { throw .serialLine(path, errno: ECANCELED) }
                return try openSerialLine(path, rate: rate, usesFlowControl: usesFlowControl)
            }
        }
        return DescriptorTransport(descriptor, kind: kind, loop: loop, options: options)
    }
}

/// A controller that was opened.
package struct OpenedController: Sendable {
    package let transport: any Transport
    /// The controller without a search: a kernel adapter has its present number.
    package let specification: AdapterSpecification
    /// The kernel's adapter, if it was searched for.
    package var adapter: KernelAdapter?
}

// MARK: HCI sockets

/// A kernel adapter that was found and opened.
struct OpenedAdapter {
    let descriptor: OwnedDescriptor
    let adapter: KernelAdapter
    let channel: AdapterSpecification.Channel

    var kind: DescriptorTransport.Kind { .hci(index: adapter.index, channel: channel) }
    var specification: AdapterSpecification { .hci(index: adapter.index, channel: channel) }
}

extension AdapterSpecification {
    /// Opens the first candidate that can be opened.
    ///
    /// - Throws: the error of the only candidate, or ``TransportError/noFreeAdapter(present:)`` with the reason for
    ///   each. The error of a missing capability is thrown at once. After a cancellation, no other candidate is tried.
    func openCandidate(
        in inventory: AdapterInventory,
        options: TransportOptions
    ) throws(TransportError) -> OpenedAdapter {
        let channel: Channel = if case .address(_, let channel) = self { channel } else { .user }
        var failures: [(adapter: KernelAdapter, error: TransportError)] = []
        for adapter in try candidates(in: inventory) {
            do throws(TransportError) {
                let descriptor = try openHCISocket(
                    index: adapter.index,
                    channel: channel,
                    bringsDown: options.bringsAdapterDown || self == .automatic,
                    isCancelled: options.isCancelled
                )
                return OpenedAdapter(descriptor: descriptor, adapter: adapter, channel: channel)
            } catch {
                if options.isCancelled() { throw error }
                switch error {
                case .noSuchAdapter, .adapterBusy, .adapterDown, .adapterRemoved, .blockedByRFKill, .connectionFailed:
                    failures.append((adapter, error))
                default: throw error
                }
            }
        }
        if failures.count == 1, self != .automatic { throw failures[0].error }
        let reasons = failures.map { "\($0.adapter.name) \($0.error.shortReason)" }
        throw .noFreeAdapter(present: reasons.joined(separator: ", "))
    }
}

/// Opens a channel of an adapter.
///
/// - Parameter isCancelled: whether the adapter must not be used any more. Asked before it is brought down, and before
///   each attempt to bind the socket. Then the error has the errno `ECANCELED`.
func openHCISocket(
    index: Int,
    channel: AdapterSpecification.Channel,
    bringsDown: Bool,
    isCancelled: () -> Bool = { false }
) throws(TransportError) -> OwnedDescriptor {
    let socket = OwnedDescriptor(ble_hci_socket())
    guard socket.number >= 0 else { throw .hciSocket(errno: -socket.number, index: index) }
    let device = UInt16(clamping: index)
    func bind(to channel: UInt16) -> Int32 {
        isCancelled() ? -ECANCELED : ble_hci_bind(socket.number, device, channel)
    }
    var result: Int32
    switch channel {
    case .user:
        if bringsDown, !isCancelled() { _ = ble_hci_bring_down(socket.number, device) }
        result = bind(to: UInt16(HCI_CHANNEL_USER))
        // After this process closes an adapter, as in a recovery, the kernel needs time to bring it down.
        for _ in 0..<10 where result == -EBUSY || result == -EUSERS {
            pause(milliseconds: 20)
            result = bind(to: UInt16(HCI_CHANNEL_USER))
        }
    case .raw:
        result = bind(to: UInt16(HCI_CHANNEL_RAW))
        if result >= 0 { result = ble_hci_pass_inbound(socket.number) }
    }
    guard result >= 0 else { throw .hciSocket(errno: -result, index: index) }
    return socket
}

extension TransportError {
    /// Why an adapter could not be opened, as a phrase after its name.
    fileprivate var shortReason: String {
        switch self {
        case .adapterBusy: "is in use"
        case .adapterDown: "is down"
        case .blockedByRFKill: "is blocked by rfkill"
        case .connectionFailed(_, let errno): "cannot be opened (\(describe(errno)))"
        default: "was removed"
        }
    }

    /// Maps the errno of opening an HCI socket to an error.
    static func hciSocket(errno: Int32, index: Int) -> TransportError {
        switch errno {
        case EBUSY, EALREADY, EUSERS: .adapterBusy(index: index)
        case EPERM, EACCES: .permissionDenied("the HCI socket of hci\(index)")
        case ENODEV: .noSuchAdapter(index: index)
        case EAFNOSUPPORT, EPROTONOSUPPORT: .bluetoothUnavailable
        case ENETDOWN: .adapterDown(index: index)
        case ble_ERFKILL: .blockedByRFKill(index: index)
        default: .connectionFailed("hci\(index)", errno: errno)
        }
    }
}

// MARK: Serial lines

/// Opens and configures a serial line. Closing it does not wait for output that the controller has not accepted.
func openSerialLine(
    _ path: String,
    rate: Int,
    usesFlowControl: Bool
) throws(TransportError) -> OwnedDescriptor {
    let number = unsafe ble_open(path, O_RDWR | O_NOCTTY | O_NONBLOCK, 0)
    guard number >= 0 else { throw .serialLine(path, errno: -number) }
    let result = ble_serial_configure(number, UInt32(clamping: rate), usesFlowControl ? 1 : 0)
    guard result >= 0 else {
        // A line that is not configured, such as one that another program uses, is only closed.
        _ = Glibc.close(number)
        throw .serialLine(path, errno: -result)
    }
    return OwnedDescriptor(number, endUse: { ble_serial_release($0) })
}
