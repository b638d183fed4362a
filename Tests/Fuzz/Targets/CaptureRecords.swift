/// A capture split into its records, so that whole records can be changed while the file stays readable.
struct CaptureRecords {
    /// The layout by which a format gives the length of its records.
    fileprivate enum Layout {
        case btsnoop
        case pcap(isLittleEndian: Bool)
        case pcapng(isLittleEndian: Bool)
        case packetLogger
    }

    private let layout: Layout
    private let header: [UInt8]
    var records: [[UInt8]] = []

    init(_ octets: [UInt8]) {
        switch Array(octets.prefix(4)) {
        case Array("btsn".utf8): layout = .btsnoop
        case [0xD4, 0xC3, 0xB2, 0xA1], [0x4D, 0x3C, 0xB2, 0xA1]: layout = .pcap(isLittleEndian: true)
        case [0xA1, 0xB2, 0xC3, 0xD4], [0xA1, 0xB2, 0x3C, 0x4D]: layout = .pcap(isLittleEndian: false)
        case [0x0A, 0x0D, 0x0D, 0x0A]:
            layout = .pcapng(isLittleEndian: octets.dropFirst(8).first == 0x4D)
        default: layout = .packetLogger
        }
        header = Array(octets.prefix(layout.headerLength))
        var rest = octets.dropFirst(header.count)
        while !rest.isEmpty {
            let record = rest.prefix(layout.recordLength(Array(rest.prefix(24))))
            records.append(Array(record))
            rest = rest.dropFirst(record.count)
        }
    }

    /// Writes the actual lengths into the records.
    mutating func correctLengths() {
        for index in records.indices { layout.correctLength(&records[index]) }
    }

    var octets: [UInt8] { header + records.joined() }
}

extension CaptureRecords.Layout {
    fileprivate var headerLength: Int {
        switch self {
        case .btsnoop: 16
        case .pcap: 24
        case .pcapng, .packetLogger: 0
        }
    }

    private var isLittleEndian: Bool {
        switch self {
        case .pcap(let isLittleEndian), .pcapng(let isLittleEndian): isLittleEndian
        case .btsnoop, .packetLogger: false
        }
    }

    /// The length of the record: at least one byte, or everything if the record does not contain it.
    fileprivate func recordLength(_ start: [UInt8]) -> Int {
        switch self {
        case .btsnoop: read(start, at: 4).map { 24 + $0 } ?? .max
        case .pcap: read(start, at: 8).map { 16 + $0 } ?? .max
        case .pcapng: read(start, at: 4).map { max($0, 12) } ?? .max
        case .packetLogger: read(start, at: 0).map { 4 + $0 } ?? .max
        }
    }

    fileprivate func correctLength(_ record: inout [UInt8]) {
        switch self {
        case .btsnoop: write(record.count - 24, to: &record, at: 4)
        case .pcap: write(record.count - 16, to: &record, at: 8)
        case .packetLogger: write(record.count - 4, to: &record, at: 0)
        case .pcapng:
            while record.count < 12 || record.count % 4 != 0 { record.append(0) }
            write(record.count, to: &record, at: 4)
            write(record.count, to: &record, at: record.count - 4)
            // An enhanced packet block also contains the length of its packet.
            let room = record.count - 32
            if read(record, at: 0) == 6, let length = read(record, at: 20), length > room || length + 3 < room {
                write(room, to: &record, at: 20)
            }
        }
    }

    private func read(_ octets: [UInt8], at offset: Int) -> Int? {
        guard octets.count >= offset + 4 else { return nil }
        let field = octets[offset..<(offset + 4)]
        let ordered = isLittleEndian ? Array(field.reversed()) : Array(field)
        return ordered.reduce(0) { $0 << 8 | Int($1) }
    }

    private func write(_ number: Int, to octets: inout [UInt8], at offset: Int) {
        guard number >= 0, octets.count >= offset + 4 else { return }
        for place in 0..<4 {
            let shift = 8 * (isLittleEndian ? place : 3 - place)
            octets[offset + place] = UInt8(truncatingIfNeeded: number >> shift)
        }
    }
}
