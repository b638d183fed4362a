extension TextBuffer {
    /// Appends a time in UTC in the format of ISO 8601: `2024-03-01T12:00:00.123456Z`.
    mutating func append(time microseconds: Int64) {
        let day = microseconds.flooredQuotient(86_400_000_000)
        append(date: day)
        append(ascii: "T")
        append(clock: microseconds)
        append(ascii: "Z")
    }

    /// Appends the time of day: `12:00:00.123456`.
    mutating func append(clock microseconds: Int64) {
        let rest = microseconds % 86_400_000_000
        let time = rest < 0 ? rest + 86_400_000_000 : rest
        append(pair: time / 3_600_000_000)
        append(ascii: ":")
        append(pair: time / 60_000_000 % 60)
        append(ascii: ":")
        append(pair: time / 1_000_000 % 60)
        append(ascii: ".")
        let fraction = time % 1_000_000
        append(pair: fraction / 10_000)
        append(pair: fraction / 100 % 100)
        append(pair: fraction % 100)
    }

    /// Appends the date of a day, counted from 1970-01-01.
    private mutating func append(date day: Int64) {
        // Years are counted from March, so the leap day is the last day. Eras have 400 years.
        let shifted = day + 719_468
        let era = shifted.flooredQuotient(146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let year = yearOfEra + era * 400 + (month < 10 ? 0 : 1)
        append(decimal: year, width: 4, padding: "0")
        append(ascii: "-")
        append(pair: month < 10 ? month + 3 : month - 9)
        append(ascii: "-")
        append(pair: dayOfYear - (153 * month + 2) / 5 + 1)
    }

    /// Appends a duration in milliseconds, or in seconds from one second.
    mutating func append(duration microseconds: Int64) {
        if microseconds.magnitude < 1_000_000 {
            append(thousandths: microseconds)
            append(" ms" as StaticString)
        } else {
            append(thousandths: microseconds / 1000)
            append(" s" as StaticString)
        }
    }
}

extension Int64 {
    fileprivate func flooredQuotient(_ divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
