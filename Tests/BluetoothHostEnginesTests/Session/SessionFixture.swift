import BLEByteCoding
import BLEHCI
import BluetoothTypes

@testable import BluetoothHost

/// A ``ControllerSession``, and a controller that answers as a test says.
struct SessionFixture: ~Copyable {
    /// The properties of the controller.
    struct Profile {
        var commands = SessionFixture.allCommands
        var features: LEFeatures = [.llPrivacy, .dataPacketLengthExtension, .extendedAdvertising]
        var lmpFeatures: LMPFeatures = []
        var publicAddress = SessionFixture.publicAddress
        /// The number of ACL buffers that are only for LE.
        var leBuffers: UInt8 = 8
        /// The features of the host.
        var hostFeatures: LEFeatures = []

        static let least = Profile(commands: SupportedCommands(), features: [], lmpFeatures: .brEdrNotSupported)
    }

    static let start = Instant(nanoseconds: 1_000_000_000_000)
    static let call = CallToken(index: 7, generation: 1)
    static let publicAddress = DeviceAddress(0x0011_2233_4455, isRandom: false)
    static let identity = DeviceAddress(0xC000_0000_00A1, isRandom: true)

    /// The commands of a bring-up whose steps are all needed, in their order.
    static let steps: [(step: BringUpStep, opcode: HCIOpcode)] = [
        (.reset, Reset.opcode), (.readVersion, ReadLocalVersionInformation.opcode),
        (.readSupportedCommands, ReadLocalSupportedCommands.opcode),
        (.readFeatures, ReadLocalSupportedFeatures.opcode), (.readLEFeatures, LEReadLocalSupportedFeatures.opcode),
        (.readAddress, ReadBDADDR.opcode), (.setEventMask, SetEventMask.opcode),
        (.setLEEventMask, LESetEventMask.opcode), (.enableLEHost, WriteLEHostSupport.opcode),
        (.readLEBuffersV2, LEReadBufferSizeV2.opcode), (.readClassicBuffers, ReadBufferSize.opcode),
        (.readStates, LEReadSupportedStates.opcode), (.readAcceptListSize, LEReadFilterAcceptListSize.opcode),
        (.readResolvingListSize, LEReadResolvingListSize.opcode),
        (.readDataLength, LEReadMaximumDataLength.opcode),
        (.suggestDataLength, LEWriteSuggestedDefaultDataLength.opcode),
        (.readAdvertisingSets, LEReadNumberOfSupportedAdvertisingSets.opcode),
        (.readAdvertisingDataLength, LEReadMaximumAdvertisingDataLength.opcode),
    ]

    static let allCommands: SupportedCommands = {
        var commands = SupportedCommands()
        for (_, opcode) in steps { commands.insert(opcode) }
        commands.insert(LESetExtendedAdvertisingParameters.self)
        commands.insert(LESetExtendedScanParameters.self)
        commands.insert(LEExtendedCreateConnection.self)
        return commands
    }()

    var session = ControllerSession(commandTimeout: .seconds(4), mayUseExtendedCommands: true)
    var now = SessionFixture.start
    var profile = Profile()

    init(_ profile: Profile = Profile()) {
        self.profile = profile
        session = ControllerSession(
            commandTimeout: .seconds(4),
            mayUseExtendedCommands: true,
            hostFeatures: profile.hostFeatures
        )
    }

    /// A session whose controller has just come up.
    static func on(_ profile: Profile = Profile()) -> SessionFixture {
        var fixture = SessionFixture(profile)
        _ = fixture.begin()
        _ = fixture.bringUp()
        return fixture
    }

    /// A first bring-up that has sent the command of a step.
    static func bringingUp(at step: BringUpStep, _ profile: Profile = Profile()) -> SessionFixture {
        var fixture = SessionFixture(profile)
        _ = fixture.begin()
        _ = fixture.bringUp(until: step)
        return fixture
    }

    /// The current step of the bring-up.
    var step: BringUpStep? {
        if case .bringingUp(let bringUp) = session.phase { bringUp.step } else { nil }
    }

    // MARK: Inputs

    /// Gives the session an ACL packet for a handle without a link.
    mutating func strayData(_ handle: ConnectionHandle, _ packet: [UInt8] = [1, 2, 3], at instant: Instant) -> Bool {
        session.strayData(handle, packet.rawSpan, at: instant)
    }

    /// Starts the session and opens the transport.
    mutating func begin() -> [SessionEffect] {
        session.start(SessionFixture.call) + session.transportOpened(at: now)
    }

    /// Answers each command of a bring-up with success, and does the steps of the caller.
    ///
    /// - Parameter end: the step whose command is not answered; nil for the whole bring-up.
    /// - Returns: all effects.
    mutating func bringUp(until end: BringUpStep? = nil) -> [SessionEffect] {
        var effects: [SessionEffect] = []
        while let step, step != end {
            switch step {
            case .loadBonds:
                effects += session.bondsLoaded(identity: SessionFixture.identity, obstacle: nil, at: now)
            case .prepareAddresses: effects += session.addressesPrepared(nil, at: now)
            default: effects += answer()
            }
        }
        return effects
    }

    /// Answers the command in flight with success.
    mutating func answer(credits: UInt8 = 1) -> [SessionEffect] {
        guard let opcode = session.commands.opcodeInFlight else { return [] }
        return answer(opcode, reply(to: opcode), credits: credits).effects
    }

