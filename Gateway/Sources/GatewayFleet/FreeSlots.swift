/// The number of connections that a gateway can still make, as it publishes it.
enum FreeSlots {
    /// Reads the number from a message such as `{"free": 3, "limit": 20}`. Other members are ignored.
    ///
    /// - Throws: ``FleetMessageError`` for the first problem.
    static func decode(_ payload: String) throws(FleetMessageError) -> Int {
        guard payload.utf8.count <= FleetMessage.sizeLimit else { throw .tooLong(payload.utf8.count) }
        var scanner = JSONScanner(Array(payload.utf8))
        var free: Int?
        var isValid = true
        let count = scanner.object { scanner, key in
            guard let (kind, place) = scanner.value(depth: 1) else { return false }
            guard scanner.matches(key, "free") else { return true }
            let number = kind == .number ? Int(scanner.text(place)) : nil
            isValid = isValid && free == nil && number.map { $0 >= 0 } ?? false
            free = number
            return true
        }
        guard count != nil, scanner.isAtEnd() else { throw .malformed(at: scanner.position) }
        guard isValid else { throw .invalid("free") }
        guard let free else { throw .missing("free") }
        return free
    }
}
