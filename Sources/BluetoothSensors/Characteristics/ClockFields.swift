import BLEByteCoding

/// Dates and times of the GATT Specification Supplement ("Date Time", "Date of Birth"), as ISO 8601 writes them.
///
/// | field | bytes | range |
/// |---|---|---|
/// | year | 2 | 1582 to 9999, 0: unknown |
/// | month, day | 1 each | 1 to 12 and 1 to 31, 0: unknown |
/// | hours, minutes, seconds | 1 each | 0 to 23, 59 and 59 |
enum ClockFields {
    /// Returns the date as `YYYY-MM-DD`, with `?` for digits that the device does not know. Returns nil if it is out of
    /// range.
    static func date(_ reader: inout ByteReader) throws(PacketDecodingError) -> String? {
        let year = Int(try reader.readUInt16())
        let month = Int(try reader.readUInt8())
        let day = Int(try reader.readUInt8())
        guard year == 0 || (1582...9999).contains(year), month <= 12, day <= 31 else { return nil }
        return [digits(year, 4), digits(month, 2), digits(day, 2)].joined(separator: "-")
    }

    /// Returns the date and the time as `YYYY-MM-DD hh:mm:ss`. Returns nil if it is out of range.
    static func dateAndTime(_ reader: inout ByteReader) throws(PacketDecodingError) -> String? {
        let date = try date(&reader)
        let hours = Int(try reader.readUInt8())
        let minutes = Int(try reader.readUInt8())
        let seconds = Int(try reader.readUInt8())
        guard let date, hours < 24, minutes < 60, seconds < 60 else { return nil }
        let time = [hours, minutes, seconds].map { padded($0, 2) }.joined(separator: ":")
        return "\(date) \(time)"
    }

    private static func digits(_ number: Int, _ count: Int) -> String {
        number == 0 ? String(repeating: "?", count: count) : padded(number, count)
    }

    static func padded(_ number: Int, _ count: Int) -> String {
        let digits = "\(number)"
        return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
    }

    /// The distance to UTC in quarters of an hour as `UTC+01:00`.
    static func offset(quarters: Int) -> String {
        let minutes = abs(quarters) * 15
        return "UTC\(quarters < 0 ? "-" : "+")\(padded(minutes / 60, 2)):\(padded(minutes % 60, 2))"
    }
}
