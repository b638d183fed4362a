import BLEByteCoding
import BLECapture
import BLEHCI
import BluetoothTypes

/// A summary of a capture: devices, links, procedures, errors, and round-trip times.
package struct CaptureSummary: Sendable {
    /// Maximum number of devices, of links and of errors. Reports and links beyond it are only counted.
    private static let limit = 4096

    /// A device that advertised or was connected.
    package struct Device: Sendable {
        /// The names of the device, complete and shortened.
        package var names: [String] = []
        /// The services that the device advertised.
        package var services: [BluetoothUUID] = []
        /// The number of advertising reports.
        package var reports = 0
        /// The weakest signal, in dBm; nil if no report gave it.
        package var weakest: Int8?
        /// The strongest signal, in dBm; nil if no report gave it.
        package var strongest: Int8?
    }

    /// The captured part of a link, from its connection to its disconnection.
    package struct Link: Sendable {
        /// The identity of the link.
        package let reference: LinkReference
        /// The time in microseconds since 1970.
        package let begin: Int64
        /// The time in microseconds since 1970; nil if the capture ends before the link.
        package var end: Int64?
        /// The reason for the disconnection, if an event gave it.
        package var reason: HCIErrorCode?
        /// ACL data from the captured host.
        package var sent = Traffic()
        /// ACL data to the captured host.
        package var received = Traffic()
    }

    /// ACL data in one direction.
    package struct Traffic: Sendable {
        /// The number of ACL packets.
        package var packets = 0
        /// The number of bytes in the packets, without their headers.
        package var byteCount = 0
        /// The time of the first packet, in microseconds since 1970.
        package var first: Int64?
        /// The time of the last packet, in microseconds since 1970.
        package var last: Int64 = 0

        /// The throughput in bytes per second, between the first and the last packet. Nil if no time passed between
        /// them.
        package var throughput: Double? {
            guard let first, last > first else { return nil }
            return Double(byteCount) / (Double(last &- first) / 1e6)
        }

        mutating func note(_ byteCount: Int, at time: Int64) {
            packets += 1
            self.byteCount &+= byteCount
            first = first ?? time
            last = time
        }
    }

    /// The number of packets of each kind.
    package private(set) var packets: [Layer.Kind: Int] = [:]
    /// The number of malformed packets.
    package private(set) var malformed = 0
    /// The number of packets that the recorder has lost.
    package private(set) var dropped: UInt64 = 0
    /// The time of the first packet, in microseconds since 1970.
    package private(set) var firstTime: Int64?
    /// The time of the last packet, in microseconds since 1970.
    package private(set) var lastTime: Int64 = 0
    /// The devices that advertised or were connected.
    package private(set) var devices: [PeerReference: Device] = [:]
    /// The number of reports of devices beyond the limit.
    package private(set) var uncountedReports = 0
    /// The links by number.
    package private(set) var links: [Int: Link] = [:]
    /// The number of links beyond the limit.
    package private(set) var uncountedLinks = 0
    /// The number of PDUs that each GATT procedure sent, by name.
    package private(set) var procedures: [String: Int] = [:]
    /// The number of errors, by place and error.
    package private(set) var errors: [String: Int] = [:]
    /// The round-trip times of commands, by opcode.
    package private(set) var commandTimes: [UInt16: RoundTrips] = [:]
    /// The round-trip times of ATT requests, by the request's name.
    package private(set) var requestTimes: [String: RoundTrips] = [:]

    mutating func note(_ packet: PacketDescription) {
        packets[packet.kind, default: 0] += 1
        if !packet.malformed.isEmpty { malformed += 1 }
        firstTime = firstTime ?? packet.time
        lastTime = packet.time
    }

    mutating func noteDrops(_ count: UInt64) {
        dropped &+= count
    }

    mutating func noteReport(_ address: PeerAddress, rssi: Int8, _ data: RawSpan) {
        let reference = PeerReference(address: address.value, type: address.type.rawValue)
        guard devices[reference] != nil || devices.count < CaptureSummary.limit else {
            uncountedReports += 1
            return
        }
        devices[reference, default: Device()].note(rssi: rssi, data)
    }

    mutating func linkBegan(_ reference: LinkReference, at time: Int64) {
        guard links.count < CaptureSummary.limit else {
            uncountedLinks += 1
            return
        }
        links[reference.number] = Link(reference: reference, begin: time)
        if let peer = reference.peer, devices.count < CaptureSummary.limit {
            devices[peer, default: Device()].reports += 0
        }
    }

    mutating func linkEnded(_ number: Int, reason: HCIErrorCode?, at time: Int64) {
        links[number]?.end = time
        links[number]?.reason = reason
    }

    mutating func noteData(_ number: Int, _ direction: CaptureDirection, byteCount: Int, at time: Int64) {
        if direction == .hostToController {
            links[number]?.sent.note(byteCount, at: time)
        } else {
            links[number]?.received.note(byteCount, at: time)
        }
    }

    mutating func noteProcedure(_ name: String) {
        procedures[name, default: 0] += 1
    }

    mutating func noteError(_ error: String, in place: String) {
        let key = "\(place): \(error)"
        guard errors[key] != nil || errors.count < CaptureSummary.limit else { return }
        errors[key, default: 0] += 1
    }

    mutating func commandTook(_ opcode: UInt16, microseconds: Int64) {
        guard commandTimes[opcode] != nil || commandTimes.count < 512 else { return }
        commandTimes[opcode, default: RoundTrips()].note(microseconds)
    }

    mutating func requestTook(_ request: String, microseconds: Int64) {
        requestTimes[request, default: RoundTrips()].note(microseconds)
    }
}

