import BLEHCI
import BluetoothTypes

/// A step of a bring-up. The steps are done in this order (Vol 6, Part D, 2).
enum BringUpStep: Int, CaseIterable {
    case reset
    case readVersion
    case readSupportedCommands
    case readFeatures
    case readLEFeatures
    case readAddress
    /// Not a command: the caller reads the stored state of the host on this controller.
    case loadBonds
    case setEventMask
    case setLEEventMask
    /// Done once for each feature of ``ControllerInformation/hostFeatures``.
    case setHostFeature
    case enableLEHost
    case readLEBuffersV2
    case readLEBuffers
    case readClassicBuffers
    case readStates
    case readAcceptListSize
    case readResolvingListSize
    case readDataLength
    case suggestDataLength
    case readAdvertisingSets
    case readAdvertisingDataLength
    /// Not a command: the caller sets up the addresses in the controller.
    case prepareAddresses

    /// Whether the controller may lack the command, or refuse it.
    var isOptional: Bool {
        switch self {
        case .reset, .readVersion, .readSupportedCommands, .readFeatures, .readLEFeatures, .loadBonds, .setEventMask,
            .setLEEventMask, .readLEBuffers, .readClassicBuffers, .prepareAddresses:
            false
        case .readAddress, .setHostFeature, .enableLEHost, .readLEBuffersV2, .readStates, .readAcceptListSize,
            .readResolvingListSize, .readDataLength, .suggestDataLength, .readAdvertisingSets,
            .readAdvertisingDataLength:
            true
        }
    }

    /// Whether the step is done by the caller of the session rather than by a command.
    var isByCaller: Bool { self == .loadBonds || self == .prepareAddresses }
}

/// One attempt to reset a controller, to read its properties and to prepare it.
///
/// Only commands are sent that the controller lists as supported, and those that every LE controller must support.
struct BringUp {
    /// What a step needs.
    enum Action: Equatable {
        case send(CommandRequest)
        /// Read the stored state of the host on the controller with this public address.
        case loadBonds(DeviceAddress?)
        case prepareAddresses(ControllerInformation)
    }

    private struct Buffers {
        var length: Int
        var count: Int
    }

    private(set) var step = BringUpStep.reset
    /// The controller's properties, as far as they are known.
    private(set) var information: ControllerInformation
    /// The description of a failure that occurred during a step of the caller. The bring-up fails when that step ends.
    var failure: String?
    private let mayUseExtendedCommands: Bool
    private var lmpFeatures: LMPFeatures = []
    private var buffers: Buffers?
    private var dataLength: LEReadMaximumDataLength.ReturnParameters?
    /// The bits of the host's features that the controller has not been told.
    private var hostFeatures: [UInt8] = []

    /// - Parameters:
    ///   - publicAddress: the controller's public address at an earlier bring-up. If the answer cannot be read this
    ///     time, the host keeps its identity.
    ///   - mayUseExtendedCommands: whether extended advertising, scanning and initiating are used if the controller
    ///     supports them.
    ///   - hostFeatures: the features of the host that the controller is told of if it supports them.
    init(publicAddress: DeviceAddress?, mayUseExtendedCommands: Bool, hostFeatures: LEFeatures) {
        information = ControllerInformation(
            publicAddress: publicAddress,
            identityAddress: DeviceAddress(0, isRandom: false),
            manufacturer: CompanyIdentifier(rawValue: 0),
            commands: SupportedCommands()
        )
        self.mayUseExtendedCommands = mayUseExtendedCommands
        information.wantedHostFeatures = hostFeatures
    }

    /// The action of the current step; nil if the step is skipped.
    var action: Action? {
        switch step {
        case .loadBonds: return .loadBonds(information.publicAddress)
        case .prepareAddresses: return .prepareAddresses(information)
        default:
            guard let request, !step.isOptional || information.commands.contains(request.opcode) else { return nil }
            return .send(request)
        }
    }

    /// Moves to the next step that is not skipped, or repeats a step for the next feature.
    ///
    /// - Returns: nil after the last step.
    mutating func proceed() -> Action? {
        if step == .setHostFeature, !hostFeatures.isEmpty {
            hostFeatures.removeFirst()
            if let action { return action }
        }
        while let next = BringUpStep(rawValue: step.rawValue + 1) {
            step = next
            if let action { return action }
        }
        return nil
    }

