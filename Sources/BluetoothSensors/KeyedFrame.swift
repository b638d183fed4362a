import BluetoothTypes

/// An advertisement of a format that may be encrypted, before decryption.
struct KeyedFrame {
    /// The formats.
    enum Kind: UInt8 {
        case bthome, mibeacon, atc
    }

    enum Content {
        case plain([UInt8])
        case sealed(SealedContent, ReplayFilter.Width)
        /// Encrypted in a way that is not supported.
        case unsupported
    }

    var kind: Kind
    /// The format, model, firmware and counter.
    var report: SensorReport
    var content: Content

    /// Decodes the decrypted content into readings. Returns the packet number, if there is one.
    func decode(_ content: [UInt8], into report: inout SensorReport) -> UInt8? {
        switch kind {
        case .bthome:
            return BTHome.decode(content.rawSpan, into: &report)
        case .mibeacon:
            MiBeacon.decode(content.rawSpan, into: &report)
            // The counter of an encrypted frame has been checked.
            return report.protection == .none ? report.counter.map { UInt8(truncatingIfNeeded: $0) } : nil
        case .atc:
            ATCThermometer.decode(content.rawSpan, into: &report)
            return nil
        }
    }
}

/// The key of an address, and the state of its counters.
struct KeyedDevice: Sendable {
    let key: BindKey
    private var filters: [KeyedFrame.Kind: ReplayFilter] = [:]
    private var packets = RecentPackets(limit: 4)

    init(key: BindKey) {
        self.key = key
    }

    mutating func accept(
        _ counter: UInt32,
        of kind: KeyedFrame.Kind,
        width: ReplayFilter.Width,
        now: Instant,
        silence: Duration
    ) -> Bool {
        filters[kind, default: ReplayFilter(now: now)].accept(counter, width: width, now: now, silence: silence)
    }

    /// Returns whether an authentic report repeats the last packet number, and remembers the number otherwise.
    mutating func isRepeat(_ number: UInt8, of kind: KeyedFrame.Kind, now: Instant) -> Bool {
        packets.isRepeat(number: number, content: [UInt8]().rawSpan, from: UInt64(kind.rawValue), now: now)
    }
}
