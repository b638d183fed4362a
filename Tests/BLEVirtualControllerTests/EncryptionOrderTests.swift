import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

/// Encryption that starts while the peripheral has a procedure in progress (Vol 6, Part B, 5.1.3).
@Suite("Encryption of software controllers during other procedures")
struct EncryptionOrderTests {
    /// The requests of the peripheral's host, each with a procedure of the Link Layer.
    enum Request: String, CaseIterable, CustomTestStringConvertible {
        case dataLength
        case version
        case features
        case phy
        case parameters

        var testDescription: String { rawValue }

        func send(to index: Int, of world: World) -> HCIErrorCode? {
            switch self {
            case .dataLength:
                world.status(of: LESetDataLength(connectionHandle: 0x0040, txOctets: 100, txTime: 2120), to: index)
            case .version: world.status(of: ReadRemoteVersionInformation(connectionHandle: 0x0040), to: index)
            case .features: world.status(of: LEReadRemoteFeatures(connectionHandle: 0x0040), to: index)
            case .phy:
                world.status(
                    of: LESetPHY(
                        connectionHandle: 0x0040,
                        allPHYs: [],
                        txPHYs: .le2M,
                        rxPHYs: .le2M,
                        phyOptions: .noPreference
                    ),
                    to: index
                )
            case .parameters:
                world.status(
                    of: LEConnectionUpdate(
                        connectionHandle: 0x0040,
                        connectionIntervalMin: 40,
                        connectionIntervalMax: 80,
                        maxLatency: 0,
                        supervisionTimeout: 500
                    ),
                    to: index
                )
            }
        }
    }

    private let key: UInt128 = 0x4C68_3841_39F5_74D8_36BC_F34E_9DFB_01BF

    private func enable(_ link: LinkWorld) {
        let command = LEEnableEncryption(
            connectionHandle: 0x0040,
            randomNumber: 1,
            encryptedDiversifier: 2,
            longTermKey: key
        )
        #expect(link.world.status(of: command, to: 0) == .success)
    }

    private func isAsked(_ link: LinkWorld) -> Bool {
        !link.world.events(LELongTermKeyRequest.subeventCode, at: 1).isEmpty
    }

    /// Answers a key request as soon as it arrives, as a fast host does, and accepts other parameters.
    private func answer(_ link: LinkWorld) {
        #expect(link.run { isAsked(link) || isAskedForParameters(link) } != nil)
        grantParameters(link)
        #expect(link.run { isAsked(link) } != nil)
        let reply = LELongTermKeyRequestReply(connectionHandle: 0x0040, longTermKey: key)
        #expect(link.world.status(of: reply, to: 1) == .success)
        grantParameters(link)
        link.run(.seconds(3))
        grantParameters(link)
        link.run(.seconds(3))
    }

    private func isAskedForParameters(_ link: LinkWorld) -> Bool {
        !link.world.events(LERemoteConnectionParameterRequest.subeventCode, at: 0).isEmpty
    }

    private func grantParameters(_ link: LinkWorld) {
        guard isAskedForParameters(link) else { return }
        _ = link.world.status(
            of: LERemoteConnectionParameterRequestReply(
                connectionHandle: 0x0040,
                intervalMin: 40,
                intervalMax: 80,
                maxLatency: 0,
                timeout: 500
            ),
            to: 0
        )
    }