extension CaptureSummary.Device {
    fileprivate mutating func note(rssi: Int8, _ data: RawSpan) {
        reports += 1
        // 127 means that the strength is unknown.
        if rssi != 127 {
            weakest = min(weakest ?? rssi, rssi)
            strongest = max(strongest ?? rssi, rssi)
        }
        var iterator = ADStructureIterator(data)
        while let structure = try? iterator.next() {
            switch structure.type {
            case .completeLocalName, .shortenedLocalName:
                guard names.count < 8 else { continue }
                let name = String(decoding: [UInt8](copying: structure.data), as: UTF8.self)
                if !names.contains(name) { names.append(name) }
            default:
                guard 0x02...0x07 ~= structure.type.rawValue else { continue }
                var uuids = structure.uuids
                while let uuid = uuids.next() {
                    if services.count < 32, !services.contains(uuid) { services.append(uuid) }
                }
            }
        }
    }
}

/// Statistics of round-trip times: minimum, maximum, and a median that is exact for few values and approximate for
/// many.
package struct RoundTrips: Sendable {
    /// The number of round trips.
    package private(set) var count = 0
    /// The shortest time, in microseconds.
    package private(set) var least = Int64.max
    /// The longest time, in microseconds.
    package private(set) var most = Int64.min
    /// A histogram with sixteen steps for each power of two, so that each value is accurate to one sixteenth.
    private var counts: [Int: Int] = [:]
    /// The first values.
    private var values: [Int64] = []
    private static let exactCount = 1024

    mutating func note(_ microseconds: Int64) {
        count += 1
        least = min(least, microseconds)
        most = max(most, microseconds)
        if values.count < RoundTrips.exactCount { values.append(microseconds) }
        counts[RoundTrips.step(of: microseconds), default: 0] += 1
    }

    /// The median in microseconds; nil if there were no round trips.
    package var median: Int64? {
        guard count > 0 else { return nil }
        if count <= values.count { return values.sorted()[count / 2] }
        var passed = 0
        for (step, count) in counts.sorted(by: { $0.key < $1.key }) {
            passed += count
            if passed > self.count / 2 { return RoundTrips.value(of: step) }
        }
        return most
    }

    private static func step(of microseconds: Int64) -> Int {
        guard microseconds > 16 else { return Int(max(microseconds, 0)) }
        let power = 63 - microseconds.leadingZeroBitCount
        return power * 16 + Int(microseconds >> Int64(power - 4)) - 16
    }

    private static func value(of step: Int) -> Int64 {
        guard step > 64 else { return Int64(step) }
        return Int64(step % 16 + 16) << Int64(step / 16 - 4)
    }
}
