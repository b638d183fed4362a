import BLEByteCoding
import BLECapture
import BLEDissection
import Foundation
import Testing

import struct BLEVirtualController.SeededGenerator

/// The recorded captures of this project's own runs.
enum Fixtures {
    static let folder = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fixtures")

    static let names: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
        .filter { $0.hasSuffix(".btsnoop") }.sorted()

    static func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: folder.appendingPathComponent(name)))
    }
}

@Suite("Whole captures")
struct WholeCaptureTests {
    @Test("The description of a capture equals the stored one, field by field", arguments: Fixtures.names)
    func descriptionOfACaptureEqualsTheStoredOne(name: String) throws {
        let stored = Fixtures.folder.appendingPathComponent(name.replacingOccurrences(of: ".btsnoop", with: ".json"))
        let expected = try String(contentsOf: stored, encoding: .utf8).split(separator: "\n")
        let found = descriptions(inFile: try Fixtures.bytes(name)).map { packet in
            var text = TextBuffer()
            packet.appendJSON(to: &text)
            return String(decoding: text.bytes, as: UTF8.self)
        }
        #expect(found.count == expected.count)
        for (line, stored) in zip(found, expected) where line != stored {
            Issue.record("\(line)\ninstead of\n\(stored)")
            break
        }
    }

    @Test("Every line of JSON is valid, and no object has a member twice", arguments: Fixtures.names)
    func everyLineOfJSONIsValid(name: String) throws {
        for packet in descriptions(inFile: try Fixtures.bytes(name)) {
            var text = TextBuffer()
            packet.appendJSON(to: &text)
            let object = try JSONSerialization.jsonObject(with: Data(text.bytes)) as? [String: Any]
            #expect(object?["index"] as? Int == packet.index)
            #expect(repeatedMembers(ofJSON: text.bytes).isEmpty, "packet \(packet.index)")
        }
    }

    @Test("Packets with any bytes are described without a trap", arguments: Fixtures.names)
    func packetsWithAnyBytesAreDescribedWithoutATrap(name: String) throws {
        let original = try Fixtures.bytes(name)
        var generator = SeededGenerator(seed: UInt64(original.count))
        for _ in 0..<20 {
            var bytes = original
            for _ in 0..<200 {
                // After the file's header. Most changes hit bytes of packets and not of record headers.
                let place = 16 + Int(generator.next() % UInt64(bytes.count - 16))
                if place % 7 != 0 { bytes[place] = UInt8(truncatingIfNeeded: generator.next()) }
            }
            render(bytes)
        }
    }

    @Test("Random packets are described without a trap")
    func randomPacketsAreDescribedWithoutATrap() {
        var generator = SeededGenerator(seed: 6)
        var samples: [Sample] = []
        for _ in 0..<20_000 {
            let kinds: [CapturedPacketKind] = [.command, .event, .acl, .acl, .synchronous, .iso]
            let kind = kinds[Int(generator.next() % 6)]
            var bytes = (0..<Int(generator.next() % 40)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            shape(&bytes, as: kind, &generator)
            samples.append(
                Sample(kind, generator.next() % 2 == 0 ? .hostToController : .controllerToHost, bytes.hexadecimal, "")
            )
        }
        let packets = descriptions(of: samples)
        #expect(packets.count == samples.count)
        #expect(packets.contains { !$0.malformed.isEmpty })
        for packet in packets {
            var text = TextBuffer()
            packet.appendLine(to: &text)
            packet.appendTree(to: &text)
            packet.appendJSON(to: &text)
            #expect(text.count > 40)
        }
    }

    /// Sets lengths and codes in the bytes so that decoding reaches the inner layers.
    private func shape(_ bytes: inout [UInt8], as kind: CapturedPacketKind, _ generator: inout SeededGenerator) {
        switch kind {
        case .event where bytes.count > 3:
            bytes[0] = [0x3E, 0x0E, 0x05, 0x13][Int(generator.next() % 4)]
            bytes[1] = UInt8(bytes.count - 2)
            bytes[2] = UInt8(generator.next() % 0x36)
        case .command where bytes.count > 2:
            bytes[1] = 0x20
            bytes[2] = UInt8(bytes.count - 3)
        case .acl where bytes.count > 9:
            bytes[0] = UInt8(generator.next() % 3)
            bytes[1] = generator.next() % 4 == 0 ? 0x10 : 0x20
            bytes[2] = UInt8(bytes.count - 4)
            bytes[3] = 0
            bytes[4] = UInt8(bytes.count - 8)
            bytes[5] = 0
            bytes[6] = [4, 4, 5, 6, 1, 0x40][Int(generator.next() % 6)]
            bytes[7] = 0
            bytes[8] = UInt8(generator.next() % 0x24)
        default: break
        }
    }

    private func render(_ file: [UInt8]) {
        for packet in descriptions(inFile: file) {
            var text = TextBuffer()
            packet.appendLine(to: &text)
            packet.appendTree(to: &text)
            packet.appendJSON(to: &text)
        }
    }
}

/// The names that an object of a valid JSON text has more than once.
func repeatedMembers(ofJSON text: [UInt8]) -> [String] {
    var repeated: [String] = []
    // The names of the objects that are open at the position, from the outermost.
    var names: [Set<String>] = []
    var position = 0
    while position < text.count {
        switch text[position] {
        case UInt8(ascii: "{"): names.append([])
        case UInt8(ascii: "}"): names.removeLast()
        case UInt8(ascii: "\""):
            let start = position + 1
            position = start
            while text[position] != UInt8(ascii: "\"") { position += text[position] == UInt8(ascii: "\\") ? 2 : 1 }
            // A string before a colon is a name.
            guard position + 1 < text.count, text[position + 1] == UInt8(ascii: ":") else { break }
            let name = String(decoding: text[start..<position], as: UTF8.self)
            if !names[names.count - 1].insert(name).inserted { repeated.append(name) }
        default: break
        }
        position += 1
    }
    return repeated
}
