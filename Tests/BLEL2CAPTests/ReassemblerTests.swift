import BLEByteCoding
import BLEL2CAP
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

/// The results of a reassembler for some fragments.
private struct Transcript: Equatable {
    var frames: [[UInt8]] = []
    var channels: [UInt16] = []
    var outcomes: [Reassembler.Outcome] = []
}

private func reassemble(
    _ fragments: [(isStart: Bool, bytes: [UInt8])],
    maximumPayloadLength: Int = 64
) -> Transcript {
    var reassembler = Reassembler(maximumPayloadLength: maximumPayloadLength)
    var transcript = Transcript()
    for fragment in fragments {
        let outcome = reassembler.receive(fragment.bytes.rawSpan, isStart: fragment.isStart) { frame in
            transcript.frames.append([UInt8](copying: frame.payload))
            transcript.channels.append(frame.channel.rawValue)
        }
        transcript.outcomes.append(outcome)
    }
    return transcript
}

@Suite("Reassembly of L2CAP frames")
struct ReassemblerTests {
    static let frame: [UInt8] = [0x05, 0x00, 0x04, 0x00, 1, 2, 3, 4, 5]

    @Test("A frame in one fragment is delivered without a copy")
    func singleFragmentIsNotCopied() {
        let transcript = reassemble([(true, Self.frame)])
        #expect(transcript == Transcript(frames: [[1, 2, 3, 4, 5]], channels: [4], outcomes: [.delivered]))
    }

    @Test("A whole frame needs no reassembly, unless another is incomplete")
    func wholeFrameNeedsNoReassembly() {
        var reassembler = Reassembler()
        func isWhole(_ bytes: [UInt8]) -> Bool { reassembler.isWhole(bytes.rawSpan) }
        func receive(_ bytes: [UInt8]) -> Reassembler.Outcome {
            reassembler.receive(bytes.rawSpan, isStart: true) { _ in }
        }
        #expect(isWhole(Self.frame))
        #expect(!isWhole([UInt8](Self.frame.dropLast())))
        #expect(!isWhole(Self.frame + [6]))
        #expect(!isWhole([UInt8](Self.frame.prefix(1))))
        #expect(receive([UInt8](Self.frame.prefix(6))) == .incomplete)
        #expect(!isWhole(Self.frame), "The interrupted frame is counted by receive.")
        #expect(receive(Self.frame) == .dropped(.interruptedFrame))
        #expect(isWhole(Self.frame))
    }

    @Test("A frame split anywhere, even inside its header, is reassembled", arguments: 1..<9)
    func frameSplitAnywhereIsReassembled(at position: Int) {
        let transcript = reassemble([(true, Array(Self.frame[..<position])), (false, Array(Self.frame[position...]))])
        #expect(transcript.frames == [[1, 2, 3, 4, 5]])
        #expect(transcript.outcomes == [.incomplete, .delivered])
    }

    @Test("A frame that arrives byte by byte is reassembled")
    func frameThatArrivesByteByByteIsReassembled() {
        let fragments = Self.frame.enumerated().map { (isStart: $0.offset == 0, bytes: [$0.element]) }
        let transcript = reassemble(fragments)
        #expect(transcript.frames == [[1, 2, 3, 4, 5]])
        #expect(transcript.outcomes == Array(repeating: .incomplete, count: 8) + [.delivered])
    }

    @Test("An empty payload is a frame")
    func emptyPayloadIsAFrame() {
        #expect(reassemble([(true, [0, 0, 6, 0])]) == Transcript(frames: [[]], channels: [6], outcomes: [.delivered]))
    }

    @Test("Invalid fragments are dropped and reported, and the next frame is complete again")
    func invalidFragmentsAreDroppedAndTheNextFrameIsComplete() {
        let cases: [([(isStart: Bool, bytes: [UInt8])], [Reassembler.Outcome])] = [
            ([(false, [1, 2])], [.dropped(.unexpectedContinuation)]),
            ([(true, [])], [.dropped(.emptyStart)]),
            ([(true, [1, 0, 4, 0, 9, 9])], [.dropped(.excessBytes)]),
            ([(true, [3, 0, 4, 0, 9]), (false, [9, 9, 9])], [.incomplete, .dropped(.excessBytes)]),
            (
                [(true, [65, 0, 4, 0, 9]), (false, Array(repeating: 9, count: 64))],
                [.dropped(.oversizedFrame(length: 65)), .incomplete]
            ),
            ([(true, [65]), (false, [0, 4, 0, 9])], [.incomplete, .dropped(.oversizedFrame(length: 65))]),
            ([(true, [9]), (true, [9])], [.incomplete, .dropped(.interruptedFrame)]),
        ]
        for (fragments, outcomes) in cases {
            let transcript = reassemble(fragments + [(true, Self.frame)])
            #expect(Array(transcript.outcomes.prefix(outcomes.count)) == outcomes)
            #expect(transcript.frames == [[1, 2, 3, 4, 5]])
        }
    }

    @Test("A start that interrupts a frame drops only the older frame")
    func startThatInterruptsAFrameDropsOnlyTheOlderFrame() {
        let transcript = reassemble([(true, [5, 0, 4, 0, 1]), (true, Self.frame)])
        #expect(transcript.frames == [[1, 2, 3, 4, 5]])
        #expect(transcript.outcomes == [.incomplete, .dropped(.interruptedFrame)])
    }

    @Test("Random fragments never trap and never exceed the bound", arguments: 0..<32)
    func randomFragmentsNeverTrapAndNeverExceedTheBound(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func next(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }
        var reassembler = Reassembler(maximumPayloadLength: 32)
        for _ in 0..<2000 {
            let bytes = (0..<next(12)).map { _ in UInt8(next(40)) }
            _ = reassembler.receive(bytes.rawSpan, isStart: next(3) == 0) { frame in
                #expect(frame.payload.byteCount <= 32)
            }
        }
    }
}
