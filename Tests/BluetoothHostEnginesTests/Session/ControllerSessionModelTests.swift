import BLEHCI
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Random inputs of a session, compared with a simple model of its controller and its callers.
@Suite("A session under random inputs")
struct ControllerSessionModelTests {
    private struct Model: ~Copyable {
        var random: SeededGenerator
        var fixture = SessionFixture()
        /// The commands that have not ended, by their callers.
        var waiting: Set<UInt32> = []
        /// The command that the controller has received and not answered.
        var received: HCIOpcode?
        /// The number of commands that the controller accepts; nil if the session may assume that it accepts one.
        var credits: UInt8?
        var isOpen = false
        /// The generation for which a transport is being opened.
        var opening: UInt64?
        var isLoading = false
        var isPreparing = false
        /// Whether the call of ``ControllerSession/start(_:)`` has not ended.
        var isStarting = false
        private var nextCaller: UInt32 = 0

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
        }

        private mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

        // MARK: Effects

        mutating func perform(_ effects: [SessionEffect]) {
            for effect in effects { perform(effect) }
            check()
        }

        private mutating func perform(_ effect: SessionEffect) {
            switch effect {
            case .openTransport(let generation):
                #expect(!isOpen && opening == nil)
                opening = generation
            case .closeTransport:
                #expect(isOpen)
                isOpen = false
                received = nil
                credits = nil
            case .send:
                #expect(isOpen)
                #expect(received == nil, "the controller has a command already")
                #expect(credits != 0, "the controller accepts no command")
                received = [effect].sent.first
                if let credits { self.credits = credits - 1 }
            case .commandFailed(let tag, let failure):
                end(tag)
                if failure == .aborted { forgetCommand() }
            case .loadBonds: isLoading = true
            case .prepareAddresses: isPreparing = true
            case .ready:
                #expect(fixture.session.power == .on)
            case .finish(_, let error):
                #expect(isStarting)
                isStarting = false
                #expect((error == nil) == (fixture.session.power == .on))
            case .lost: forgetCommand()
            case .report(.unanswered), .report(.acceptsNoCommands), .report(.failedDuringBringUp): forgetCommand()
            case .report, .restartRoles: break
            }
        }

        /// The session no longer waits for the answer to the command in flight, and may send another one.
        private mutating func forgetCommand() {
            received = nil
            credits = nil
        }

        private mutating func end(_ tag: CommandTag) {
            if case .caller(let caller) = tag {
                #expect(waiting.remove(caller.index) != nil, "a command has ended twice")
            }
        }

