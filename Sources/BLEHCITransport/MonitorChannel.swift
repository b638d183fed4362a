import BLEByteCoding
import BLECapture
import CBLEBluetooth
import Glibc

/// Linux's monitor channel: all HCI traffic of the kernel's adapters, whatever program causes it.
///
///     var channel = try MonitorChannel()
///     while let record = try channel.next() { print(record.adapterIndex) }
///
/// It only observes, and needs no adapter. It begins with a note for each existing adapter. The process needs
/// CAP_NET_RAW.
public struct MonitorChannel: ~Copyable {
    /// The number of bytes that the kernel may buffer until they are read.
    private static let room: Int32 = 4 << 20
    /// Maximum number of records that are read after the stop. The kernel's buffer holds fewer. So the records that
    /// have arrived by then are read, and the reading ends even if traffic continues.
    static let limitAfterStop = 16_384

    private let descriptor: OwnedDescriptor
    private let stop: CancellationToken
    private var message = [UInt8](repeating: 0, count: CaptureRecord.maximumMonitorMessageLength)
    /// The number of records received.
    public private(set) var recordCount: UInt64 = 0
    /// The number of records that the kernel has dropped because they were not read in time.
    public private(set) var drops: UInt64 = 0
    /// The number of reads after the stop.
    private var countAfterStop = 0

    /// Opens the channel.
    ///
    /// - Parameter stop: ends the records, after those that have arrived by then.
    public init(stop: CancellationToken = CancellationToken()) throws(TransportError) {
        let socket = OwnedDescriptor(ble_hci_socket())
        guard socket.number >= 0 else { throw .monitor(errno: -socket.number) }
        let result = ble_hci_bind(socket.number, UInt16(HCI_DEV_NONE), UInt16(HCI_CHANNEL_MONITOR))
        guard result >= 0 else { throw .monitor(errno: -result) }
        self.init(socket, stop: stop)
    }

    /// - Parameter descriptor: a non-blocking socket that preserves message boundaries.
    init(_ descriptor: OwnedDescriptor, stop: CancellationToken) {
        self.descriptor = descriptor
        self.stop = stop
        _ = ble_socket_record(descriptor.number, MonitorChannel.room)
    }

    /// Waits for the next record and returns it, or returns nil when reading is cancelled.
    ///
    /// - Parameter beforeWaiting: called if no record is available yet.
    @_lifetime(&self)
    public mutating func next(beforeWaiting: () -> Void = {}) throws(TransportError) -> CaptureRecord? {
        guard let (length, time) = try receive(beforeWaiting) else { return nil }
        return CaptureRecord(
            monitorMessage: message.rawSpan.extracting(first: length),
            number: recordCount,
            time: time,
            cumulativeDrops: drops
        )
    }

    private mutating func receive(_ beforeWaiting: () -> Void) throws(TransportError) -> (Int, CaptureTime)? {
        while true {
            if stop.isCancelled {
                guard countAfterStop < MonitorChannel.limitAfterStop else { return nil }
                countAfterStop += 1
            }
            var time = timespec()
            switch BLEHCITransport.receive(descriptor.number, into: &message, time: &time) {
            case .success(0): return nil
            case .success(let length):
                recordCount += 1
                if time.tv_sec == 0 { time = wallClock() }
                return (length, CaptureTime(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec)))
            case .failure(let error) where error.wouldBlock:
                // The kernel's count never falls; zero is also the answer if it cannot be read.
                drops = max(drops, UInt64(ble_socket_drops(descriptor.number)))
                guard try wait(beforeWaiting) else { return nil }
            case .failure(let error): throw .readFailed(errno: error.code)
            }
        }
    }
}

extension MonitorChannel {
    private func wait(_ beforeWaiting: () -> Void) throws(TransportError) -> Bool {
        do throws(Errno) {
            return try stop.wait(for: descriptor.number, beforeWaiting: beforeWaiting)
        } catch {
            throw .readFailed(errno: error.code)
        }
    }
}

extension TransportError {
    /// Maps the errno of opening the monitor channel to an error.
    fileprivate static func monitor(errno: Int32) -> TransportError {
        switch errno {
        case EPERM, EACCES: .permissionDenied("the kernel's monitor channel")
        // Kernels without Bluetooth, and kernels older than the monitor channel.
        case EAFNOSUPPORT, EPROTONOSUPPORT, EINVAL: .monitorUnavailable
        default: .connectionFailed("the kernel's monitor channel", errno: errno)
        }
    }
}
