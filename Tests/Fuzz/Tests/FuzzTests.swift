import BLEByteCoding
import BLECapture
import Foundation
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import FuzzTargets

/// The inputs that once revealed a fault: a file for each input, in a folder for each target.
private enum Found {
    static let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    static let folder = root.appendingPathComponent("Fixtures/fuzz")

    static func inputs(of target: FuzzTarget) throws -> [[UInt8]] {
        let folder = folder.appendingPathComponent(target.rawValue)
        guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .sorted { $0.path < $1.path }.map { [UInt8](try Data(contentsOf: $0)) }
    }
}

@Suite("Fuzzing")
struct FuzzTests {
    @Test("Inputs that once revealed a fault are processed", arguments: FuzzTarget.allCases)
    func inputsOfEarlierFaultsAreProcessedWithoutATrap(target: FuzzTarget) throws {
        for input in try Found.inputs(of: target) { target.run(input) }
    }

    /// The inputs and the dictionary of a target that is renamed or misspelled would not be used any more. The targets
    /// of the gateway have tests of their own.
    @Test("Each folder of inputs and each dictionary is that of a target")
    func foldersAndDictionariesAreThoseOfTargets() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Found.folder.path)
            .filter { !$0.hasPrefix("gateway") }
        for folder in folders { #expect(FuzzTarget(rawValue: folder) != nil, "Fixtures/fuzz/\(folder)") }
        let inputs = try FuzzTarget.allCases.flatMap { try Found.inputs(of: $0) }
        #expect(!inputs.isEmpty)
        let path = Found.root.appendingPathComponent("Tests/Fuzz/Dictionaries").path
        let dictionaries = try FileManager.default.contentsOfDirectory(atPath: path)
            .filter { !$0.hasPrefix("gateway") }
        #expect(!dictionaries.isEmpty)
        for dictionary in dictionaries {
            #expect(FuzzTarget.allCases.contains { dictionary == $0.rawValue + ".txt" }, "\(dictionary)")
        }
    }

    @Test("Random bytes are processed", arguments: FuzzTarget.allCases)
    func randomBytesAreProcessedWithoutATrap(target: FuzzTarget) {
        var numbers = SeededGenerator(seed: 1)
        for _ in 0..<(target.isSlow ? 2 : 200) {
            let length = Int.random(in: 0...400, using: &numbers)
            target.run((0..<length).map { _ in UInt8.random(in: 0...255, using: &numbers) })
        }
    }

    @Test("Changed packets are processed", arguments: FuzzTarget.allCases)
    func changedPacketsAreProcessedWithoutATrap(target: FuzzTarget) {
        let seeds = target.madeSeeds
        #expect(!seeds.isEmpty)
        for number in 0..<(seeds.isEmpty ? 0 : target.isSlow ? 4 : 200) {
            var mutation = ScriptMutation(seed: UInt64(number + 1))
            // The seeds of one kind follow each other: a prime step selects some of each kind.
            let seed = seeds[number * 7919 % seeds.count]
            let changed = mutation.mutate(seed, of: target)
            target.run(changed ?? mutation.mutate(Script([.init(octets: seed)])).packets.first?.octets ?? seed)
        }
    }

    @Test("Every command that has a type is fuzzed")
    func everyCommandThatHasATypeIsFuzzed() throws {
        let codes = Found.root.appendingPathComponent("Tests/BLEHCITests/TypedCodes.generated.swift")
        let lines = try String(contentsOf: codes, encoding: .utf8).split(separator: "\n")
        let start = try #require(lines.firstIndex { $0.contains("static let commands") })
        let opcodes = lines[(start + 1)...].prefix { $0.contains("0x") }.compactMap { line in
            UInt16(line.drop { $0 != "x" }.dropFirst().prefix(4), radix: 16)
        }
        #expect(!opcodes.isEmpty)
        let missing = Set(opcodes).subtracting(fuzzedOpcodes).map { String($0, radix: 16) }.sorted()
        #expect(missing.isEmpty, "add the commands to commandTypes: \(missing)")
        #expect(Set(fuzzedOpcodes) == Set(opcodes))
    }

    @Test("The names of protocols select their targets")
    func namesOfProtocolsSelectTheirTargets() {
        #expect(FuzzTarget.named("att") == [.server, .client])
        #expect(FuzzTarget.named("smp") == [.security, .bonds])
        #expect(FuzzTarget.named("gap") == [.advertising, .discovery])
        #expect(FuzzTarget.named("host") == [.host])
        #expect(FuzzTarget.named("none").isEmpty)
    }

    @Test("A capture is split into its records, with correct lengths", arguments: FuzzTarget.capture.madeSeeds)
    func captureIsSplitIntoItsRecordsWithCorrectLengths(capture: [UInt8]) throws {
        var records = CaptureRecords(capture)
        #expect(records.records.count == 1)
        #expect(records.octets == capture)
        records.records[0].removeLast()
        #expect(records.octets == Array(capture.dropLast()))
        records.correctLengths()
        var reader = CaptureReader()
        reader.append(records.octets.rawSpan)
        reader.finish()
        #expect(try reader.advance() == .record)
        #expect(try reader.advance() == .end)
    }

    @Test("A changed packet gets the length that it has, and its frame if that is required")
    func changedPacketGetsItsLength() {
        let cases: [(packet: [UInt8], corrected: [UInt8], withFrame: [UInt8])] = [
            ([1, 3, 0x0C, 9], [1, 3, 0x0C, 0], [1, 3, 0x0C, 0]),
            ([4, 0x13, 0, 1, 2], [4, 0x13, 2, 1, 2], [4, 0x13, 2, 1, 2]),
            // A packet that starts a frame, and one that continues a frame.
            (
                [2, 0x40, 0x20, 0, 1, 9, 0, 4, 0, 7], [2, 0x40, 0x20, 5, 0, 9, 0, 4, 0, 7],
                [2, 0x40, 0x20, 5, 0, 1, 0, 4, 0, 7]
            ),
            (
                [2, 0x40, 0x10, 0, 0, 9, 0, 4, 0, 7], [2, 0x40, 0x10, 5, 0, 9, 0, 4, 0, 7],
                [2, 0x40, 0x10, 5, 0, 9, 0, 4, 0, 7]
            ),
            ([5, 0x60, 0x2E, 0, 0, 1], [5, 0x60, 0x2E, 1, 0, 1], [5, 0x60, 0x2E, 1, 0, 1]),
            ([4, 0x13], [4, 0x13], [4, 0x13]), ([9, 1, 2, 3, 4, 5], [9, 1, 2, 3, 4, 5], [9, 1, 2, 3, 4, 5]),
        ]
        for (packet, corrected, withFrame) in cases {
            var (without, with) = (packet, packet)
            PacketLengths.correct(&without, withFrames: false)
            PacketLengths.correct(&with, withFrames: true)
            #expect(without == corrected)
            #expect(with == withFrame)
        }
        var long: [UInt8] = [4, 0x13, 0] + [UInt8](repeating: 1, count: 300)
        PacketLengths.correct(&long, withFrames: false)
        #expect(long.count == 258 && long[2] == 255)
    }

    @Test("A script is read as it was written")
    func scriptIsReadAsItWasWritten() {
        let script = Script([.init(choice: 1, delay: 2, octets: [3, 4]), .init(octets: [])])
        #expect(script.octets == [2, 0, 1, 2, 3, 4, 0, 0, 0, 0])
        #expect(Script(script.octets) == script)
        #expect(Script([0xFF, 0xFF, 5, 6, 7]) == Script([.init(choice: 5, delay: 6, octets: [7])]))
        #expect(Script([1, 2, 3]) == Script([Script.Packet]()))
    }
}
