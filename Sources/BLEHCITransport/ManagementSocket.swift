import CBLEBluetooth
import Glibc

/// A socket of the kernel's management interface. Reading needs no capability.
struct ManagementSocket: Sendable {
    /// The time within which the kernel must answer a command.
    private static let timeout: UInt64 = 1_000_000_000
    /// Maximum number of other messages before an answer. Events of adapters that change while the host waits arrive
    /// first.
    private static let skippedLimit = 64
    /// The length of the longest message that matters: more than the longest answer, which has 283 bytes.
    private static let messageLength = 512

    let descriptor: OwnedDescriptor

    /// - Parameter descriptor: a non-blocking socket that preserves message boundaries.
    init(_ descriptor: OwnedDescriptor) {
        self.descriptor = descriptor
    }

    /// Opens the interface.
    ///
    /// - Returns: nil if the kernel has none, or this process may not use it, as in some containers.
    static func open() -> ManagementSocket? {
        let socket = OwnedDescriptor(ble_hci_socket())
        guard socket.number >= 0,
            ble_hci_bind(socket.number, UInt16(HCI_DEV_NONE), UInt16(HCI_CHANNEL_CONTROL)) >= 0
        else { return nil }
        return ManagementSocket(socket)
    }

    /// Reads what the kernel knows about an adapter.
    ///
    /// - Returns: nil if the adapter does not exist, is on a user channel, or the kernel does not answer.
    func readInformation(index: UInt16) -> ManagementInformation? {
        let command = ManagementCommand.readInformation(index: index)
        guard case .success = send(descriptor.number, command.bytes.rawSpan) else { return nil }
        let deadline = monotonicNanoseconds() + Self.timeout
        for _ in 0..<Self.skippedLimit {
            guard let event = nextEvent(until: deadline) else { return nil }
            guard case .completed(command.opcode, command.index, let status, let parameters) = event else { continue }
            return status == 0 ? try? ManagementInformation(decoding: parameters.rawSpan) : nil
        }
        return nil
    }

    private func nextEvent(until deadline: UInt64) -> ManagementEvent? {
        guard (try? poll(descriptor.number, events: Int32(POLLIN), until: deadline)) == true,
            case .success(let event?) = receive()
        else { return nil }
        return event
    }

    /// Reads a message.
    ///
    /// - Returns: nil at the end of the socket. A malformed message is returned as one that does not matter.
    func receive() -> Result<ManagementEvent?, Errno> {
        var buffer = [UInt8](repeating: 0, count: Self.messageLength)
        return read(descriptor.number, into: &buffer, from: 0).map { length in
            guard length > 0 else { return nil }
            return (try? ManagementEvent(decoding: buffer.rawSpan.extracting(first: length))) ?? .other(code: 0)
        }
    }
}
