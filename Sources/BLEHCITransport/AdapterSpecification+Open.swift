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

    /// Opens a transport to the controller on a loop's queue.
    ///
    /// - Parameters:
    ///   - loop: the loop on whose queue the transport calls its owner.
    ///   - options: timeouts and memory limits of the transport.
    ///   - makeVirtual: creates a controller in this process on the air of the given name. Without it,
    ///     ``virtual(name:)`` cannot be opened.
    package func open(
        on loop: LoopQueue,
        options: TransportOptions = TransportOptions(),
        makeVirtual: (@Sendable (_ name: String) -> any Transport)? = nil
    ) async throws(TransportError) -> any Transport {
        let kind: DescriptorTransport.Kind
        let descriptor: OwnedDescriptor
        switch self {
        case .virtual(let name):
            guard let makeVirtual else { throw .unsupported("a virtual adapter") }
            return makeVirtual(name)
        case .hci(let index, let channel):
            kind = .hci(index: index, channel: channel)
            descriptor = try await offLoop { () throws(TransportError) in
                try openHCISocket(index: index, channel: channel, bringsDown: options.bringsAdapterDown)
            }
        case .unix(let path):
            kind = .unix
            descriptor = try await offLoop { () throws(TransportError) in
                try SocketConnector(name: "\(self)", timeout: options.connectTimeout).connect(path: path)
            }
        case .seqpacket(let path):
            kind = .seqpacket
            descriptor = try await offLoop { () throws(TransportError) in
                try SocketConnector(name: "\(self)", timeout: options.connectTimeout).connect(packetsAt: path)
            }
        case .tcp(let host, let port):
            kind = .tcp
            descriptor = try await offLoop { () throws(TransportError) in
                try SocketConnector(name: "\(self)", timeout: options.connectTimeout).connect(host: host, port: port)
            }
        case .serial(let path, let rate, let usesFlowControl):
            kind = .serial
            descriptor = try await offLoop { () throws(TransportError) in
                try openSerialLine(path, rate: rate, usesFlowControl: usesFlowControl)
            }
        }
        return DescriptorTransport(descriptor, kind: kind, loop: loop, options: options)
    }
}

// MARK: HCI sockets

func openHCISocket(
    index: Int,
    channel: AdapterSpecification.Channel,
    bringsDown: Bool
) throws(TransportError) -> OwnedDescriptor {
    let socket = OwnedDescriptor(ble_hci_socket())
    guard socket.number >= 0 else { throw .hciSocket(errno: -socket.number, index: index) }
    let device = UInt16(clamping: index)
    var result: Int32
    switch channel {
    case .user:
        if bringsDown { _ = ble_hci_bring_down(socket.number, device) }
        result = ble_hci_bind(socket.number, device, UInt16(HCI_CHANNEL_USER))
        // After this process closes an adapter, as in a recovery, the kernel needs time to bring it down.
        for _ in 0..<10 where result == -EBUSY || result == -EUSERS {
            pause(milliseconds: 20)
            result = ble_hci_bind(socket.number, device, UInt16(HCI_CHANNEL_USER))
        }
    case .raw:
        result = ble_hci_bind(socket.number, device, UInt16(HCI_CHANNEL_RAW))
        if result >= 0 { result = ble_hci_pass_inbound(socket.number) }
    }
    guard result >= 0 else { throw .hciSocket(errno: -result, index: index) }
    return socket
}

extension TransportError {
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

func openSerialLine(
    _ path: String,
    rate: Int,
    usesFlowControl: Bool
) throws(TransportError) -> OwnedDescriptor {
    let line = OwnedDescriptor(unsafe ble_open(path, O_RDWR | O_NOCTTY | O_NONBLOCK, 0))
    guard line.number >= 0 else { throw .serialLine(path, errno: -line.number) }
    let result = ble_serial_configure(line.number, UInt32(clamping: rate), usesFlowControl ? 1 : 0)
    guard result >= 0 else { throw .serialLine(path, errno: -result) }
    return line
}
