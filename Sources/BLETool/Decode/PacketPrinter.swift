import BLECapture
import BLEDissection

/// Prints the packets of a capture as they are read, many lines at a time.
struct PacketPrinter {
    /// The number of bytes written at once.
    private static let blockLength = 1 << 16

    /// The error after which nothing more can be printed.
    private(set) var failure: OutputError?
    private let filters: [PacketFilter]
    private let isVerbose: Bool
    private let isJSON: Bool
    private let isColored: Bool
    private let printsPackets: Bool
    private let dissector: Dissector
    private let output: ([UInt8]) throws(OutputError) -> Void
    private var text = TextBuffer(capacity: PacketPrinter.blockLength * 2)

    /// - Parameters:
    ///   - printsPackets: whether each packet is printed as it is read.
    ///   - summarizes: whether a summary is printed at the end.
    ///   - output: writes text.
    init(
        _ options: PacketOptions,
        printsPackets: Bool,
        summarizes: Bool,
        output: @escaping ([UInt8]) throws(OutputError) -> Void = { bytes throws(OutputError) in
            try Output.standard.write(bytes)
        }
    ) {
        filters = options.filter
        isVerbose = options.verbose
        isJSON = options.json
        isColored = options.isColored
        self.printsPackets = printsPackets
        self.output = output
        dissector = Dissector(summarizing: summarizes)
    }

    /// Prints a record if the options select it.
    mutating func take(_ record: borrowing CaptureRecord) {
        let isDescribed = printsPackets && filters.allSatisfy { $0.mayAccept(record.kind) }
        let packet = dissector.dissect(record, isDescribed: isDescribed)
        guard isDescribed, filters.allSatisfy({ $0.accepts(packet) }) else { return }
        if isJSON {
            packet.appendJSON(to: &text)
            text.append(ascii: "\n")
        } else {
            packet.appendLine(to: &text, isColored: isColored)
            text.append(ascii: "\n")
            if isVerbose { packet.appendTree(to: &text) }
        }
        if text.count >= PacketPrinter.blockLength { flush() }
    }

    /// Writes the text printed so far.
    mutating func flush() {
        guard text.count > 0, failure == nil else { return }
        do throws(OutputError) {
            try output(text.bytes)
        } catch {
            failure = error
        }
        text.removeAll()
    }

    /// Writes the remaining text, and the summary if it was requested.
    ///
    /// - Parameter isEmpty: whether there was nothing to summarize.
    mutating func finish(isEmpty: Bool = false) throws(OutputError) {
        if !isEmpty, let summary = dissector.summary {
            if isJSON {
                summary.appendJSON(to: &text)
                text.append(ascii: "\n")
            } else {
                summary.appendText(to: &text)
            }
        }
        flush()
        if let failure { throw failure }
    }
}

extension CaptureRecord {
    /// The kind of the record's packet; nil for a note or a malformed record.
    fileprivate var kind: CapturedPacketKind? {
        switch content {
        case .packet(let kind, _, _): kind
        case .note, .malformed: nil
        }
    }
}