    // MARK: Commands

    /// The command of the current step; nil if the controller needs none.
    private var request: CommandRequest? {
        switch step {
        case .reset: request(Reset())
        case .readVersion: request(ReadLocalVersionInformation())
        case .readSupportedCommands: request(ReadLocalSupportedCommands())
        case .readFeatures: request(ReadLocalSupportedFeatures())
        case .readLEFeatures: request(LEReadLocalSupportedFeatures())
        case .readAddress: request(ReadBDADDR())
        case .setEventMask: request(SetEventMask(eventMask: BringUp.eventMask))
        case .setLEEventMask: request(LESetEventMask(leEventMask: information.initialLEEvents))
        case .setHostFeature: hostFeatures.first.map { request(LESetHostFeature(bitNumber: $0, bitValue: true)) }
        case .enableLEHost:
            lmpFeatures.contains(.brEdrNotSupported) ? nil : request(WriteLEHostSupport(leSupportedHost: true))
        case .readLEBuffersV2: request(LEReadBufferSizeV2())
        case .readLEBuffers: buffers == nil ? request(LEReadBufferSize()) : nil
        case .readClassicBuffers: needsClassicBuffers ? request(ReadBufferSize()) : nil
        case .readStates: request(LEReadSupportedStates())
        case .readAcceptListSize: request(LEReadFilterAcceptListSize())
        case .readResolvingListSize:
            information.features.contains(.llPrivacy) ? request(LEReadResolvingListSize()) : nil
        case .readDataLength:
            information.features.contains(.dataPacketLengthExtension) ? request(LEReadMaximumDataLength()) : nil
        case .suggestDataLength:
            dataLength.map {
                request(
                    LEWriteSuggestedDefaultDataLength(
                        suggestedMaxTXOctets: $0.supportedMaxTXOctets,
                        suggestedMaxTXTime: $0.supportedMaxTXTime
                    )
                )
            }
        case .readAdvertisingSets:
            information.usesExtendedCommands ? request(LEReadNumberOfSupportedAdvertisingSets()) : nil
        case .readAdvertisingDataLength:
            information.usesExtendedCommands ? request(LEReadMaximumAdvertisingDataLength()) : nil
        case .loadBonds, .prepareAddresses: nil
        }
    }

    private func request(_ command: some Command) -> CommandRequest {
        CommandRequest(command, .bringUp(step))
    }

    private static let eventMask: EventMask = [
        .disconnectionComplete, .encryptionChange, .readRemoteVersionInformationComplete, .hardwareError,
        .dataBufferOverflow, .encryptionKeyRefreshComplete, .leMeta,
    ]

    /// Whether the LE links share the buffers of BR/EDR, because LE reports none (Vol 4, Part E, 7.8.2).
    private var needsClassicBuffers: Bool { buffers.map { $0.length == 0 || $0.count == 0 } ?? true }

    // MARK: Answers

