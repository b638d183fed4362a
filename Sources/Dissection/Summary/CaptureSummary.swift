import BluetoothTypes
import ByteCoding
import Capture
import HCI

/// What a capture holds as a whole: devices, links, procedures, errors, and how long things took.
public struct CaptureSummary: Sendable {
    /// What is kept of each kind; devices and the like beyond that are only counted.
    private static let limit = 4096

    /// A device that has advertised or to which there was a link.
    public struct Device: Sendable {
        /// Its names, shortened ones too.
        public var names: [String] = []
        /// The services that it advertised.
        public var services: [BluetoothUUID] = []
        /// Advertising reports.
        public var reports = 0
        /// In dBm; nil where no report said it.
        public var weakest: Int8?
        /// In dBm.
        public var strongest: Int8?
    }

    /// A link, from its connection to its disconnection, or as much of it as was captured.
    public struct Link: Sendable {
        /// Which link it is.
        public let reference: LinkReference
        /// Microseconds since 1970.
        public let begin: Int64
        /// Nil where the capture ends before.
        public var end: Int64?
        /// Why it ended, where an event says so.
        public var reason: ErrorCode?
        /// ACL data from the captured host.
        public var sent = Traffic()
        /// ACL data to it.
        public var received = Traffic()
    }

    /// ACL data that went one way.
    public struct Traffic: Sendable {
        /// ACL packets.
        public var packets = 0
        /// What is in them, without their headers.
        public var octets = 0
        /// When the first went, in microseconds since 1970.
        public var first: Int64?
        /// When the last went.
        public var last: Int64 = 0

        /// In octets a second, over the time between the first and the last packet.
        public var throughput: Double? {
            guard let first, last > first else { return nil }
            return Double(octets) / (Double(last &- first) / 1e6)
        }

        mutating func note(_ octets: Int, at time: Int64) {
            packets += 1
            self.octets &+= octets
            first = first ?? time
            last = time
        }
    }

    /// How many packets of each kind there are.
    public private(set) var packets: [Layer.Kind: Int] = [:]
    /// How many of them are malformed.
    public private(set) var malformed = 0
    /// When the first packet was taken, in microseconds since 1970.
    public private(set) var firstTime: Int64?
    /// When the last was.
    public private(set) var lastTime: Int64 = 0
    /// Who advertised or was connected.
    public private(set) var devices: [PeerReference: Device] = [:]
    /// Reports of devices for which there was no room.
    public private(set) var uncountedReports = 0
    /// Links by their numbers.
    public private(set) var links: [Int: Link] = [:]
    /// Links for which there was no room.
    public private(set) var uncountedLinks = 0
    /// How often each GATT procedure was begun, by its requests.
    public private(set) var procedures: [String: Int] = [:]
    /// How often what went wrong in what.
    public private(set) var errors: [String: Int] = [:]
    /// Answers to commands by opcode.
    public private(set) var commandTimes: [UInt16: RoundTrips] = [:]
    /// Answers to ATT requests by the request.
    public private(set) var requestTimes: [String: RoundTrips] = [:]

    mutating func note(_ packet: PacketDescription) {
        packets[packet.kind, default: 0] += 1
        if !packet.malformed.isEmpty { malformed += 1 }
        firstTime = firstTime ?? packet.time
        lastTime = packet.time
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

    mutating func linkEnded(_ number: Int, reason: ErrorCode?, at time: Int64) {
        links[number]?.end = time
        links[number]?.reason = reason
    }

    mutating func noteData(_ number: Int, _ direction: CaptureDirection, octets: Int, at time: Int64) {
        if direction == .hostToController {
            links[number]?.sent.note(octets, at: time)
        } else {
            links[number]?.received.note(octets, at: time)
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
        // 127 says that the strength is not known.
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

/// How long answers took: the least, the most, and a median that is exact for few and close for many.
public struct RoundTrips: Sendable {
    /// How many there were.
    public private(set) var count = 0
    /// In microseconds.
    public private(set) var least = Int64.max
    /// In microseconds.
    public private(set) var most = Int64.min
    /// Counts by size: sixteen steps to each power of two, so that no value is off by more than a sixteenth.
    private var counts: [Int: Int] = [:]
    /// The first values themselves.
    private var values: [Int64] = []
    private static let exactCount = 1024

    mutating func note(_ microseconds: Int64) {
        count += 1
        least = min(least, microseconds)
        most = max(most, microseconds)
        if values.count < RoundTrips.exactCount { values.append(microseconds) }
        counts[RoundTrips.step(of: microseconds), default: 0] += 1
    }

    /// In microseconds; nil where there was none.
    public var median: Int64? {
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
