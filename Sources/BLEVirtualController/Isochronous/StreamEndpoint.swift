import BLEByteCoding
import BLEHCI
import BluetoothTypes
import DequeModule

/// One controller's side of an isochronous stream: its data paths and the SDUs of its host.
class StreamEndpoint {
    /// An SDU of the host.
    struct Unit {
        let bytes: [UInt8]
        /// The number of ISO packets whose buffers it holds.
        let packetCount: Int
    }

    unowned let controller: VirtualController
    let handle: ConnectionHandle
    var paths: ISODataPathDirections = []
    /// The SDU whose fragments the host is sending.
    var partial: (header: ISODataLoadHeader, bytes: [UInt8], packetCount: Int)?
    private var units: Deque<Unit> = []
    /// The number of the last SDU that was sent, and its time.
    private(set) var lastSent: (number: UInt16, time: Instant)?

    init(controller: VirtualController, handle: ConnectionHandle) {
        self.controller = controller
        self.handle = handle
    }

    /// Whether the stream carries data.
    var isEstablished: Bool { false }
    /// Whether the host may set up data paths (Vol 4, Part E, 7.8.109).
    var takesPaths: Bool { isEstablished }
    /// The longest SDU of the host, in bytes.
    var maximumSDU: Int { 0 }
    /// The data paths that the stream may have.
    var possiblePaths: ISODataPathDirections { [.input, .output] }

    func enqueue(_ unit: Unit) { units.append(unit) }

    /// Takes the next SDU of the host, to send it now, and returns its buffers to the host.
    func takeUnit(number: UInt16) -> Unit? {
        guard let unit = units.popFirst() else { return nil }
        lastSent = (number, controller.air.now)
        controller.isochronous.packetsHeld -= unit.packetCount
        controller.tellCompleted(UInt16(truncatingIfNeeded: unit.packetCount), on: handle)
        return unit
    }

    /// Drops the SDUs of the host, and the data paths.
    func dropData() {
        paths = []
        dropSDUs()
    }

    /// Drops the SDUs of the host. The host knows that their buffers are free.
    func dropSDUs() {
        let held = units.reduce(partial?.packetCount ?? 0) { $0 + $1.packetCount }
        controller.isochronous.packetsHeld -= held
        units = []
        partial = nil
    }

    /// Gives the host an SDU that was received now, or was lost.
    ///
    /// - Parameter bytes: nil if the SDU was lost.
    func deliver(_ bytes: [UInt8]?, number: UInt16) {
        deliver(
            bytes ?? [],
            ISODataLoadHeader(
                timeStamp: controller.timeStamp(controller.air.now),
                packetSequenceNumber: number,
                sduLength: UInt16(truncatingIfNeeded: bytes?.count ?? 0),
                packetStatus: bytes == nil ? .lost : .valid
            )
        )
    }

    /// Sends the host an SDU, in packets of the length of the controller's own buffers.
    private func deliver(_ bytes: [UInt8], _ header: ISODataLoadHeader) {
        guard paths.contains(.output) else { return }
        var sent = 0
        repeat {
            let isStart = sent == 0
            let room = Int(IsochronousState.packetLength) - (isStart ? header.length : 0)
            let end = min(sent + room, bytes.count)
            let fragment = Array(bytes[sent..<end])
            let (handle, isLast) = (handle, end == bytes.count)
            controller.host.statistics.isoPacketsToHost += 1
            controller.send(
                PacketBuffer.bytes { buffer in
                    buffer.append(PacketType.iso.rawValue)
                    if isStart {
                        ISOPacket.encodeStart(
                            of: header,
                            on: handle,
                            isComplete: isLast,
                            fragment: fragment.rawSpan,
                            into: &buffer
                        )
                    } else {
                        ISOPacket.encodeContinuation(
                            on: handle,
                            isLast: isLast,
                            fragment: fragment.rawSpan,
                            into: &buffer
                        )
                    }
                },
                .data
            )
            sent = end
        } while sent < bytes.count
    }
}