    private func expectEncrypted(_ link: LinkWorld, _ request: Request, isRefresh: Bool) {
        let started: [UInt8] =
            isRefresh ? [0x04, 0x30, 0x03, 0x00, 0x40, 0x00] : [0x04, 0x08, 0x04, 0x00, 0x40, 0x00, 0x01]
        for index in 0...1 {
            #expect(link.told(index).contains(started), "\(request), side \(index): \(link.told(index))")
            #expect(!link.told(index).contains { $0.starts(with: [0x04, 0x05]) }, "\(request): the link ended")
            link.send(.init(7, count: 20), from: index)
        }
        link.run(.seconds(1))
        for index in 0...1 { #expect(link.received(index).last == LinkWorld.Data(7, count: 20).bytes) }
        // Each host gets the end of its procedure, and both sides can start further ones.
        for index in 0...1 {
            #expect(link.world.controllers[index].end(LinkWorld.handle)?.procedure == nil)
            #expect(link.world.controllers[index].end(LinkWorld.handle)?.waiting.isEmpty == true)
        }
    }

    private func world(isPaced: Bool, isRefresh: Bool) -> LinkWorld {
        let link = LinkWorld(configure: { $0.pacesPackets = isPaced })
        if isRefresh {
            enable(link)
            answer(link)
            link.world.forget()
        }
        return link
    }

    @Test(
        "Encryption starts or is refreshed while a procedure of the peripheral is in progress",
        arguments: Request.allCases,
        [(true, false), (true, true), (false, false), (false, true)]
    )
    func encryptionStartsDuringAProcedureOfThePeripheral(request: Request, mode: (isPaced: Bool, isRefresh: Bool)) {
        let link = world(isPaced: mode.isPaced, isRefresh: mode.isRefresh)
        #expect(request.send(to: 1, of: link.world) == .success)
        enable(link)
        answer(link)
        expectEncrypted(link, request, isRefresh: mode.isRefresh)
    }

    @Test(
        "A procedure that the peripheral's host requests while encryption starts waits for it",
        arguments: Request.allCases,
        [(true, false), (true, true), (false, false), (false, true)]
    )
    func procedureRequestedWhileEncryptionStartsWaitsForIt(request: Request, mode: (isPaced: Bool, isRefresh: Bool)) {
        let link = world(isPaced: mode.isPaced, isRefresh: mode.isRefresh)
        enable(link)
        #expect(link.run { isAsked(link) } != nil)
        #expect(request.send(to: 1, of: link.world) == .success)
        answer(link)
        expectEncrypted(link, request, isRefresh: mode.isRefresh)
    }

    /// What the peripheral sends besides the procedures of ``Request``.
    enum Message: String, CaseIterable, CustomTestStringConvertible {
        case syncTransfer
        case powerChange
        case channelSounding

        var testDescription: String { rawValue }

        func send(in link: LinkWorld) {
            switch self {
            case .syncTransfer:
                link.world.succeed(
                    LEPeriodicAdvertisingSetInfoTransfer(
                        connectionHandle: 0x0040,
                        serviceData: 0,
                        advertisingHandle: 3
                    ),
                    at: 1
                )
            case .powerChange: link.peripheral.setTransmitPower(-4)
            case .channelSounding:
                link.world.succeed(LECSReadRemoteSupportedCapabilities(connectionHandle: 0x0040), at: 1)
            }
        }

        /// Whether the host that the message is for, or that has requested it, has its result.
        func hasArrived(in link: LinkWorld) -> Bool {
            let events =
                switch self {
                case .syncTransfer:
                    link.world.events(LEPeriodicAdvertisingSyncTransferReceivedV2.subeventCode, at: 0)
                case .powerChange: link.world.events(LETransmitPowerReporting.subeventCode, at: 0)
                case .channelSounding:
                    link.world.events(LECSReadRemoteSupportedCapabilitiesComplete.subeventCode, at: 1)
                }
            return !events.isEmpty
        }
    }

    /// A link whose peripheral can send each ``Message``, because its peer wants it.
    private func worldWithMessages() -> LinkWorld {
        let link = LinkWorld(
            configure: { $0.minimumTransmitPower = -20 },
            prepare: { world in
                for index in 0...1 { world.succeed(LESetHostFeature(bitNumber: 47, bitValue: true), at: index) }
                world.succeed(
                    ExtendedAdvertisingTests.parameters(),
                    LESetPeriodicAdvertisingParameters(
                        advertisingHandle: 3,
                        periodicAdvertisingIntervalMin: 80,
                        periodicAdvertisingIntervalMax: 80
                    ),
                    LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 3),
                    ExtendedAdvertisingTests.enable,
                    at: 1
                )
            }
        )
        link.world.succeed(
            LESetTransmitPowerReportingEnable(connectionHandle: 0x0040, localEnable: false, remoteEnable: true),
            LESetPeriodicAdvertisingSyncTransferParameters(
                connectionHandle: 0x0040,
                mode: .reportingEnabled,
                syncTimeout: 100
            ),
            at: 0
        )
        link.world.succeed(LEReadRemoteFeatures(connectionHandle: 0x0040), at: 1)
        link.run(.seconds(1))
        link.world.forget()
        return link
    }

    @Test("Other PDUs of the peripheral wait until encryption has started", arguments: Message.allCases)
    func messageDuringTheStartOfEncryptionWaitsForIt(message: Message) {
        let link = worldWithMessages()
        enable(link)
        #expect(link.run { isAsked(link) } != nil)
        let reply = LELongTermKeyRequestReply(connectionHandle: 0x0040, longTermKey: key)
        link.world.succeed(reply, at: 1)
        message.send(in: link)
        link.run(.seconds(2))
        for index in 0...1 {
            #expect(link.told(index).contains([0x04, 0x08, 0x04, 0x00, 0x40, 0x00, 0x01]))
            #expect(!link.told(index).contains { $0.starts(with: [0x04, 0x05]) }, "the link ended")
            #expect(link.world.controllers[index].end(LinkWorld.handle)?.procedure == nil)
        }
        #expect(message.hasArrived(in: link))
    }

    @Test("A disconnection does not wait for encryption that begins while it waits for data", arguments: 0...1)
    func disconnectionDoesNotWaitForEncryptionThatBeginsLater(index: Int) {
        let link = LinkWorld()
        for _ in 0..<8 { link.send(.init(0, count: 251), from: index) }
        link.world.succeed(Disconnect(connectionHandle: LinkWorld.handle), at: index)
        // The peripheral's host does not answer the request for a key.
        enable(link)
        link.run(.seconds(1))
        #expect(link.told(index).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x16])
        #expect(link.told(1 - index).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x13])
    }

    @Test("A procedure that waited for encryption runs if the host has no key")
    func waitingProcedureRunsIfTheHostHasNoKey() {
        let link = LinkWorld()
        enable(link)
        #expect(link.run { isAsked(link) } != nil)
        #expect(Request.version.send(to: 1, of: link.world) == .success)
        link.world.succeed(LELongTermKeyRequestNegativeReply(connectionHandle: 0x0040), at: 1)
        link.run(.seconds(1))
        #expect(link.told(1).contains { $0.starts(with: [0x04, 0x0C, 0x08, 0x00]) })
        #expect(link.told(0).contains([0x04, 0x08, 0x04, 0x06, 0x40, 0x00, 0x00]))
    }

    @Test("A central encrypts directly after connecting, while both sides negotiate the data length", arguments: 0...1)
    func encryptionStartsWhileTheDataLengthIsNegotiated(first: Int) {
        let link = LinkWorld(isEstablished: false)
        link.run(.zero)
        for index in [first, 1 - first] {
            #expect(Request.dataLength.send(to: index, of: link.world) == .success)
        }
        enable(link)
        answer(link)
        expectEncrypted(link, .dataLength, isRefresh: false)
    }
}
