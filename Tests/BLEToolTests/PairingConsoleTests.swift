import BLE
import BLEProfiles
import BluetoothTesting
import BluetoothTypes
import Foundation
import Synchronization
import Testing

@testable import BLETool
@testable import BluetoothHost

@Suite("Questions of ble about pairings")
struct PairingConsoleTests {
    private final class Answers: Sendable {
        private let answers = Mutex<[PairingAnswer]>([])

        var all: [PairingAnswer] { answers.withLock { $0 } }

        func append(_ answer: PairingAnswer) { answers.withLock { $0.append(answer) } }
    }

    /// Shows the passkeys of its pairings.
    private final class Display: PairingDelegate {
        private let shown = Mutex<[UInt32]>([])

        var passkeys: [UInt32] { shown.withLock { $0 } }

        func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
            if case .showPasskey(let passkey) = inquiry.question { shown.withLock { $0.append(passkey) } }
            return .accept
        }
    }

    private struct Phone {
        let adapter: Adapter
        let display = Display()
        let address: DeviceAddress
        let peer: RemotePeripheral

        init(_ name: String, in world: World, connectedTo server: DeviceAddress) async throws {
            adapter = try await world.device(name).openAdapter { [display] in
                $0.security.ioCapability = .displayOnly
                $0.pairingDelegate = display
            }
            address = try await adapter.information.identityAddress
            peer = try await adapter.central.connect(to: server)
        }

        func pair() async throws -> KeyStrength {
            try await peer.pair(RequiredSecurity(isAuthenticated: true))
        }

        /// Waits until the phone shows the passkey of its first pairing.
        func passkey(in world: World) async throws -> UInt32 {
            while true {
                if let passkey = display.passkeys.first { return passkey }
                try await world.sleep(for: .milliseconds(10))
            }
        }
    }

    private func makeConsole(
        _ lines: PrintedLines,
        passkey: Passkey? = nil,
        answers: PairingConsole.Answers = .commands,
        complaints: PrintedLines = PrintedLines()
    ) -> PairingConsole {
        PairingConsole(
            asJSON: true,
            passkey: passkey,
            answers: answers,
            output: lines.append,
            complain: complaints.append,
            consents: { _ in true }
        )
    }

    private func inquiry(_ number: Int, _ question: PairingQuestion) -> PairingInquiry {
        PairingInquiry(
            link: LinkIdentifier(handle: ConnectionHandle(UInt16(number)), serial: UInt64(number)),
            peer: DeviceAddress(UInt64(number), isRandom: false),
            question: question,
            isStartedHere: false,
            replaces: nil,
            isIdentityVerified: false
        )
    }

    /// A server with a keyboard, and two connected phones with displays.
    private func withPhones(
        _ console: PairingConsole,
        _ body: @escaping @Sendable (World, Phone, Phone) async throws -> Void
    ) throws {
        try World.run(limit: .seconds(600)) { world in
            let server = try await world.device("server").openAdapter {
                $0.security.ioCapability = .keyboardOnly
                $0.pairingDelegate = console
            }
            let address = try await server.information.identityAddress
            let advertising = try await server.peripheral.startAdvertising(
                AdvertisementConfiguration(interval: .milliseconds(30))
            )
            defer { withExtendedLifetime(advertising) {} }
            let first = try await Phone("first", in: world, connectedTo: address)
            let second = try await Phone("second", in: world, connectedTo: address)
            try await body(world, first, second)
        }
    }

    private func wait(in world: World, until isDone: () -> Bool) async throws {
        while !isDone() { try await world.sleep(for: .milliseconds(10)) }
    }

    @Test("Questions of two peers are asked one after the other, each with its number and its peer")
    func questionsOfTwoPeersAreAskedInTurn() throws {
        let lines = PrintedLines()
        let console = makeConsole(lines)
        try withPhones(console) { world, first, second in
            async let one = first.pair()
            let firstPasskey = try await first.passkey(in: world)
            async let two = second.pair()
            let secondPasskey = try await second.passkey(in: world)
            try await wait(in: world) { !lines.all.isEmpty }
            try await world.sleep(for: .seconds(1))
            let members = { (phone: Phone) in #""address":"\#(phone.address)","addressType":"public""# }
            #expect(lines.all == [#"{"event":"passkeyWanted",\#(members(first)),"question":1}"#])
            // An answer to a question that is not asked yet is not used for another one.
            #expect(throws: ArgumentProblem("question 2 is not being asked; question 1, about \(first.address), is")) {
                try console.take(PairingReply(question: 2, answer: .passkey(secondPasskey)))
            }
            try console.take(PairingReply(question: 1, answer: .passkey(firstPasskey)))
            #expect(try await one.isAuthenticated)
            try await wait(in: world) { lines.all.count == 2 }
            #expect(lines.all.last == #"{"event":"passkeyWanted",\#(members(second)),"question":2}"#)
            try console.take(PairingReply(question: 2, answer: .passkey(secondPasskey)))
            #expect(try await two.isAuthenticated)
        }
    }

    @Test("An answer to a pairing that has ended is not used for the next one")
    func lateAnswerIsNotTakenForAnotherPeer() throws {
        let lines = PrintedLines()
        let console = makeConsole(lines)
        try withPhones(console) { world, first, second in
            async let one = first.pair()
            let firstPasskey = try await first.passkey(in: world)
            async let two = second.pair()
            let secondPasskey = try await second.passkey(in: world)
            try await wait(in: world) { lines.all.count == 1 }
            await first.peer.disconnect()
            do {
                _ = try await one
                Issue.record("the pairing of a peer that left succeeded")
            } catch {
                #expect(error is BLEError)
            }
            try await wait(in: world) { lines.all.count == 2 }
            #expect(throws: ArgumentProblem("question 1 is not being asked; question 2, about \(second.address), is")) {
                try console.take(PairingReply(question: 1, answer: .passkey(firstPasskey)))
            }
            #expect(throws: ArgumentProblem.self) { try console.take(PairingReply(question: 2, answer: .accept)) }
            try console.take(PairingReply(question: 2, answer: .passkey(secondPasskey)))
            #expect(try await two.isAuthenticated)
            #expect(throws: ArgumentProblem("question 2 is not being asked")) {
                try console.take(PairingReply(question: 2, answer: .refuse))
            }
        }
    }

    @Test("A fixed passkey answers one pairing; the next one is asked with a message")
    func fixedPasskeyIsForOnePairing() throws {
        let (lines, complaints) = (PrintedLines(), PrintedLines())
        let console = makeConsole(lines, passkey: Passkey(value: 0), complaints: complaints)
        try withPhones(console) { world, first, second in
            // The world's first passkey is another one.
            await #expect(throws: BLEError.self) { try await first.pair() }
            #expect(lines.all.isEmpty && complaints.all.isEmpty)
            async let two = second.pair()
            let secondPasskey = try await second.passkey(in: world)
            try await wait(in: world) { lines.count(of: "passkeyWanted") == 1 }
            #expect(
                complaints.all == [
                    "--passkey is for one pairing and was used; enter the passkey for \(second.address)"
                ]
            )
            try console.take(PairingReply(question: 1, answer: .passkey(secondPasskey)))
            #expect(try await two.isAuthenticated)
        }
    }

    @Test("Questions beyond the limit are refused, and the end of input refuses the others")
    func questionsAreBounded() async {
        let lines = PrintedLines()
        let console = makeConsole(lines)
        let answers = Answers()
        let count = 12
        let refusedAtOnce = count - PairingConsole.queueLimit - 1
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<count {
                let inquiry = inquiry(index, .compare(UInt32(index)))
                group.addTask {
                    let answer = await console.answer(inquiry)
                    answers.append(answer)
                }
            }
            while answers.all.count < refusedAtOnce { await Task.yield() }
            #expect(answers.all == Array(repeating: .refuse, count: refusedAtOnce))
            #expect(lines.all.count == 1)
            console.end()
        }
        #expect(answers.all == Array(repeating: .refuse, count: count))
    }

    @Test("A line of the input is read while a question is asked, and later lines stay for the next questions")
    func linesStayForTheNextQuestions() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/answers-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try "yes\nno\nyes\n".write(toFile: path, atomically: true, encoding: .utf8)
        let lines = InputLines { () throws(FileError) in try ByteInput(path) }
        let complaints = PrintedLines()
        let console = makeConsole(PrintedLines(), answers: .lines(lines), complaints: complaints)
        for (number, expected) in [PairingAnswer.accept, .refuse, .accept].enumerated() {
            #expect(await console.answer(inquiry(number, .compare(0))) == expected)
        }
        // The input has ended.
        #expect(await console.answer(inquiry(3, .compare(0))) == .refuse)
        #expect(complaints.all.isEmpty)
    }

    @Test("Questions are refused at once if standard input has other data; a fixed passkey is used")
    func questionsWithoutASourceOfAnswersAreRefused() async {
        let (lines, complaints) = (PrintedLines(), PrintedLines())
        let console = makeConsole(lines, passkey: Passkey(value: 12), answers: .nowhere, complaints: complaints)
        #expect(await console.answer(inquiry(0, .enterPasskey)) == .passkey(12))
        #expect(await console.answer(inquiry(1, .enterPasskey)) == .refuse)
        #expect(await console.answer(inquiry(2, .compare(0))) == .refuse)
        #expect(lines.all.isEmpty)
        #expect(complaints.all.count == 2 && complaints.all.allSatisfy { $0.contains("standard input has other data") })
    }

    @Test(
        "Answers are read with and without the number of their question",
        arguments: [
            ("yes", .init(question: nil, answer: .accept)), (" N ", .init(question: nil, answer: .refuse)),
            ("yes 3", .init(question: 3, answer: .accept)), ("no 12", .init(question: 12, answer: .refuse)),
            ("012345", .init(question: nil, answer: .passkey(12_345))),
            ("passkey 2 012345", .init(question: 2, answer: .passkey(12_345))),
            ("", nil), ("maybe", nil), ("yes 0", nil), ("yes 1 2", nil), ("passkey 012345", nil), ("1 012345", nil),
            ("passkey 1 1234567", nil), ("0123456", nil),
        ] as [(String, PairingReply?)]
    )
    func answersAreReadWithAndWithoutTheNumberOfTheirQuestion(line: String, reply: PairingReply?) {
        #expect(PairingReply(parsing: line) == reply)
    }
}
