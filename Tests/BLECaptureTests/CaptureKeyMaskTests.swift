import BLEByteCoding
import BLECapture
import Testing

import struct BLEVirtualController.SeededGenerator

@Suite("Keys in captures")
struct CaptureKeyMaskTests {
    private static let key = (1...16).map { UInt8($0) }
    private static let zeros = [UInt8](repeating: 0, count: 16)

    private func masked(_ kind: CapturedPacketKind, _ bytes: [UInt8]) -> [UInt8]? {
        var mask = CaptureKeyMask()
        return mask.mask(kind, nil, bytes.rawSpan)
    }

    @Test(
        "Keys in commands and events are replaced, and no other bytes",
        arguments: [
            (.command, [0x19, 0x20, 28] + (0..<12).map { 0xA0 + $0 }, []),
            (.command, [0x1A, 0x20, 18, 0x40, 0x00], []),
            (.command, [0x27, 0x20, 39, 1, 2, 3, 4, 5, 6, 7] + zeros, []),
            (.command, [0x0B, 0x04, 22, 1, 2, 3, 4, 5, 6], []),
            (.command, [0x69, 0x20, 36, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 1], []),
            (.event, [0x18, 23, 1, 2, 3, 4, 5, 6], [4]),
            (.event, [0x3E, 34, 0x09, 0x00] + zeros, []),
            (.event, [0x0E, 20, 1, 0x17, 0x20, 0x00], []),
        ] as [(CapturedPacketKind, [UInt8], [UInt8])]
    )
    func keysInCommandsAndEventsAreReplacedAndNoOtherBytes(kind: CapturedPacketKind, head: [UInt8], tail: [UInt8]) {
        #expect(masked(kind, head + Self.key + tail) == head + Self.zeros + tail)
        // A truncated key is masked as far as it is present.
        #expect(masked(kind, head + [7]) == head + [0])
        #expect(masked(kind, head) == nil || masked(kind, head) == head)
    }

    @Test("Keys of resolvable tags in decision instructions are replaced, and no other parameters")
    func keysOfResolvableTagsAreReplacedAndNoOtherParameters() {
        // Three tests: of the RSSI, of the resolvable tag and of the advertiser's address.
        let signalStrength: [UInt8] = [0x81, 0x20, 55, 3, 0x03, 0x07] + Self.key
        let head = signalStrength + [0x02, 0x00]
        let address: [UInt8] = [0x03, 0x09] + Self.key
        #expect(masked(.command, head + Self.key + address) == head + Self.zeros + address)
        // A truncated key is masked as far as it is present.
        #expect(masked(.command, head + [7]) == head + [0])
        for count in 0...head.count { #expect(masked(.command, Array(head.prefix(count))) == nil) }
    }

    @Test("Packets without keys are unchanged")
    func packetsWithoutKeysAreUnchanged() {
        #expect(masked(.command, [0x03, 0x0C, 0]) == nil)
        #expect(masked(.command, [0x19]) == nil)
        #expect(masked(.event, [0x0E, 4, 1, 0x03, 0x0C, 0]) == nil)
        #expect(masked(.event, [0x3E, 2, 0x05, 9]) == nil)
        #expect(masked(.acl, [0x40, 0x20, 7, 0, 3, 0, 4, 0, 0x0A, 3, 0]) == nil)
        #expect(masked(.acl, [0x40, 0x20]) == nil)
        #expect(masked(.iso, [0x40, 0x20, 2, 0, 0x06, 0x06]) == nil)
        // A Pairing Request holds no key.
        #expect(masked(.acl, [0x40, 0x20, 11, 0, 7, 0, 6, 0, 1, 3, 0, 1, 16, 1, 1]) == nil)
    }

    @Test("Keys of pairings are replaced, in any fragments", arguments: [0x03, 0x04, 0x06, 0x08, 0x0A])
    func keyDistributionIsMaskedInAnyFragments(code: UInt8) {
        let pdu: [UInt8] = [17, 0, 6, 0, code] + Self.key
        let expected: [UInt8] = [17, 0, 6, 0, code] + Self.zeros
        for size in 1...pdu.count {
            var mask = CaptureKeyMask()
            var passed: [UInt8] = []
            for start in stride(from: 0, to: pdu.count, by: size) {
                let part = pdu[start..<min(start + size, pdu.count)]
                let header: [UInt8] = [0x40, start == 0 ? 0x20 : 0x10, UInt8(part.count), 0]
                let fragment = header + part
                let packet = mask.mask(.acl, .controllerToHost, fragment.rawSpan) ?? fragment
                #expect(packet.prefix(4) == header[...])
                passed += packet.dropFirst(4)
                // Fragments of the other side and of other links are in between.
                let other: [UInt8] = [0x41, 0x20, 7, 0, 30, 0, 4, 0, 0x0A, 3, 0]
                #expect(mask.mask(.acl, .controllerToHost, other.rawSpan) == nil)
                let reverse: [UInt8] = [0x40, 0x00, 5, 0, 9, 0, 4, 0, 0x06]
                #expect(mask.mask(.acl, .hostToController, reverse.rawSpan) == nil)
            }
            #expect(passed == expected, "in fragments of \(size) bytes")
            let next: [UInt8] = [0x40, 0x20, 7, 0, 3, 0, 4, 0, 0x0A, 3, 0]
            #expect(mask.mask(.acl, .controllerToHost, next.rawSpan) == nil)
        }
    }

    @Test("Notes of programs are blanked, and those of the kernel are unchanged")
    func notesOfProgramsAreBlankedAndThoseOfTheKernelUnchanged() {
        let mask = CaptureKeyMask()
        let bytes: [UInt8] = [1, 2, 3]
        #expect(mask.mask(.monitor(.controlCommand), bytes.rawSpan) == [0, 0, 0])
        #expect(mask.mask(.monitor(.controlEvent), bytes.rawSpan) == [0, 0, 0])
        #expect(mask.mask(.monitor(.newIndex), bytes.rawSpan) == nil)
    }

    @Test("Random packets never trap, and keep their length")
    func randomPacketsNeverTrapAndKeepTheirLength() {
        var random = SeededGenerator(seed: 0x5EED_0002)
        var mask = CaptureKeyMask()
        for _ in 0..<5000 {
            let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                Bool.random(using: &random)
                    ? UInt8.random(in: 0...12, using: &random) : UInt8.random(in: 0...255, using: &random)
            }
            let kind = [CapturedPacketKind.command, .acl, .event, .synchronous].randomElement(using: &random) ?? .acl
            let masked = mask.mask(kind, Bool.random(using: &random) ? .hostToController : nil, bytes.rawSpan)
            #expect(masked == nil || masked?.count == bytes.count)
        }
    }
}
