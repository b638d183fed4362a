import Capture
import Dissection

/// Prints the packets of a capture as they are read, many lines at a time.
struct PacketPrinter {
    /// How much is written at once.
    private static let blockLength = 1 << 16

    /// Why nothing more can be printed.
    private(set) var failure: OutputError?
    private let filters: [PacketFilter]
    private let isVerbose: Bool
    private let isJSON: Bool
    private let isColored: Bool
    /// Whether packets are printed; otherwise only the summary is.
    private let printsPackets: Bool
    private let dissector: Dissector
    private var text = TextBuffer(capacity: PacketPrinter.blockLength * 2)

    init(_ command: Decode) {
        filters = command.filter
        isVerbose = command.verbose
        isJSON = command.json
        printsPackets = !command.summary
        isColored =
            switch command.color {
            case .auto: Terminal.isPresent && environment("NO_COLOR") == nil
            case .always: true
            case .never: false
            }
        dissector = Dissector(summarizing: command.summary)
    }

    /// Prints a record where it is wanted.
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

    /// Writes what has been printed so far.
    mutating func flush() {
        guard text.count > 0, failure == nil else { return }
        do throws(OutputError) {
            try Output.standard.write(text.bytes)
        } catch {
            failure = error
        }
        text.removeAll()
    }

    /// Writes the rest, and the summary where it is wanted.
    mutating func finish(hasSummary: Bool) throws(OutputError) {
        if hasSummary, let summary = dissector.summary {
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
    /// What the record's packet is; nil for a note.
    fileprivate var kind: CapturedPacketKind? {
        switch content {
        case .packet(let kind, _, _): kind
        case .note, .malformed: nil
        }
    }
}