    /// Takes over the answer to the current step's command.
    ///
    /// - Parameter reply: the status and the return parameters that follow it.
    mutating func receive(_ reply: RawSpan) throws(CommandFailure) {
        switch step {
        case .reset: _ = try Reset.decodeReply(reply)
        case .readVersion: setVersion(try ReadLocalVersionInformation.decodeReply(reply))
        case .readSupportedCommands:
            information.commands = try ReadLocalSupportedCommands.decodeReply(reply).supportedCommands
        case .readFeatures: lmpFeatures = try ReadLocalSupportedFeatures.decodeReply(reply).lmpFeatures
        case .readLEFeatures: setFeatures(try LEReadLocalSupportedFeatures.decodeReply(reply).leFeatures)
        case .readAddress: setAddress(try ReadBDADDR.decodeReply(reply).bdADDR)
        case .setEventMask: _ = try SetEventMask.decodeReply(reply)
        case .setLEEventMask:
            _ = try LESetEventMask.decodeReply(reply)
            information.leEvents = information.initialLEEvents
        case .setHostFeature:
            _ = try LESetHostFeature.decodeReply(reply)
            if let bit = hostFeatures.first { information.enabledHostFeatures.insert(LEFeatures(rawValue: 1 << bit)) }
        case .enableLEHost: _ = try WriteLEHostSupport.decodeReply(reply)
        case .readLEBuffersV2:
            let sizes = try LEReadBufferSizeV2.decodeReply(reply)
            setBuffers(length: sizes.leACLDataPacketLength, count: UInt16(sizes.totalNumLEACLDataPackets))
            information.isoDataLength = Int(sizes.isoDataPacketLength)
            information.isoPacketCount = Int(sizes.totalNumISODataPackets)
        case .readLEBuffers:
            let sizes = try LEReadBufferSize.decodeReply(reply)
            setBuffers(length: sizes.leACLDataPacketLength, count: UInt16(sizes.totalNumLEACLDataPackets))
        case .readClassicBuffers:
            let sizes = try ReadBufferSize.decodeReply(reply)
            setBuffers(length: sizes.aclDataPacketLength, count: sizes.totalNumACLDataPackets)
            information.sharesClassicBuffers = true
        case .readStates: information.supportedStates = try LEReadSupportedStates.decodeReply(reply).leStates
        case .readAcceptListSize:
            let size = try LEReadFilterAcceptListSize.decodeReply(reply)
            information.filterAcceptListSize = Int(size.filterAcceptListSize)
        case .readResolvingListSize:
            information.resolvingListSize = Int(try LEReadResolvingListSize.decodeReply(reply).resolvingListSize)
        case .readDataLength: setDataLength(try LEReadMaximumDataLength.decodeReply(reply))
        case .suggestDataLength: _ = try LEWriteSuggestedDefaultDataLength.decodeReply(reply)
        case .readAdvertisingSets:
            let sets = try LEReadNumberOfSupportedAdvertisingSets.decodeReply(reply)
            information.numberOfAdvertisingSets = max(1, Int(sets.numSupportedAdvertisingSets))
        case .readAdvertisingDataLength:
            let length = try LEReadMaximumAdvertisingDataLength.decodeReply(reply)
            information.maximumAdvertisingDataLength = max(31, Int(length.maxAdvertisingDataLength))
        case .loadBonds, .prepareAddresses: break
        }
    }

    /// Sets the address that the host uses as its own.
    mutating func setIdentity(_ address: DeviceAddress) {
        information.identityAddress = address
    }

    private mutating func setVersion(_ version: ReadLocalVersionInformation.ReturnParameters) {
        information.manufacturer = CompanyIdentifier(rawValue: version.companyIdentifier)
        information.hciVersion = version.hciVersion.rawValue
        information.hciSubversion = version.hciSubversion
        information.lmpVersion = version.lmpVersion.rawValue
        information.lmpSubversion = version.lmpSubversion
    }

    private mutating func setFeatures(_ features: LEFeatures) {
        let commands = information.commands
        information.features = features
        let wanted = information.hostFeatures.rawValue
        hostFeatures = (0..<64).filter { wanted >> $0 & 1 == 1 }
        information.usesExtendedCommands =
            mayUseExtendedCommands && features.contains(.extendedAdvertising)
            && commands.contains(LESetExtendedAdvertisingParameters.self)
            && commands.contains(LESetExtendedScanParameters.self)
            && commands.contains(LEExtendedCreateConnection.self)
        guard information.usesExtendedCommands else { return }
        // The greatest length of the specification (Vol 4, Part E, 7.8.57), in case the controller refuses to tell its
        // own.
        information.maximumAdvertisingDataLength = 1650
    }

    private mutating func setAddress(_ address: DeviceAddress) {
        guard address.value != 0, address.value != 0xFFFF_FFFF_FFFF else { return }
        information.publicAddress = address
    }

    private mutating func setBuffers(length: UInt16, count: UInt16) {
        buffers = Buffers(length: Int(length), count: Int(count))
        // 27 bytes is the minimum that the specification allows (Vol 4, Part E, 7.8.2).
        information.aclDataLength = max(Int(length), 27)
        information.aclPacketCount = max(Int(count), 1)
    }

    private mutating func setDataLength(_ lengths: LEReadMaximumDataLength.ReturnParameters) {
        dataLength = lengths
        information.maximumTransmitOctets = lengths.supportedMaxTXOctets
        information.maximumTransmitTime = lengths.supportedMaxTXTime
    }
}
