import BLE
import BluetoothTesting

// L2CAP channels between stations. The first byte after the number of a value is random, so the app of the server
// decides.
extension Station {
    /// The values on channels.
    static let channel: BluetoothUUID = "5C3A0007-0000-4000-8000-00805F9B34FB"

    /// The service of a station that receives channels.
    struct ChannelService: Sendable {
        /// The service that returns each value.
        let echo: ChannelListener
        /// The service that only receives.
        let sink: ChannelListener
    }

    /// Publishes the services of channels.
    func publishChannels(_ dice: Dice) async throws -> ChannelService {
        let mtu = UInt16(dice.number(in: 23...600))
        let configuration = L2CAPChannel.Configuration(
            mtu: mtu,
            mps: UInt16(dice.number(in: 23...Int(mtu))),
            receiveByteCapacity: dice.number(in: 100...4000),
            sendByteCapacity: dice.number(in: 100...4000)
        )
        return ChannelService(
            echo: try await adapter.peripheral.publishChannel(configuration: configuration),
            sink: try await adapter.peripheral.publishChannel(configuration: configuration)
        )
    }

    /// Serves the channels that peers open, until the task is cancelled.
    func serveChannels(_ service: ChannelService, _ world: World, _ dice: Dice) async {
        await withTaskGroup(of: Void.self) { group in
            for (listener, isEcho) in [(service.echo, true), (service.sink, false)] {
                group.addTask { [dice = dice.split()] in
                    await withDiscardingTaskGroup { channels in
                        for await channel in listener {
                            channels.addTask { [self, dice = dice.split()] in
                                await serve(channel, isEcho: isEcho, world, dice)
                            }
                        }
                        // Only the end of the world's life ends the listener, and the channels with it.
                        channels.cancelAll()
                    }
                }
            }
        }
        await service.echo.close()
        await service.sink.close()
    }

    private func serve(_ channel: L2CAPChannel, isEcho: Bool, _ world: World, _ dice: Dice) async {
        let isSlow = dice.chance(0.3)
        var receipt = Ledger.ChannelReceipt()
        do throws(BLEError) {
            for try await value in channel {
                ledger.expectNext(value, in: &receipt, where: "\(name), from a channel")
                if isSlow { try? await world.sleep(for: .milliseconds(dice.number(in: 0...100))) }
                if isEcho { try await channel.write(value) }
            }
        } catch {
            return ledger.check(error, of: "\(name), from a channel")
        }
        guard await channel.ending() == .byPeer else { return }
        ledger.count("channels that the peer has closed")
        ledger.expectAll(in: receipt, where: "\(name), from a channel")
    }
}

extension CentralTask.Visit {
    private static let channelBound = Duration.seconds(150)

    /// Opens `count` channels and uses them at the same time.
    func useChannels(_ count: Int, _ dice: Dice) async {
        guard let service = target.channels else { return }
        let isEcho = dice.chance(0.5)
        let psm = isEcho ? service.echo.psm : service.sink.psm
        let mtu = UInt16(dice.number(in: 23...600))
        let configuration = L2CAPChannel.Configuration(mtu: mtu, mps: UInt16(dice.number(in: 23...Int(mtu))))
        let opened = await ledger.operation("\(names): open \(count) channels", within: Self.channelBound) {
            if count > 1 { return await peer.openChannels(count, psm: psm, configuration: configuration) }
            return [.success(try await peer.openChannel(psm: psm, configuration: configuration))]
        }
        await withTaskGroup(of: Void.self) { group in
            for case .success(let channel) in opened ?? [] {
                group.addTask { [dice = dice.split()] in
                    await endingIfDataIsLost { await use(channel, isEcho: isEcho, dice) }
                }
            }
        }
    }

    /// Performs the work on a channel. Cancels it after some time if a controller has lost data of links: values,
    /// credits or the end of the link may then never arrive.
    private func endingIfDataIsLost(_ body: @escaping @Sendable () async -> Void) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask(operation: body)
            group.addTask { [world = task.world, ledger] in
                while !Task.isCancelled {
                    try? await world.sleep(for: Self.channelBound / 3)
                    if ledger.losesData { return }
                }
            }
            await group.next()
            group.cancelAll()
        }
    }

    private func use(_ channel: L2CAPChannel, isEcho: Bool, _ dice: Dice) async {
        ledger.count("channels opened")
        let number = ledger.makeChannel()
        let longest = min(await channel.maximumWriteLength, isEcho ? 23 : 600)
        guard longest >= 4 else { return }
        let count = dice.number(in: 1...40)
        let isComplete = await withTaskGroup(of: Bool.self) { group in
            if isEcho { group.addTask { await receive(count, from: channel) } }
            group.addTask { await write(count, upTo: longest, to: channel, number, dice) }
            return await group.allSatisfy { $0 }
        }
        guard isComplete, dice.chance(0.9) else { return await channel.close() }
        ledger.finish(channel: number)
        _ = await ledger.operation("\(names): finish a channel", within: Self.channelBound) { await channel.finish() }
    }

    private func write(
        _ count: Int,
        upTo longest: Int,
        to channel: L2CAPChannel,
        _ number: Int,
        _ dice: Dice
    ) async -> Bool {
        for _ in 0..<count {
            let value = ledger.makeValue(onChannel: number, length: dice.number(in: 4...longest))
            let done: Void? = await ledger.operation("\(names): write to a channel", within: Self.channelBound) {
                try await channel.write(value)
            }
            if done == nil { return false }
        }
        return true
    }

    /// Receives the values that the peer returns. Nil is the end before the last of them.
    private func receive(_ count: Int, from channel: L2CAPChannel) async -> Bool {
        let received = await ledger.operation("\(names): receive from a channel", within: Self.channelBound) {
            var receipt = Ledger.ChannelReceipt()
            var values = channel.makeAsyncIterator()
            while receipt.count < count, let value = try await values.next() {
                ledger.expectNext(value, in: &receipt, where: names)
            }
            return receipt.count == count
        }
        return received ?? false
    }
}
