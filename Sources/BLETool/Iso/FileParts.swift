/// The parts of a file, each as the SDU that sends it.
///
/// Each SDU begins with the number of its part, as in ``StreamTransfer``.
struct FileParts {
    private let input: ByteInput
    /// The length of a part without its number.
    private let length: Int
    private var rest: [UInt8] = []
    private var isAtEnd = false
    /// The number of parts that ``next()`` has returned.
    private(set) var count = 0
    /// The number of the file's bytes in these parts.
    private(set) var byteCount = 0

    /// - Parameter partLength: the length of each SDU; that of the last one may be less.
    init(_ input: ByteInput, partLength: Int) {
        self.input = input
        length = partLength - 4
    }

    /// Reads the next part; nil after the last one.
    ///
    /// - Throws: ``FileError``, or `CancellationError`.
    mutating func next() async throws -> [UInt8]? {
        while !isAtEnd, rest.count < length {
            let bytes = try await input.next()
            try Task.checkCancellation()
            rest += bytes
            isAtEnd = bytes.isEmpty
        }
        guard !rest.isEmpty else { return nil }
        let part = Array(rest.prefix(length))
        let sdu = StreamTransfer.bytes(UInt32(count)) + part
        rest.removeFirst(part.count)
        count += 1
        byteCount += part.count
        return sdu
    }
}
