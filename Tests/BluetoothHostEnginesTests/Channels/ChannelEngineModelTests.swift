import BLEByteCoding
import BLEL2CAP
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Two sides of a link whose apps and controllers act at random, compared with a model of what apps have been told.
@Suite("Channels of two sides under random changes")
struct ChannelEngineModelTests {
    private struct App {
        enum Observer { case opening, open, rejected, ended }

        var side: ChannelSide
        var observers: [ObserverToken: Observer] = [:]
        var names: [HostChannelIdentifier] = []
        /// The names of channels with their observers, for channels whose app may reject them.
        var tokens: [ObserverToken: HostChannelIdentifier] = [:]
        var calls: Set<CallToken> = []
        /// The commands and frames on their way to the peer.
        var sent: [ChannelSide.SentFrame] = []
        var nextToken: UInt32 = 0
        var endCount = 0

        mutating func makeToken() -> ObserverToken {
            nextToken += 1
            return ObserverToken(index: nextToken, generation: 0)
        }

        mutating func opened(_ names: [HostChannelIdentifier]) {
            for name in names {
                let token = makeToken()
                observers[token] = .opening
                tokens[token] = name
                #expect(side.engine.observe(name, token) == true)
            }
            self.names += names
        }

        /// An app that rejects a channel gets no further events.
        func tell(_ observer: ObserverToken, while state: Observer) {
            if observers[observer] != .rejected { #expect(observers[observer] == state) }
        }

        mutating func perform(_ effect: ChannelEffect, rejects: Bool) {
            switch effect {
            case .opened(let observer, let name, _):
                tell(observer, while: .opening)
                observers[observer] = .open
                if rejects { reject(observer, name) }
            case .failed(let observer, _):
                tell(observer, while: .opening)
                end(observer)
            case .accepted(let name, _):
                let token = makeToken()
                if side.engine.observe(name, token) {
                    observers[token] = .open
                    tokens[token] = name
                    names.append(name)
                    if rejects { reject(token, name) }
                }
            case .readable(let observer), .hasRoom(let observer), .peerReconfigured(let observer):
                tell(observer, while: .open)
            case .ended(let observer, _, _):
                tell(observer, while: .open)
                end(observer)
            case .finish(let call, _):
                #expect(calls.remove(call) != nil, "a call was finished twice, or after its cancellation")
            }
        }

        private mutating func reject(_ observer: ObserverToken, _ name: HostChannelIdentifier) {
            side.engine.reject(name)
            end(observer)
            observers[observer] = .rejected
        }

        private mutating func end(_ observer: ObserverToken) {
            guard observers[observer] != .rejected else { return }
            observers[observer] = .ended
            endCount += 1
            if let name = tokens[observer] { names.removeAll { $0 == name } }
        }

        func checkCredits() {
            for value in UInt16(0x40)...0x7F {
                guard let channel = side.engine.channels[ChannelIdentifier(rawValue: value)] else { continue }
                #expect((0...65_535).contains(channel.sendCredits))
                #expect((0...65_535).contains(channel.receiveCredits))
            }
        }
    }

    private struct World {
        var random: SeededGenerator
        var apps = [App(side: ChannelSide(.central)), App(side: ChannelSide(.peripheral))]
        let configuration: CreditBasedChannel.Configuration

        init(seed: UInt64) throws {
            random = SeededGenerator(seed: seed)
            let isSmall = Bool.random(using: &random)
            configuration =
                isSmall ? .init(mtu: 64, mps: 64, receiveByteCapacity: 0, sendByteCapacity: 0) : .init(mtu: 500)
            for index in apps.indices {
                try apps[index].side.services.register(.init(configuration: configuration), at: ChannelSide.psm)
            }
        }

        /// Takes what a side has to send and to tell, as the host does after each input.
        mutating func pump(_ index: Int) {
            while let command = apps[index].side.nextCommand() { send(command, on: .signaling, from: index) }
            for _ in 0..<4 {
                guard let frame = apps[index].side.nextFrame() else { break }
                apps[index].sent.append(frame)
            }
            while let command = apps[index].side.nextCommand() { send(command, on: .signaling, from: index) }
            while let effect = apps[index].side.engine.nextEffect() {
                apps[index].perform(effect, rejects: Int.random(in: 0..<12, using: &random) == 0)
            }
        }

        private mutating func send(_ payload: [UInt8], on channel: ChannelIdentifier, from index: Int) {
            apps[index].sent.append(.init(channel: channel, payload: payload))
        }

        private mutating func deliver(from index: Int) {
            guard !apps[index].sent.isEmpty else { return }
            let frame = apps[index].sent.removeFirst()
            receive(frame, at: 1 - index)
        }

