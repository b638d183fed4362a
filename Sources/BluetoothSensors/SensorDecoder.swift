import BLEByteCoding
import BluetoothTypes

/// Decodes advertisements of sensors and beacons to readings with units.
///
/// ## Keys and replay protection
/// Some formats are encrypted with a key of the device; see ``setKey(_:for:)``. Only the key of the advertiser's own
/// address is used. Its counters must increase, except after a restart; see ``restartSilence``. Once an address has a
/// key, unencrypted reports of the formats that can be encrypted (BTHome, MiBeacon, ATC and pvvx) have the protection
/// `downgraded` and no readings.
///
/// ## Cost
/// An advertisement is read in one pass. One that no decoder wants is not copied. The decoder keeps state for
/// the addresses with a key, at most ``maximumKeyCount``, and for at most ``maximumDeviceCount`` other devices that
/// send events. The oldest of those are forgotten first. Unencrypted reports never displace the state of an address
/// with a key.
///
/// ## Threading
/// The decoder is a value without synchronization. It reads no clock: the caller gives the time.
public struct SensorDecoder: Sendable {
    /// Numbers of reports by what became of them.
    public struct Statistics: Hashable, Sendable {
        /// Reports with readings.
        public var decoded = 0
        /// Encrypted reports without a key.
        public var withoutKey = 0
        /// Encrypted reports that do not match the key.
        public var wrongKey = 0
        /// Authentic reports that were not newer than an earlier one.
        public var replayed = 0
        /// Unencrypted reports from addresses with a key.
        public var downgraded = 0
        /// Reports in an encryption that this module does not support.
        public var unsupported = 0
    }

    /// The maximum number of addresses with a key.
    public static let maximumKeyCount = 4096
    /// The maximum number of devices without a key whose last packet is remembered.
    public static let maximumDeviceCount = 1024

    /// Counts of reports.
    public private(set) var statistics = Statistics()
    /// How long an address must have sent no accepted report before its counter may restart.
    public let restartSilence: Duration

    private var devices: [UInt64: KeyedDevice] = [:]
    private var recentPackets = RecentPackets(limit: SensorDecoder.maximumDeviceCount)
    private var appDecoders: [AdvertisementField: [any AdvertisementDecoder]] = [:]

    /// Creates a decoder of all built-in formats.
    ///
    /// - Parameters:
    ///   - decoders: More decoders. They run after the built-in formats, whose fields they may use as well.
    ///   - restartSilence: How long an address must have sent no accepted report before its counter may restart, as
    ///     after a change of the battery. A shorter time makes replay easier.
    public init(decoders: [any AdvertisementDecoder] = [], restartSilence: Duration = .seconds(86_400)) {
        self.restartSilence = restartSilence
        for decoder in decoders {
            for field in decoder.fields { appDecoders[field, default: []].append(decoder) }
        }
    }

    /// Sets the key of an address. The kind of the address, public or random, is ignored.
    ///
    /// Setting the same key again keeps its counters. Another key starts with new counters.
    ///
    /// - Returns: false if ``maximumKeyCount`` other addresses have a key; the key is then not set.
    @discardableResult
    public mutating func setKey(_ key: BindKey, for address: DeviceAddress) -> Bool {
        if let device = devices[address.value] {
            if device.key != key { devices[address.value] = KeyedDevice(key: key) }
            return true
        }
        guard devices.count < Self.maximumKeyCount else { return false }
        devices[address.value] = KeyedDevice(key: key)
        return true
    }

    /// Removes the key of an address, and its counters. Afterwards its unencrypted reports are accepted.
    public mutating func removeKey(for address: DeviceAddress) {
        devices[address.value] = nil
    }

    /// Decodes an advertisement or a scan response.
    ///
    /// - Parameters:
    ///   - data: The AD structures. Structures after a malformed one are ignored.
    ///   - address: The advertiser's address.
    ///   - name: The device's name if it is known from another advertisement. A name in `data` takes precedence.
    ///   - now: The time, from any clock that only moves forward.
    /// - Returns: The reports, in the order of the data; none if no decoder wants it.
    public mutating func decode(
        _ data: RawSpan,
        from address: DeviceAddress,
        name: String? = nil,
        at now: Instant
    ) -> [SensorReport] {
        var reports: [SensorReport] = []
        var related = RelatedFields()
        var structures = ADStructureIterator(data)
        var offset = 0
        while let structure = try? structures.next() {
            let range = offset + 2..<offset + 2 + structure.data.byteCount
            offset = range.upperBound
            var reader = ByteReader(structure.data)
            let field: AdvertisementField
            switch structure.type {
            case .serviceData16:
                guard let uuid = try? reader.readUInt16() else { continue }
                field = .serviceData(BluetoothUUID(uuid))
                related.noteServiceData(uuid, range.lowerBound + 2..<range.upperBound)
                decodeServiceData(uuid, reader.readRemaining(), address, now, into: &reports)
            case .serviceData128:
                guard let bytes = try? reader.readBytes(count: 16), let uuid = try? BluetoothUUID(decoding: bytes)
                else { continue }
                field = .serviceData(uuid)
            case .manufacturerSpecificData:
                guard let company = try? reader.readUInt16() else { continue }
                field = .manufacturerData(CompanyIdentifier(rawValue: company))
                related.noteManufacturerData(company, range.lowerBound + 2..<range.upperBound)
                decodeManufacturerData(company, reader.readRemaining(), address, into: &reports)
            case .completeLocalName, .shortenedLocalName:
                related.name = range
                continue
            default:
                continue
            }
            guard !appDecoders.isEmpty, let decoders = appDecoders[field] else { continue }
            let content = structure.data.extracting(
                (structure.type == .serviceData128 ? 16 : 2)..<structure.data.byteCount
            )
            for decoder in decoders {
                if let report = decoder.decode(content, of: field, from: address) { append(report, to: &reports) }
            }
        }
        if related.isWanted { decodeRelated(related, data, name, into: &reports) }
        return reports
    }

