import BLEByteCoding
import BLEHCI
import BluetoothTypes
import DequeModule
import OrderedCollections

/// The outbound queues of all isochronous streams.
///
/// It cuts SDUs into ISO packets that fit the controller's ISO buffers, and hands over as many packets as the
/// controller has buffers. The streams take turns, one SDU each. A controller may need all packets of an SDU before it
/// frees a buffer, so parts of several SDUs could use all buffers indefinitely.
///
/// ## Sequence numbers
///
/// The sequence number of an SDU counts SDU intervals, also those without an SDU (Vol 4, Part E, 5.4.5). The interval
/// of the first SDU has number 0. Each SDU belongs to a later interval than the SDU before it, so SDUs that are queued
/// ahead of time have consecutive numbers.
struct IsochronousSender {
    private struct Unit {
        let bytes: [UInt8]
        let header: ISODataLoadHeader
        var sent = 0
        var hasBegun = false
    }

    private struct Queue {
        var units = Deque<Unit>()
        let sduInterval: Duration
        /// When the interval with number 0 began; nil before the first SDU.
        var start: Instant?
        /// The number of the SDU interval after that of the last SDU.
        var nextInterval: UInt64 = 0
        var packetsInController = 0

        init(sduInterval: Duration) {
            self.sduInterval = sduInterval
        }

        /// Returns the number of the SDU interval of the next SDU.
        mutating func takeInterval(at now: Instant) -> UInt64 {
            let start = start ?? now
            self.start = start
            let elapsed = now > start ? UInt64((now - start).wholeNanoseconds) : 0
            let interval = UInt64(max(1, sduInterval.wholeNanoseconds))
            let number = max(nextInterval, elapsed / interval)
            nextInterval = number + 1
            return number
        }
    }

    /// Maximum number of unsent SDUs per stream.
    static let unitLimit = 8
    /// The longest fields before the data in the first packet of an SDU, in bytes.
    static let maximumHeaderLength = 8

    /// The longest load of one ISO packet in bytes, with the fields before the data.
    private(set) var packetLength = 0
    /// The number of ISO packets that the controller can hold.
    private(set) var packetCount = 0
    /// The longest SDU that fits into the controller's buffers, in bytes. A controller may free the buffers of an SDU
    /// only when all of it was sent.
    var longestSDU: Int { max(0, packetLength * packetCount - Self.maximumHeaderLength) }
    /// Free ISO buffers of the controller.
    private(set) var credits = 0
    private var queues: OrderedDictionary<ConnectionHandle, Queue> = [:]
    /// The place of the stream whose turn is next.
    private var turn = 0

    /// Starts with the buffers of a controller that holds nothing.
    mutating func configure(packetLength: Int, packetCount: Int) {
        self = IsochronousSender()
        guard packetLength > Self.maximumHeaderLength else { return }
        self.packetLength = packetLength
        self.packetCount = packetCount
        credits = packetCount
    }

    mutating func open(_ handle: ConnectionHandle, sduInterval: Duration) {
        if queues[handle] == nil { queues[handle] = Queue(sduInterval: sduInterval) }
    }

    /// Drops the unsent SDUs of a stream that is being ended. The controller still holds packets of it, and gets the
    /// rest of an SDU that has begun, without which it may not free its buffers.
    mutating func dropUnsent(_ handle: ConnectionHandle) { queues[handle]?.units.removeAll { !$0.hasBegun } }

    /// Drops a stream that has ended. The controller flushes the packets that it holds for the stream, so their
    /// buffers are free.
    mutating func close(_ handle: ConnectionHandle) {
        guard let queue = queues.removeValue(forKey: handle) else { return }
        credits += queue.packetsInController
    }

    func hasRoom(_ handle: ConnectionHandle) -> Bool {
        queues[handle].map { $0.units.count < IsochronousSender.unitLimit } ?? false
    }

    /// The number of SDUs of the stream that were not completely handed to the controller.
    func unsentCount(_ handle: ConnectionHandle) -> Int { queues[handle]?.units.count ?? 0 }

    /// Whether the controller has sent all SDUs of the stream; true for an unknown stream.
    func isDrained(_ handle: ConnectionHandle) -> Bool {
        queues[handle].map { $0.units.isEmpty && $0.packetsInController == 0 } ?? true
    }

    /// Appends an SDU to the stream's queue.
    ///
    /// - Precondition: the queue has room, and the SDU has at most ``ISODataLoadHeader/maximumSDULength`` bytes.
    mutating func enqueue(_ sdu: [UInt8], timeStamp: UInt32?, on handle: ConnectionHandle, at now: Instant) {
        guard let number = queues[handle]?.takeInterval(at: now) else { return }
        let header = ISODataLoadHeader(
            timeStamp: timeStamp,
            packetSequenceNumber: UInt16(truncatingIfNeeded: number),
            sduLength: UInt16(truncatingIfNeeded: sdu.count)
        )
        queues[handle]?.units.append(Unit(bytes: sdu, header: header))
    }

    /// Whether there is a packet to send, and a buffer for it.
    var hasPacket: Bool { credits > 0 && queues.values.contains { !$0.units.isEmpty } }

    /// Appends the next ISO packet with its H4 indicator, if there is one and the controller has a buffer for it.
    ///
    /// - Returns: the stream of the packet.
    mutating func nextPacket(into buffer: inout PacketBuffer) -> ConnectionHandle? {
        guard credits > 0 else { return nil }
        let begun = queues.values.firstIndex { $0.units.first?.hasBegun == true }
        for offset in 0..<queues.count {
            let index = ((begun ?? turn) + offset) % queues.count
            guard var unit = queues.values[index].units.first else { continue }
            let handle = queues.keys[index]
            encodePacket(of: &unit, on: handle, into: &buffer)
            if unit.sent == unit.bytes.count {
                queues.values[index].units.removeFirst()
            } else {
                queues.values[index].units[0] = unit
            }
            queues.values[index].packetsInController += 1
            credits -= 1
            turn = index + 1
            return handle
        }
        return nil
    }

    private func encodePacket(of unit: inout Unit, on handle: ConnectionHandle, into buffer: inout PacketBuffer) {
        let room = unit.hasBegun ? packetLength : packetLength - unit.header.length
        let end = min(unit.sent + room, unit.bytes.count)
        // The span borrows the array, not the unit, which changes below.
        let bytes = unit.bytes
        let fragment = bytes.rawSpan.extracting(unit.sent..<end)
        buffer.append(PacketType.iso.rawValue)
        if unit.hasBegun {
            ISOPacket.encodeContinuation(
                on: handle,
                isLast: end == unit.bytes.count,
                fragment: fragment,
                into: &buffer
            )
        } else {
            ISOPacket.encodeStart(
                of: unit.header,
                on: handle,
                isComplete: end == unit.bytes.count,
                fragment: fragment,
                into: &buffer
            )
        }
        unit.hasBegun = true
        unit.sent = end
    }

    /// Handles Number Of Completed Packets for one stream. A count above the number of packets in the controller is
    /// reduced to that number.
    ///
    /// - Returns: whether the handle is that of a stream.
    mutating func completed(_ count: Int, on handle: ConnectionHandle) -> Bool {
        guard let held = queues[handle]?.packetsInController else { return false }
        let count = min(count, held)
        queues[handle]?.packetsInController = held - count
        credits += count
        return true
    }
}
