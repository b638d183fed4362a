import BLE
import BluetoothTesting
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Channels of the backends in simulated worlds")
struct ChannelBackendTests {
    /// Reads until `count` bytes have arrived, without a run loop.
    private func read(_ count: Int, from input: InputStream, in world: World) async throws -> [UInt8] {
        var octets: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while octets.count < count {
            guard input.hasBytesAvailable else {
                try await world.sleep(for: .milliseconds(10))
                continue
            }
            let length = input.read(&buffer, maxLength: buffer.count)
            octets += buffer.prefix(length)
        }
        return octets
    }

    /// Opens a channel from the phone to the lamp, and all its streams.
    private func openChannel(_ pair: LampAndPhone) async throws -> (near: ChannelStreams, far: ChannelStreams) {
        let peripheral = await pair.connect()
        let psm = try await outcome { pair.lamp.backend.publishChannel(requiresEncryption: false, $0) }.get()
        let near = try await outcome { pair.phone.backend.openChannel(psm, to: peripheral, $0) }.get()
        let far = try await pair.lamp.events.next { event in
            if case .channelOpened(_, psm, let result) = event { result } else { nil }
        }.get()
        for stream in [near.input, near.output, far.input, far.output] as [Stream] { stream.open() }
        return (near, far)
    }

    /// Writes the received bytes back, each piece before the next one is read.
    ///
    /// - Parameter rest: the bytes that are not written yet.
    /// - Returns: the number of bytes that were read.
    private func echo(_ rest: inout [UInt8], on streams: ChannelStreams) -> Int {
        var count = 0
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            while !rest.isEmpty {
                guard streams.output.hasSpaceAvailable else { return count }
                let written = streams.output.write(rest, maxLength: rest.count)
                rest.removeFirst(written)
            }
            guard streams.input.hasBytesAvailable else { return count }
            let length = streams.input.read(&buffer, maxLength: buffer.count)
            rest = Array(buffer.prefix(length))
            count += length
        }
    }

    @Test("A channel to a published PSM transfers bytes both ways, until one side closes its streams")
    func channelTransfersBytesBothWaysUntilItIsClosed() throws {
        try World.run(seed: 48) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let (phone, lamp) = (pair.phone.backend, pair.lamp.backend)
            let psm = try await outcome { lamp.publishChannel(requiresEncryption: false, $0) }.get()
            #expect((0x80...0xFF).contains(psm))
            let near = try await outcome { phone.openChannel(psm, to: peripheral, $0) }.get()
            let far = try await pair.lamp.events.next { event in
                if case .channelOpened(_, psm, let result) = event { result } else { nil }
            }.get()
            for stream in [near.input, near.output, far.input, far.output] as [Stream] { stream.open() }
            let question = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            #expect(near.output.write(question, maxLength: question.count) == question.count)
            #expect(try await read(question.count, from: far.input, in: world) == question)
            #expect(far.output.write([1, 2, 3], maxLength: 3) == 3)
            far.input.close()
            far.output.close()
            #expect(try await read(3, from: near.input, in: world) == [1, 2, 3])
            try await world.sleep(for: .seconds(1))
            #expect(near.input.streamStatus == .atEnd && near.output.streamStatus == .atEnd)
        }
    }

    @Test("An app that does not read stops its peer, and a lost link is an error of both streams")
    func appThatDoesNotReadStopsItsPeer() throws {
        try World.run(seed: 49) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let (phone, lamp) = (pair.phone.backend, pair.lamp.backend)
            let psm = try await outcome { lamp.publishChannel(requiresEncryption: false, $0) }.get()
            let near = try await outcome { phone.openChannel(psm, to: peripheral, $0) }.get()
            let far = try await pair.lamp.events.next { event in
                if case .channelOpened(_, psm, let result) = event { result } else { nil }
            }.get()
            for stream in [near.input, near.output, far.input, far.output] as [Stream] { stream.open() }
            let piece = [UInt8](repeating: 5, count: 1000)
            var taken = 0
            for _ in 0..<1000 {
                while near.output.hasSpaceAvailable { taken += near.output.write(piece, maxLength: piece.count) }
                try await world.sleep(for: .milliseconds(50))
            }
            #expect((50_000..<200_000).contains(taken), "\(taken) bytes were taken")
            pair.lampDevice.device.vanish()
            try await world.sleep(for: .seconds(10))
            #expect(near.output.streamStatus == .error && near.input.streamStatus == .error)
            #expect((near.output.streamError as? CBError)?.code == .connectionTimeout)
        }
    }

    @Test("A channel whose streams are closed ends, although the peer does not read")
    func closedChannelEndsAlthoughThePeerDoesNotRead() throws {
        try World.run(seed: 52) { world in
            let pair = try await LampAndPhone(world)
            let (near, far) = try await openChannel(pair)
            let piece = [UInt8](repeating: 5, count: 1000)
            for _ in 0..<1000 {
                while near.output.hasSpaceAvailable { _ = near.output.write(piece, maxLength: piece.count) }
                try await world.sleep(for: .milliseconds(50))
            }
            near.input.close()
            near.output.close()
            try await world.sleep(for: .seconds(20))
            #expect(await pair.phoneDevice.adapter.host.inspect().channels == 1)
            try await world.sleep(for: .seconds(80))
            #expect(await pair.phoneDevice.adapter.host.inspect().channels == 0)
            #expect(await pair.lampDevice.adapter.host.inspect().channels == 0)
            #expect(far.output.streamStatus == .atEnd)
            var buffer = [UInt8](repeating: 0, count: 4096)
            while far.input.hasBytesAvailable { _ = far.input.read(&buffer, maxLength: buffer.count) }
            #expect(far.input.streamStatus == .atEnd)
        }
    }

    @Test("A closed channel sends everything to a peer that answers before it reads on")
    func closedChannelSendsEverythingToAnEchoingPeer() throws {
        try World.run(seed: 53) { world in
            let pair = try await LampAndPhone(world)
            let (near, far) = try await openChannel(pair)
            let piece = [UInt8](repeating: 5, count: 1000)
            var (written, read) = (0, 0)
            var rest: [UInt8] = []
            for _ in 0..<1000 {
                while near.output.hasSpaceAvailable { written += near.output.write(piece, maxLength: piece.count) }
                read += echo(&rest, on: far)
                try await world.sleep(for: .milliseconds(50))
            }
            // Neither side can send any more.
            #expect(read < written && !rest.isEmpty)
            near.input.close()
            near.output.close()
            for _ in 0..<10_000 where far.output.streamStatus == .open {
                read += echo(&rest, on: far)
                try await world.sleep(for: .milliseconds(50))
            }
            var buffer = [UInt8](repeating: 0, count: 4096)
            while far.input.hasBytesAvailable { read += far.input.read(&buffer, maxLength: buffer.count) }
            #expect(read == written)
            // The answer to the request to disconnect is on its way.
            try await world.sleep(for: .seconds(1))
            #expect(await pair.phoneDevice.adapter.host.inspect().channels == 0)
        }
    }

    @Test("A write that fills the buffer exactly leaves no space until the peer has taken some")
    func writeThatFillsTheBufferLeavesNoSpace() throws {
        try World.run(seed: 51) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let (phone, lamp) = (pair.phone.backend, pair.lamp.backend)
            let psm = try await outcome { lamp.publishChannel(requiresEncryption: false, $0) }.get()
            let near = try await outcome { phone.openChannel(psm, to: peripheral, $0) }.get()
            let far = try await pair.lamp.events.next { event in
                if case .channelOpened(_, psm, let result) = event { result } else { nil }
            }.get()
            for stream in [near.input, near.output, far.input, far.output] as [Stream] { stream.open() }
            let piece = [UInt8](repeating: 5, count: 1024)
            // The loop takes nothing from the buffer during this code, which runs on it.
            for _ in 1...16 { #expect(near.output.write(piece, maxLength: piece.count) == piece.count) }
            #expect(!near.output.hasSpaceAvailable)
            try await world.sleep(for: .seconds(5))
            #expect(near.output.hasSpaceAvailable)
        }
    }

    @Test("An unpublished PSM, and one that needs encryption, is refused")
    func unpublishedOrSecurePSMIsRefused() throws {
        try World.run(seed: 50) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let (phone, lamp) = (pair.phone.backend, pair.lamp.backend)
            let failure = await outcome { phone.openChannel(0x80, to: peripheral, $0) }.failure
            #expect(failure == .core(.operationNotSupported))
            let secret = try await outcome { lamp.publishChannel(requiresEncryption: true, $0) }.get()
            let refusal = await outcome { phone.openChannel(secret, to: peripheral, $0) }.failure
            #expect(refusal == .attribute(.insufficientAuthentication))
            try await outcome { lamp.unpublishChannel(secret, $0) }.get()
            #expect(await outcome { lamp.unpublishChannel(secret, $0) }.failure == .core(.invalidParameters))
        }
    }
}