    /// Decodes an advertisement or a scan response; see ``decode(_:from:name:at:)-(RawSpan,_,_,_)``.
    public mutating func decode(
        _ data: AdvertisingData,
        from address: DeviceAddress,
        name: String? = nil,
        at now: Instant
    ) -> [SensorReport] {
        let bytes = data.bytes
        return decode(bytes.rawSpan, from: address, name: name, at: now)
    }

    private mutating func append(_ report: SensorReport, to reports: inout [SensorReport]) {
        switch report.protection {
        case .none, .authenticated: statistics.decoded += 1
        case .needsKey: statistics.withoutKey += 1
        case .wrongKey: statistics.wrongKey += 1
        case .replayed: statistics.replayed += 1
        case .downgraded: statistics.downgraded += 1
        case .unsupported: statistics.unsupported += 1
        }
        reports.append(report)
    }

    private mutating func decodeServiceData(
        _ uuid: UInt16,
        _ data: RawSpan,
        _ address: DeviceAddress,
        _ now: Instant,
        into reports: inout [SensorReport]
    ) {
        let frame: KeyedFrame? =
            switch uuid {
            case BTHome.serviceUUID: BTHome.frame(data, from: address)
            case MiBeacon.serviceUUID: MiBeacon.frame(data, from: address)
            case ATCThermometer.serviceUUID: ATCThermometer.frame(data, from: address)
            default: nil
            }
        if let frame, let report = decodeKeyed(frame, address, now) { append(report, to: &reports) }
        if uuid == Eddystone.serviceUUID, let report = Eddystone.decode(data) { append(report, to: &reports) }
    }

    private mutating func decodeManufacturerData(
        _ company: UInt16,
        _ data: RawSpan,
        _ address: DeviceAddress,
        into reports: inout [SensorReport]
    ) {
        if company == Ruuvi.company, let report = Ruuvi.decode(data) { append(report, to: &reports) }
        if company == IBeacon.company, let report = IBeacon.decode(data) { append(report, to: &reports) }
        if let report = AltBeacon.decode(data, company: company) { append(report, to: &reports) }
    }

    private mutating func decodeRelated(
        _ related: RelatedFields,
        _ data: RawSpan,
        _ name: String?,
        into reports: inout [SensorReport]
    ) {
        let name = related.name.map { printableText(data.extracting($0)) } ?? name ?? ""
        if let (company, range) = related.govee {
            let content = data.extracting(range)
            if let report = Govee.decode(content, company: company, name: name) { append(report, to: &reports) }
        }
        if let range = related.switchBotService {
            let manufacturer = related.switchBotManufacturer.map { [UInt8](copying: data.extracting($0)) }
            if let report = SwitchBot.decode(data.extracting(range), manufacturer: manufacturer ?? []) {
                append(report, to: &reports)
            }
        }
    }

    // MARK: Formats with keys

    private mutating func decodeKeyed(_ frame: KeyedFrame, _ address: DeviceAddress, _ now: Instant) -> SensorReport? {
        var report = frame.report
        let content: [UInt8]
        switch frame.content {
        case .unsupported:
            report.protection = .unsupported
            return report
        case .plain(let bytes):
            if devices[address.value] != nil {
                report.protection = .downgraded
                return report
            }
            content = bytes
        case .sealed(let sealed, let width):
            guard let key = devices[address.value]?.key else {
                report.protection = .needsKey
                return report
            }
            guard let bytes = sealed.open(with: key) else {
                report.protection = .wrongKey
                return report
            }
            guard
                devices[address.value]?.accept(
                    report.counter ?? 0,
                    of: frame.kind,
                    width: width,
                    now: now,
                    silence: restartSilence
                ) == true
            else {
                report.protection = .replayed
                return report
            }
            report.protection = .authenticated
            content = bytes
        }
        let packetNumber = frame.decode(content, into: &report)
        // A recognized frame that says nothing is no report, unless it is the proof of a key.
        if report.readings.isEmpty, report.protection == .none, report.firmware == nil { return nil }
        if packetNumber != nil || report.readings.contains(where: \.isEvent) {
            dropRepeatedEvents(&report, packetNumber, content, frame.kind, address, now)
        }
        return report
    }

    private mutating func dropRepeatedEvents(
        _ report: inout SensorReport,
        _ number: UInt8?,
        _ content: [UInt8],
        _ kind: KeyedFrame.Kind,
        _ address: DeviceAddress,
        _ now: Instant
    ) {
        if report.protection == .authenticated {
            // Without a packet number, the counter has identified the packet.
            guard let number else { return }
            report.isRepeat = devices[address.value]?.isRepeat(number, of: kind, now: now) ?? false
        } else {
            let device = address.value | UInt64(kind.rawValue) << 48
            report.isRepeat = recentPackets.isRepeat(number: number, content: content.rawSpan, from: device, now: now)
        }
        if report.isRepeat { report.readings.removeAll(where: \.isEvent) }
    }
}
