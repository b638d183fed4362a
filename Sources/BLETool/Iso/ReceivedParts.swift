import BLE

/// The parts of a file that a connected stream has delivered, in order.
struct ReceivedParts {
    private(set) var count = 0
    private(set) var byteCount = 0
    /// The number of SDUs that the controller has reported as lost.
    private(set) var reportedLost = 0
    /// The lowest number of the next part.
    private var next: UInt32 = 0

    /// Takes an SDU, and writes its part.
    ///
    /// - Returns: the number of parts that were sent, if the SDU announces it.
    mutating func take(_ sdu: IsochronousSDU, _ output: ByteOutput) throws -> Int? {
        guard sdu.status == .valid else {
            reportedLost += 1
            return nil
        }
        guard let number = StreamTransfer.number(in: sdu.data, at: 0) else { return nil }
        if number == StreamTransfer.endMark { return StreamTransfer.number(in: sdu.data, at: 4).map { Int($0) } }
        guard number >= next else { return nil }
        next = number + 1
        count += 1
        byteCount += sdu.data.count - 4
        try output.write(Array(sdu.data.dropFirst(4)))
        return nil
    }
}