    /// Answers a command.
    ///
    /// - Parameter reply: the status and the return parameters.
    /// - Returns: what the answer is for, and the effects.
    mutating func answer(
        _ opcode: HCIOpcode,
        _ reply: [UInt8],
        credits: UInt8 = 1,
        isStatus: Bool = false
    ) -> (tag: CommandTag?, effects: [SessionEffect]) {
        let isSuccessStatus = isStatus && reply.first == 0
        let tag = session.answered(opcode, credits: credits, isSuccessStatus: isSuccessStatus)
        var effects: [SessionEffect] = []
        if let tag { effects += session.receive(reply.rawSpan, for: tag, at: now) }
        return (tag, effects + session.sendNext(at: now))
    }

    mutating func advance(by duration: Duration) -> [SessionEffect] {
        now = now + duration
        return session.advance(to: now)
    }

    // MARK: Answers

    /// The answer of a controller that succeeds.
    func reply(to opcode: HCIOpcode) -> [UInt8] {
        switch opcode {
        case ReadLocalVersionInformation.opcode:
            SessionFixture.success(
                ReadLocalVersionInformation.self,
                .init(hciVersion: .v54, hciSubversion: 1, lmpVersion: .v54, companyIdentifier: 0x05F1, lmpSubversion: 2)
            )
        case ReadLocalSupportedCommands.opcode:
            SessionFixture.success(ReadLocalSupportedCommands.self, .init(supportedCommands: profile.commands))
        case ReadLocalSupportedFeatures.opcode:
            SessionFixture.success(ReadLocalSupportedFeatures.self, .init(lmpFeatures: profile.lmpFeatures))
        case LEReadLocalSupportedFeatures.opcode:
            SessionFixture.success(LEReadLocalSupportedFeatures.self, .init(leFeatures: profile.features))
        case ReadBDADDR.opcode: SessionFixture.success(ReadBDADDR.self, .init(bdADDR: profile.publicAddress))
        default: capacities(opcode)
        }
    }

    private func capacities(_ opcode: HCIOpcode) -> [UInt8] {
        switch opcode {
        case LEReadBufferSizeV2.opcode:
            SessionFixture.success(
                LEReadBufferSizeV2.self,
                .init(leACLDataPacketLength: 251, totalNumLEACLDataPackets: profile.leBuffers)
            )
        case LEReadBufferSize.opcode:
            SessionFixture.success(
                LEReadBufferSize.self,
                .init(leACLDataPacketLength: 20, totalNumLEACLDataPackets: profile.leBuffers)
            )
        case ReadBufferSize.opcode:
            SessionFixture.success(
                ReadBufferSize.self,
                .init(
                    aclDataPacketLength: 310,
                    synchronousDataPacketLength: 0,
                    totalNumACLDataPackets: 300,
                    totalNumSynchronousDataPackets: 0
                )
            )
        case LEReadSupportedStates.opcode:
            SessionFixture.success(LEReadSupportedStates.self, .init(leStates: 0x03FF))
        case LEReadFilterAcceptListSize.opcode:
            SessionFixture.success(LEReadFilterAcceptListSize.self, .init(filterAcceptListSize: 9))
        case LEReadResolvingListSize.opcode:
            SessionFixture.success(LEReadResolvingListSize.self, .init(resolvingListSize: 10))
        case LEReadMaximumDataLength.opcode:
            SessionFixture.success(
                LEReadMaximumDataLength.self,
                .init(
                    supportedMaxTXOctets: 251,
                    supportedMaxTXTime: 2120,
                    supportedMaxRXOctets: 251,
                    supportedMaxRXTime: 2120
                )
            )
        case LEReadNumberOfSupportedAdvertisingSets.opcode:
            SessionFixture.success(
                LEReadNumberOfSupportedAdvertisingSets.self,
                .init(numSupportedAdvertisingSets: 11)
            )
        case LEReadMaximumAdvertisingDataLength.opcode:
            SessionFixture.success(LEReadMaximumAdvertisingDataLength.self, .init(maxAdvertisingDataLength: 1650))
        default: [0]
        }
    }

    private static func success<C: Command>(_ command: C.Type, _ parameters: C.ReturnParameters) -> [UInt8] {
        PacketBuffer.bytes {
            $0.append(UInt8(0))
            parameters.encodeAfterStatus(into: &$0)
        }
    }

    // MARK: Commands

    static func packet(_ command: some Command) -> [UInt8] { CommandRequest(command, .unawaited).packet }

    /// A command of a caller.
    static func request(_ command: some Command, by caller: UInt32) -> CommandRequest {
        CommandRequest(command, tag(caller))
    }

    static func request(by caller: UInt32) -> CommandRequest {
        request(ReadRSSI(connectionHandle: 0x0040), by: caller)
    }

    static func tag(_ caller: UInt32) -> CommandTag { .caller(SlotToken(index: caller, generation: 0)) }
}

extension [SessionEffect] {
    /// The commands that were sent.
    var sent: [HCIOpcode] {
        compactMap {
            guard case .send(let packet) = $0 else { return nil }
            return HCIOpcode(rawValue: UInt16(packet[1]) | UInt16(packet[2]) << 8)
        }
    }
}
