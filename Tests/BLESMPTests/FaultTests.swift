import BLESMP
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@Suite("A pairing with a fault")
struct FaultTests {
    /// Checks the rules for each ended pairing, whatever happened to one PDU.
    private func check(_ meeting: Meeting, _ meddling: Meeting.Meddling) {
        let (central, peripheral) = (meeting.central, meeting.peripheral)
        let comment: Comment = "\(meddling): \(central.failure as Any?) \(peripheral.failure as Any?)"
        for party in [central, peripheral] {
            #expect(!party.channel.isPairing && party.channel.deadline == nil, comment)
            #expect(party.outcome == nil || party.failure == nil, comment)
        }
        switch (central.outcome, peripheral.outcome) {
        case (let central?, let peripheral?):
            #expect(central.bond.centralKey == peripheral.bond.peripheralKey, comment)
            #expect(central.bond.peripheralKey == peripheral.bond.centralKey, comment)
            #expect(central.strength == peripheral.strength && central.isBonded == peripheral.isBonded, comment)
        case (nil, nil):
            break
        case (_?, nil):
            // The initiator has finished when it has sent its last key, whether or not that arrives.
            #expect(meeting.encryptionKey != nil, comment)
        case (nil, _?):
            Issue.record(comment)
        }
    }

    /// Runs a pairing to its end with one fault, and then, if the link still exists, another without.
    private func run(_ method: Method, _ meddling: Meeting.Meddling) -> Meeting {
        var meeting = method.meeting()
        meeting.meddling = meddling
        meeting.pair()
        meeting.letTimePass()
        check(meeting, meddling)
        let ends = meeting
        let isClosed = [meeting.central.failure, meeting.peripheral.failure].contains {
            $0 == .timedOut || $0 == .linkEnded
        }
        if !isClosed {
            meeting.forget()
            meeting.pair()
            #expect(
                meeting.central.outcome != nil && meeting.peripheral.outcome != nil,
                "\(meddling), then once more: \(meeting.central.failure as Any?) \(meeting.peripheral.failure as Any?)"
            )
        }
        return ends
    }

    private func undisturbed(_ method: Method) -> Meeting {
        var meeting = method.meeting()
        meeting.pair()
        return meeting
    }

    @Test(arguments: Method.all)
    func lostPDUEndsThePairingAtTheTimeout(method: Method) {
        for number in undisturbed(method).sent.indices {
            let meeting = run(method, .lose(number))
            #expect(meeting.peripheral.outcome == nil, "PDU \(number)")
        }
    }

    @Test(arguments: Method.all)
    func repeatedPDUEndsThePairingUnlessItsReceiverHasFinished(method: Method) {
        let sent = undisturbed(method).sent
        let last = [Channel.Role.central, .peripheral].map { role in sent.lastIndex { $0.to == role } }
        for number in sent.indices {
            let meeting = run(method, .repeat(number))
            #expect((meeting.peripheral.outcome != nil) == last.contains(number), "PDU \(number)")
        }
    }

    @Test(arguments: Method.all)
    func swappedPDUsGiveTheSameKeysOrEndThePairing(method: Method) {
        let sent = undisturbed(method).sent
        var swaps = 0
        for number in sent.indices.dropLast() {
            let meeting = run(method, .swapWithNext(number))
            if meeting.peripheral.outcome == nil { swaps += 1 }
        }
        // At least the keys are sent one after the other.
        #expect(swaps >= 4)
    }

    @Test(arguments: Method.all)
    func linkEndEndsThePairing(method: Method) {
        for number in undisturbed(method).sent.indices {
            let meeting = run(method, .endLink(number))
            #expect(meeting.peripheral.outcome == nil)
        }
    }

    @Test(
        "A changed byte before encryption never leads to a key on one side only",
        arguments: Method.all
    )
    func changedByteNeverLeadsToAKeyOnOneSideOnly(method: Method) throws {
        let meeting = undisturbed(method)
        let plain = try #require(meeting.sentInPlain)
        var generator = SeededGenerator(seed: 20_26)
        for (number, (pdu, _)) in meeting.sent.enumerated() {
            for octet in pdu.indices {
                let change = UInt8.random(in: 1...0xFF, using: &generator)
                var meeting = method.meeting()
                meeting.meddling = .corrupt(number, octet: octet, with: change)
                meeting.pair()
                meeting.letTimePass()
                if number < plain {
                    check(meeting, .corrupt(number, octet: octet, with: change))
                } else {
                    // The link's encryption prevents this change; here it has only the effect of another key.
                    #expect(!meeting.central.channel.isPairing && !meeting.peripheral.channel.isPairing)
                }
            }
        }
    }

    @Test("Random bytes, in any number and at any time, never trap", arguments: 0..<40 as Range<UInt64>)
    func randomBytesNeverTrap(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for method in Method.all {
            var meeting = method.meeting(seed: seed)
            let count = Int.random(in: 0..<12, using: &generator)
            meeting.meddling = .lose(count)
            meeting.pair()
            for _ in 0..<8 {
                let length = [0, 1, 2, 7, 8, 11, 17, 65, 70].randomElement(using: &generator) ?? 0
                var pdu = (0..<length).map { _ in UInt8.random(in: 0...0xFF, using: &generator) }
                if !pdu.isEmpty { pdu[0] = UInt8.random(in: 0...0x10, using: &generator) }
                meeting.receive(pdu, as: Bool.random(using: &generator) ? .central : .peripheral)
                meeting.run()
            }
            meeting.letTimePass()
            #expect(!meeting.central.channel.isPairing && !meeting.peripheral.channel.isPairing)
            #expect(meeting.central.outcome == nil || meeting.peripheral.outcome != nil || meeting.encryptionKey != nil)
        }
    }
}