        func check() {
            #expect(fixture.session.isTransportOpen == isOpen)
            #expect(fixture.session.commands.callerCount == waiting.count)
            #expect(fixture.session.commands.opcodeInFlight == received)
            #expect(!fixture.session.commands.hasSendableCommand)
            if !isOpen { #expect(fixture.session.commands.count == 0) }
            if let deadline = fixture.session.deadline { #expect(deadline > fixture.now, "a deadline was missed") }
        }

        // MARK: Inputs

        mutating func start() {
            guard fixture.session.power == .off else { return }
            isStarting = true
            perform(fixture.session.start(SessionFixture.call))
        }

        mutating func submit() {
            nextCaller += 1
            waiting.insert(nextCaller)
            let effects = fixture.session.submit(SessionFixture.request(by: nextCaller), at: fixture.now)
            let tag = SessionFixture.tag(nextCaller)
            guard effects == [.commandFailed(tag, .aborted)] else { return perform(effects) }
            // The controller is off or being brought up. The command in flight stays.
            end(tag)
            check()
        }

        /// Answers the command in flight.
        mutating func answer(_ reply: [UInt8], credits: UInt8) {
            guard let opcode = received else { return }
            receive(opcode, reply, credits: credits)
        }

        mutating func receive(_ opcode: HCIOpcode, _ reply: [UInt8], credits: UInt8) {
            guard isOpen else { return }
            self.credits = credits
            let isAnswer = received == opcode
            if isAnswer { received = nil }
            let tag = fixture.session.answered(opcode, credits: credits, isSuccessStatus: false)
            #expect((tag != nil) == isAnswer)
            if let tag {
                end(tag)
                let effects = fixture.session.receive(reply.rawSpan, for: tag, at: fixture.now)
                for effect in effects { perform(effect) }
            }
            perform(fixture.session.sendNext(at: fixture.now))
        }

        /// Ends what the session waits for, except answers to commands.
        mutating func finishCallersWork(fails: Bool) {
            if let generation = opening {
                opening = nil
                guard fixture.session.awaitsTransport(generation) else { return }
                isOpen = !fails
                perform(
                    fails
                        ? fixture.session.transportNotOpened("test", at: fixture.now)
                        : fixture.session.transportOpened(at: fixture.now)
                )
            } else if isLoading {
                isLoading = false
                let obstacle = fails && chance(4) ? "test" : nil
                perform(
                    fixture.session.bondsLoaded(
                        identity: SessionFixture.identity,
                        obstacle: obstacle,
                        at: fixture.now
                    )
                )
            } else if isPreparing {
                isPreparing = false
                perform(fixture.session.addressesPrepared(fails ? .aborted : nil, at: fixture.now))
            }
        }

        mutating func loseTransport() {
            guard isOpen else { return }
            isOpen = false
            forgetCommand()
            perform(fixture.session.transportEnded("lost", at: fixture.now))
        }

        mutating func pass(_ duration: Duration) {
            let end = fixture.now + duration
            while let deadline = fixture.session.deadline, deadline <= end {
                fixture.now = deadline
                perform(fixture.session.advance(to: deadline))
            }
            fixture.now = end
        }

        mutating func change() {
            let handle = ConnectionHandle(UInt16.random(in: 0x40..<0x60, using: &random))
            switch Int.random(in: 0..<40, using: &random) {
            case 0..<4: submit()
            case 4: perform(fixture.session.failed("test", at: fixture.now))
            case 5: if chance(4) { loseTransport() }
            case 6: receive(.none, [], credits: UInt8.random(in: 0...2, using: &random))
            case 7: receive(ReadRSSI.opcode, [0, 0x40, 0, 0], credits: 1)
            case 8: answer([0x0C], credits: 1)
            case 9: answer([], credits: 1)
            case 10: pass(.milliseconds(Int.random(in: 1...6000, using: &random)))
            case 11: start()
            case 12: finishCallersWork(fails: true)
            case 13..<16: finishCallersWork(fails: false)
            case 16: _ = fixture.strayData(handle, at: fixture.now)
            case 17: perform(fixture.session.unknownLinkEnded(handle, at: fixture.now))
            case 18: perform(fixture.session.linkBegan(handle).effects)
            case 19: fixture.session.linkEnded(handle, at: fixture.now)
            default:
                guard let opcode = received else { return }
                answer(fixture.reply(to: opcode), credits: chance(8) ? 0 : 1)
            }
        }

        // MARK: End

        /// Lets the controller answer everything.
        mutating func recover() {
            for _ in 0..<1000 {
                start()
                if opening != nil || isLoading || isPreparing {
                    finishCallersWork(fails: false)
                } else if let opcode = received {
                    answer(fixture.reply(to: opcode), credits: 1)
                } else if fixture.session.power == .on, waiting.isEmpty {
                    return
                } else {
                    pass(.seconds(1))
                }
            }
            Issue.record("the session is not on")
        }

        mutating func close() {
            _ = fixture.session.close()
            perform(fixture.session.end())
            #expect(waiting.isEmpty && !isOpen && !isStarting)
            #expect(fixture.session.deadline == nil && fixture.session.power == .closed)
        }
    }

    @Test("Each command ends once, credits are respected, and the session is on in the end", arguments: 1...60)
    func eachCommandEndsOnce(seed: UInt64) {
        var model = Model(seed: seed)
        for _ in 0..<600 { model.change() }
        model.recover()
        model.close()
    }

    @Test("Closing ends all commands at any time", arguments: 1...60)
    func closingAtAnyTimeEndsAllCommands(seed: UInt64) {
        var model = Model(seed: seed)
        let count = Int.random(in: 0..<200, using: &model.random)
        for _ in 0..<count { model.change() }
        model.close()
    }
}