        private mutating func receive(_ frame: ChannelSide.SentFrame, at index: Int) {
            if frame.channel == .signaling {
                let (outcome, answer) = apps[index].side.answer(frame.payload)
                switch outcome {
                case .send, .rejected, .parameterUpdateRequested: send(answer, on: .signaling, from: index)
                default: #expect(answer.isEmpty)
                }
            } else {
                _ = apps[index].side.receive(frame.payload, on: frame.channel.rawValue)
            }
            pump(index)
        }

        private mutating func connect(_ index: Int) {
            let names: [HostChannelIdentifier]?
            if Bool.random(using: &random) {
                names = try? apps[index].side.engine.connect(
                    to: ChannelSide.psm,
                    count: Int.random(in: 1...5, using: &random),
                    configuration: configuration
                )
            } else {
                names = (try? apps[index].side.engine.connect(to: ChannelSide.psm, configuration: configuration))
                    .map { [$0] }
            }
            guard let names else { return }
            apps[index].opened(names)
            if Int.random(in: 0..<5, using: &random) != 0 { apps[index].side.engine.release(names[0].channel) }
        }

        private mutating func reconfigure(_ index: Int) {
            guard let name = apps[index].names.randomElement(using: &random) else { return }
            let call = apps[index].makeToken()
            let mtu = UInt16.random(in: 64...900, using: &random)
            do throws(HostError) {
                try apps[index].side.engine.reconfigure(name, mtu: mtu, mps: 64, for: call)
                apps[index].calls.insert(call)
            } catch {}
        }

        private mutating func cancel(_ index: Int) {
            guard let call = apps[index].calls.min(by: { $0.index < $1.index }) else { return }
            apps[index].calls.remove(call)
            apps[index].side.engine.cancel(call)
        }

        private mutating func use(_ index: Int) {
            guard let name = apps[index].names.randomElement(using: &random) else { return }
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<8:
                let bytes = [UInt8](repeating: 5, count: Int.random(in: 0...2000, using: &random))
                if let count = apps[index].side.engine.send(bytes[...], on: name) {
                    #expect((0...bytes.count).contains(count))
                }
            case 8..<15: _ = apps[index].side.engine.read(from: name, limit: Int.random(in: 1...1000, using: &random))
            case 15: apps[index].side.engine.disconnect(name)
            case 16: apps[index].side.engine.finish(name)
            case 17: _ = apps[index].side.engine.endOpening(of: name.channel, .timedOut)
            default: apps[index].side.engine.release(name.channel)
            }
        }

        /// A command of a peer that breaks the protocol.
        private mutating func disturb(_ index: Int) {
            let code = UInt8.random(in: 0x12...0x1A, using: &random)
            let data = (0..<Int.random(in: 0...12, using: &random)).map { _ in
                Bool.random(using: &random) ? UInt8.random(in: 0x3F...0x48, using: &random) : 0
            }
            let command = [code, UInt8.random(in: 0...20, using: &random), UInt8(data.count), 0] + data
            receive(.init(channel: .signaling, payload: command), at: index)
        }

        mutating func change() {
            let index = Int.random(in: 0...1, using: &random)
            switch Int.random(in: 0..<60, using: &random) {
            case 0..<5: connect(index)
            case 5..<20: use(index)
            case 20..<24: reconfigure(index)
            case 24: cancel(index)
            case 25 where Int.random(in: 0..<8, using: &random) == 0: apps[index].side.engine.peerIsUnverified()
            case 26 where Int.random(in: 0..<8, using: &random) == 0: disturb(index)
            case 27: advance()
            default: deliver(from: index)
            }
            pump(index)
            apps[index].checkCredits()
        }

        private mutating func advance() {
            let time = Duration.milliseconds(Int.random(in: 0...10_000, using: &random))
            for index in apps.indices {
                _ = apps[index].side.advance(by: time)
                pump(index)
            }
        }

        /// Ends the link. All apps have been told the end of each channel once, and all calls have ended.
        mutating func end() {
            for index in apps.indices {
                apps[index].side.engine.linkEnded(.controller(.connectionTimeout))
                pump(index)
                #expect(
                    apps[index].observers.values.count { $0 == .ended || $0 == .rejected }
                        == apps[index].observers.count
                )
                #expect(apps[index].endCount == apps[index].observers.count)
                #expect(apps[index].calls == [] && apps[index].names == [])
                #expect(apps[index].side.engine.count == 0 && apps[index].side.engine.deadline == nil)
            }
        }
    }

    @Test("Each call is finished once, and each observer gets one end", arguments: 1...40)
    func eachObserverGetsOneEnd(seed: UInt64) throws {
        var world = try World(seed: seed)
        for _ in 0..<600 { world.change() }
        world.end()
    }
}
