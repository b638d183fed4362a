import BLEByteCoding
import BLEL2CAP
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Random links, frames and completions, compared with a simple model.
@Suite("The sender of all links under random changes")
struct LinkSenderModelTests {
    private struct Link {
        let slot: SenderSlot
        let handle: UInt16
        /// Each frame with its L2CAP header.
        var frames: [(bytes: [UInt8], kind: FrameKind)] = []
        /// The bytes that the controller received.
        var received: [UInt8] = []
        var held = 0

        func unsent(_ kind: FrameKind) -> Int { frames.count { $0.kind == kind } }
    }

    private struct Model: ~Copyable {
        var random: SeededGenerator
        var sender: LinkSender
        var links: [Link] = []
        var stale: [SenderSlot] = []
        let packetLength: Int
        let packetCount: Int
        private var nextByte: UInt8 = 0
        private var serial: UInt16 = 0

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            packetLength = Int.random(in: 27...60, using: &random)
            packetCount = Int.random(in: 1...6, using: &random)
            sender = LinkSender(packetLength: packetLength, packetCount: packetCount)
        }

        private func index(of handle: UInt16) -> Int? { links.firstIndex { $0.handle == handle } }

        mutating func open() {
            guard links.count < 4 else { return }
            serial += 1
            links.append(Link(slot: sender.open(ConnectionHandle(serial)), handle: serial))
        }

        mutating func close() {
            guard let index = links.indices.randomElement(using: &random) else { return }
            let link = links.remove(at: index)
            sender.close(link.slot)
            stale.append(link.slot)
        }

        mutating func enqueue() {
            guard let index = links.indices.randomElement(using: &random) else { return }
            let kind = FrameKind(rawValue: Int.random(in: 0..<7, using: &random)) ?? .value
            let count = Int.random(in: 1...150, using: &random)
            var buffer = sender.takeBuffer()
            #expect(buffer.isEmpty)
            for _ in 0..<count {
                nextByte &+= 1
                buffer.append(nextByte)
            }
            let header: [UInt8] = [UInt8(count), 0, 4, 0]
            let frame = header + [UInt8](copying: buffer.bytes)
            if Bool.random(using: &random) {
                let isSent = sender.beginAtOnce(&buffer, on: .attribute, of: links[index].slot)
                if isSent {
                    sentAtOnce([UInt8](copying: buffer.bytes), frame, on: index)
                    return sender.recycle(buffer)
                }
            }
            links[index].frames.append((frame, kind))
            sender.enqueue(buffer, kind, on: .attribute, of: links[index].slot)
        }

        private mutating func sentAtOnce(_ packet: [UInt8], _ frame: [UInt8], on index: Int) {
            let link = links[index]
            #expect(link.frames.isEmpty)
            #expect(frame.count <= packetLength)
            #expect(packet == [2, UInt8(link.handle), 0, UInt8(frame.count), 0] + frame)
            // The last buffer is for links that hold none.
            if links.count > 1, packetCount > 1, link.held > 0 { #expect(sender.credits > 0) }
            links[index].held += 1
        }

        /// Takes a packet, sometimes changes the links while it is in flight, and returns it.
        mutating func send() {
            let before = sender.credits
            guard let packet = sender.nextPacket() else {
                #expect(sender.credits == before)
                return
            }
            #expect(before > 0)
            let bytes = packet.copiedBytes
            let handle = UInt16(bytes[1]) | UInt16(bytes[2] & 0x0F) << 8
            let isContinuing = bytes[2] & 0x30 == 0x10
            #expect(bytes[0] == 0x02)
            #expect(Int(bytes[3]) == bytes.count - 5)
            #expect(bytes.count - 5 <= packetLength)
            guard let index = index(of: handle) else {
                Issue.record("a packet of a closed link")
                return
            }
            #expect(isContinuing == !links[index].received.isEmpty)
            links[index].held += 1
            links[index].received += bytes.dropFirst(5)
            let expected = links[index].frames.first
            let isWhole = links[index].received.count == expected?.bytes.count
            let slot = links[index].slot
            check()
            if Int.random(in: 0..<4, using: &random) == 0 { change() }
            let outcome = sender.sent(packet)
            guard let index = self.index(of: handle) else {
                #expect(outcome == nil)
                return
            }
            #expect(outcome == (isWhole ? slot : nil))
            if isWhole {
                #expect(links[index].received == expected?.bytes)
                links[index].frames.removeFirst()
                links[index].received = []
            }
        }

        mutating func complete() {
            guard let index = links.indices.randomElement(using: &random) else { return }
            let count = Int.random(in: 0...3, using: &random)
            links[index].held = max(0, links[index].held - count)
            let isDrained = sender.completed(count, on: links[index].slot)
            // The front of a queue may be in flight, so this is certain only for a slot that is not drained.
            if links[index].held > 0 { #expect(!isDrained) }
        }

        mutating func useStaleSlot() {
            guard let slot = stale.randomElement(using: &random) else { return }
            switch Int.random(in: 0..<3, using: &random) {
            case 0: sender.close(slot)
            case 1: #expect(sender.completed(2, on: slot) == false)
            default: sender.enqueue(PacketBuffer(), .value, on: .attribute, of: slot)
            }
            #expect(sender.handle(of: slot) == nil)
            #expect(sender.room(slot) == 0)
        }

        /// Makes a change that is also possible while a packet is in flight.
        mutating func change() {
            switch Int.random(in: 0..<20, using: &random) {
            case 0, 1: open()
            case 2: close()
            case 3: useStaleSlot()
            case 4..<12: enqueue()
            default: complete()
            }
        }

        func check() {
            let held = links.reduce(0) { $0 + $1.held }
            #expect(sender.credits + held == packetCount)
            #expect(sender.packetsInController == held)
            for link in links {
                #expect(sender.packetsInController(link.slot) == link.held)
                for kind in 0..<7 {
                    guard let kind = FrameKind(rawValue: kind) else { continue }
                    #expect(sender.unsent(kind, link.slot) == link.unsent(kind))
                }
                #expect(sender.room(link.slot) == max(0, 16 - link.unsent(.value) - link.unsent(.request)))
                #expect(sender.channelRoom(link.slot) == max(0, 8 - link.unsent(.channel)))
            }
        }

        /// Sends and completes everything.
        mutating func drain() {
            for _ in 0..<10_000 {
                while sender.hasPacket {
                    let before = sender.credits
                    send()
                    if sender.credits == before { break }
                }
                for index in links.indices {
                    links[index].held = 0
                    _ = sender.completed(packetCount, on: links[index].slot)
                }
                if links.allSatisfy({ $0.frames.isEmpty }), !sender.hasPacket { break }
            }
            for link in links {
                #expect(link.frames.isEmpty)
                #expect(sender.isDrained(link.slot) == true)
                #expect(sender.frameCount(link.slot) == 0)
            }
            #expect(sender.credits == packetCount)
        }
    }

    @Test("No credit is lost, and each frame is sent whole and in order", arguments: 1...40)
    func noCreditIsLost(seed: UInt64) {
        var model = Model(seed: seed)
        for _ in 0..<400 {
            if Int.random(in: 0..<3, using: &model.random) == 0 { model.send() } else { model.change() }
            model.check()
        }
        model.drain()
    }
}
