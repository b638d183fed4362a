extension TextBuffer {
    /// A time in UTC as ISO 8601 has it: `2024-03-01T12:00:00.123456Z`.
    mutating func append(time microseconds: Int64) {
        let day = microseconds.flooredQuotient(86_400_000_000)
        append(date: day)
        append(ascii: "T")
        append(clock: microseconds)
        append(ascii: "Z")
    }

    /// The time of day: `12:00:00.123456`.
    mutating func append(clock microseconds: Int64) {
        let time = microseconds - microseconds.flooredQuotient(86_400_000_000) * 86_400_000_000
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

    /// The date of a day, counted from the first of 1970.
    private mutating func append(date day: Int64) {
        // Years are counted from March, so that the leap day is the last; eras have 400 years.
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

    /// How long something took, in a unit that suits it.
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
