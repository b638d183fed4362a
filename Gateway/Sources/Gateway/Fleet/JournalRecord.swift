/// A record of a ``FleetJournal``: its length and its checksum, of 32 bits each, then its content. Numbers are
/// little-endian.
enum JournalRecord: Equatable {
    /// A message from the broker, with the system's time of its arrival in milliseconds since 1970.
    case message(token: UInt64, arrival: Int64, topic: String, payload: [UInt8])
    /// Nothing is to be done for these messages any more.
    case finished([UInt64])

    /// The greatest size of a record's content. A message has at most 64 KiB of topic, and its payload is limited.
    static let sizeLimit = 1 << 20
    private static let headerSize = 8

    /// Writes the record after the bytes.
    func encode(into bytes: inout [UInt8]) {
        let start = bytes.count
        bytes.append(contentsOf: [UInt8](repeating: 0, count: Self.headerSize))
        switch self {
        case .message(let token, let arrival, let topic, let payload):
            bytes.append(1)
            Self.append(token, to: &bytes)
            Self.append(arrival, to: &bytes)
            Self.append(UInt16(truncatingIfNeeded: topic.utf8.count), to: &bytes)
            bytes.append(contentsOf: topic.utf8)
            bytes.append(contentsOf: payload)
        case .finished(let tokens):
            bytes.append(2)
            for token in tokens { Self.append(token, to: &bytes) }
        }
        let checksum = Self.checksum(bytes[(start + Self.headerSize)...])
        let size = UInt32(bytes.count - start - Self.headerSize)
        for index in 0..<4 {
            bytes[start + index] = UInt8(truncatingIfNeeded: size >> (8 * UInt32(index)))
            bytes[start + 4 + index] = UInt8(truncatingIfNeeded: checksum >> (8 * UInt32(index)))
        }
    }

    /// Reads the record at the begin of the bytes, and removes it.
    ///
    /// - Returns: nil, and removes nothing, if the record is incomplete or damaged.
    static func decode(from bytes: inout ArraySlice<UInt8>) -> JournalRecord? {
        var rest = bytes
        guard let size = number(UInt32.self, from: &rest), let checksum = number(UInt32.self, from: &rest),
            size <= sizeLimit, size <= rest.count
        else { return nil }
        var content = rest.prefix(Int(size))
        guard self.checksum(content) == checksum, let record = decode(content: &content) else { return nil }
        bytes = rest.dropFirst(Int(size))
        return record
    }

    /// Removes the bytes before the next record that can be read, if the first record is damaged.
    ///
    /// The length of a damaged record is used if a record that can be read follows, or the end. Otherwise the length
    /// itself may be damaged. The next record is then found by its tokens, because messages have consecutive tokens.
    ///
    /// - Parameters:
    ///   - bytes: records, of which the first one cannot be read.
    ///   - tokens: the tokens that messages after the damage can have.
    /// - Returns: false, and removes nothing, if the first record reaches beyond the end and no record follows.
    static func skipDamage(in bytes: inout ArraySlice<UInt8>, tokens: Range<UInt64>) -> Bool {
        var rest = bytes
        while removeFirst(from: &rest) {
            guard !rest.isEmpty, !isReadable(rest) else {
                bytes = rest
                return true
            }
        }
        if let record = firstRecord(in: bytes.dropFirst(), tokens: tokens) {
            bytes = record
            return true
        }
        // The last record is incomplete. Those before it are complete, and stay.
        guard rest.count < bytes.count else { return false }
        bytes = rest
        return true
    }

    /// Removes the first record by its length, whatever its content is.
    ///
    /// - Returns: false, and removes nothing, if the record reaches beyond the end.
    private static func removeFirst(from bytes: inout ArraySlice<UInt8>) -> Bool {
        var rest = bytes
        guard let size = number(UInt32.self, from: &rest), number(UInt32.self, from: &rest) != nil,
            size <= sizeLimit, size <= rest.count
        else { return false }
        bytes = rest.dropFirst(Int(size))
        return true
    }

    private static func isReadable(_ bytes: ArraySlice<UInt8>) -> Bool {
        var bytes = bytes
        return decode(from: &bytes) != nil
    }

    /// Returns the bytes from the first record on whose first token is possible; nil if there is none.
    private static func firstRecord(in bytes: ArraySlice<UInt8>, tokens: Range<UInt64>) -> ArraySlice<UInt8>? {
        for start in bytes.indices.dropLast(headerSize) {
            var content = bytes[(start + headerSize)...]
            let kind = content.popFirst()
            guard kind == 1 || kind == 2, let token = number(UInt64.self, from: &content) else { continue }
            // Messages that are finished may be of an earlier file.
            let isPossible = kind == 1 ? tokens.contains(token) : token > 0 && token < tokens.upperBound
            if isPossible, isReadable(bytes[start...]) { return bytes[start...] }
        }
        return nil
    }

    private static func decode(content: inout ArraySlice<UInt8>) -> JournalRecord? {
        switch content.popFirst() {
        case 1:
            guard let token = number(UInt64.self, from: &content), let arrival = number(Int64.self, from: &content),
                let count = number(UInt16.self, from: &content), count <= content.count
            else { return nil }
            let topic = String(decoding: content.prefix(Int(count)), as: UTF8.self)
            return .message(
                token: token,
                arrival: arrival,
                topic: topic,
                payload: Array(content.dropFirst(Int(count)))
            )
        case 2:
            var tokens: [UInt64] = []
            while let token = number(UInt64.self, from: &content) { tokens.append(token) }
            return content.isEmpty ? .finished(tokens) : nil
        default: return nil
        }
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private static func number<Number: FixedWidthInteger>(
        _ type: Number.Type,
        from bytes: inout ArraySlice<UInt8>
    ) -> Number? {
        let size = MemoryLayout<Number>.size
        guard bytes.count >= size else { return nil }
        var number: Number = 0
        for byte in bytes.prefix(size).reversed() { number = number << 8 | Number(truncatingIfNeeded: byte) }
        bytes = bytes.dropFirst(size)
        return number
    }

    /// The checksum FNV-1a of 32 bits: it notices records that were not written completely.
    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var hash: UInt32 = 0x811C_9DC5
        for byte in bytes { hash = (hash ^ UInt32(byte)) &* 0x0100_0193 }
        return hash
    }
}
