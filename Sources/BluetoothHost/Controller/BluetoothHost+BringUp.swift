import BluetoothTypes
import HCI

extension BluetoothHost {
    /// Resets the controller, reads its properties and prepares it (Vol 6, Part D, 2).
    ///
    /// Sends only commands that the controller lists as supported, and those that every LE controller must support.
    ///
    /// - Throws: ``HostError/controllerFailed(_:)`` if the connection to the controller was lost, or if the controller
    ///   reported an error after its reset. An error may erase the controller's settings, such as the event masks, so
    ///   it has to be reset again.
    func bringUp() async throws(HostError) {
        bringUpPhase = .resetting
        let information: ControllerInformation
        do throws(CommandFailure) {
            information = try await readInformation()
        } catch {
            if let obstacle = stateObstacle { throw .stateUnavailable(obstacle) }
            if case .failed(let reason) = bringUpPhase { throw .controllerFailed(reason) }
            throw .command(error)
        }
        if case .failed(let reason) = bringUpPhase { throw .controllerFailed(reason) }
        self.information = information
    }

    /// Records that the controller failed during bring-up. The bring-up then fails with the command in flight, or at
    /// its end.
    func bringUpFailed(_ reason: String, isTransportLost: Bool) {
        guard bringUpPhase == .preparing || isTransportLost else { return }
        logger.warning("controller failed while it was brought up: \(reason)")
        bringUpPhase = .failed(reason)
        abortCommands()
    }

    /// Resets the controller. Errors that it reports after its answer belong to this bring-up.
    private func reset() async throws(CommandFailure) {
        typealias Outcome = Result<Reset.ReturnParameters, CommandFailure>
        endInput()
        _ = try await withCheckedContinuation { (continuation: CheckedContinuation<Outcome, Never>) in
            send(Reset()) { [weak self] result in
                // This is not done after the call, because the next packet can arrive before the task resumes.
                if case .success = result { self?.assumeIsolated { $0.bringUpPhase = .preparing } }
                continuation.resume(returning: result)
            }
        }.get()
    }

    private func readInformation() async throws(CommandFailure) -> ControllerInformation {
        try await reset()
        let version = try await perform(ReadLocalVersionInformation())
        let commands = try await perform(ReadLocalSupportedCommands()).supportedCommands
        let lmpFeatures = try await perform(ReadLocalSupportedFeatures()).lmpFeatures
        let features = try await perform(LEReadLocalSupportedFeatures()).leFeatures
        let address = try await optional(ReadBDADDR(), in: commands)?.bdADDR
        // If the answer cannot be read this time, the host keeps its identity.
        let publicAddress =
            address.flatMap { $0.value == 0 || $0.value == 0xFFFF_FFFF_FFFF ? nil : $0 }
            ?? self.information?.publicAddress

        await loadBonds(of: publicAddress)
        if stateObstacle != nil { throw .aborted }
        var information = ControllerInformation(
            publicAddress: publicAddress,
            identityAddress: chooseIdentity(publicAddress: publicAddress),
            manufacturer: CompanyIdentifier(rawValue: version.companyIdentifier),
            commands: commands
        )
        information.hciVersion = version.hciVersion.rawValue
        information.hciSubversion = version.hciSubversion
        information.lmpVersion = version.lmpVersion.rawValue
        information.lmpSubversion = version.lmpSubversion
        information.features = features
        information.usesExtendedCommands =
            configuration.usesExtendedCommands && features.contains(.extendedAdvertising)
            && commands.contains(LESetExtendedAdvertisingParameters.self)
            && commands.contains(LESetExtendedScanParameters.self)
            && commands.contains(LEExtendedCreateConnection.self)

        try await setEventMasks(information)
        if !lmpFeatures.contains(.brEdrNotSupported) {
            _ = try await optional(WriteLEHostSupport(leSupportedHost: true), in: commands)
        }
        try await readBuffers(into: &information)
        try await readCapacities(into: &information)
        try await prepareAddresses(information)
        sender.configure(packetLength: information.aclDataLength, packetCount: information.aclPacketCount)
        return information
    }

    /// The reason why the host must not be brought up; nil if there is none.
    private var stateObstacle: String? { configuration.requiresState ? stateProblem : nil }

    /// Reads the stored state of the host on this controller, at the first bring-up.
    private func loadBonds(of publicAddress: DeviceAddress?) async {
        if !bonds.isLoaded, let store = configuration.bondStore {
            bonds.load(await store.load(for: publicAddress))
            stateProblem = store.problem
            if let stateProblem {
                emit(HostEvent.stateUnavailable(reason: stateProblem))
                endInput()
            }
            // In that case a new identity must not overwrite an earlier one.
            if stateObstacle != nil { return }
        }
        perform(bonds.begin())
    }

    /// Sends a command that the controller may not support; nil if the controller lacks or refuses it.
    private func optional<C: Command>(
        _ command: C,
        in commands: SupportedCommands
    ) async throws(CommandFailure) -> C.ReturnParameters? {
        guard commands.contains(C.self) else { return nil }
        do throws(CommandFailure) {
            return try await perform(command)
        } catch .aborted {
            throw .aborted
        } catch {
            logger.info("an optional command failed: \(error)")
            return nil
        }
    }

    /// The identity address, which stays the same during the host's life, also after resets.
    private func chooseIdentity(publicAddress: DeviceAddress?) -> DeviceAddress {
        if let address = configuration.identityAddress ?? publicAddress { return address }
        return bonds.identity.staticAddress
    }

    private func setEventMasks(_ information: ControllerInformation) async throws(CommandFailure) {
        try await perform(
            SetEventMask(eventMask: [
                .disconnectionComplete, .encryptionChange, .readRemoteVersionInformationComplete, .hardwareError,
                .dataBufferOverflow, .encryptionKeyRefreshComplete, .leMeta,
            ])
        )
        var mask: LEEventMask = [
            .connectionComplete, .advertisingReport, .connectionUpdateComplete, .readRemoteFeaturesComplete,
            .longTermKeyRequest,
        ]
        let features = information.features
        if features.contains(.connectionParametersRequestProcedure) { mask.insert(.remoteConnectionParameterRequest) }
        if features.contains(.dataPacketLengthExtension) { mask.insert(.dataLengthChange) }
        if features.contains(.llPrivacy) { mask.insert([.enhancedConnectionComplete, .directedAdvertisingReport]) }
        if features.contains(.le2MPHY) || features.contains(.leCodedPHY) { mask.insert(.phyUpdateComplete) }
        if information.usesExtendedCommands {
            mask.insert([
                .enhancedConnectionComplete, .extendedAdvertisingReport, .scanTimeout, .advertisingSetTerminated,
            ])
        }
        if features.contains(.channelSelectionAlgorithm2) { mask.insert(.channelSelectionAlgorithm) }
        try await perform(LESetEventMask(leEventMask: mask))
    }

    /// Reads the LE buffers, or those of BR/EDR if LE reports none (Vol 4, Part E, 7.8.2).
    private func readBuffers(into information: inout ControllerInformation) async throws(CommandFailure) {
        var length = 0
        var count = 0
        if let buffers = try await optional(LEReadBufferSizeV2(), in: information.commands) {
            length = Int(buffers.leACLDataPacketLength)
            count = Int(buffers.totalNumLEACLDataPackets)
        } else {
            let buffers = try await perform(LEReadBufferSize())
            length = Int(buffers.leACLDataPacketLength)
            count = Int(buffers.totalNumLEACLDataPackets)
        }
        if length == 0 || count == 0 {
            let buffers = try await perform(ReadBufferSize())
            length = Int(buffers.aclDataPacketLength)
            count = Int(buffers.totalNumACLDataPackets)
            information.sharesClassicBuffers = true
        }
        // 27 bytes is the minimum that the specification allows (Vol 4, Part E, 7.8.2).
        information.aclDataLength = max(length, 27)
        information.aclPacketCount = max(count, 1)
    }

    private func readCapacities(into information: inout ControllerInformation) async throws(CommandFailure) {
        let commands = information.commands
        information.supportedStates = try await optional(LEReadSupportedStates(), in: commands)?.leStates ?? 0
        if let size = try await optional(LEReadFilterAcceptListSize(), in: commands) {
            information.filterAcceptListSize = Int(size.filterAcceptListSize)
        }
        if information.features.contains(.llPrivacy),
            let size = try await optional(LEReadResolvingListSize(), in: commands)
        {
            information.resolvingListSize = Int(size.resolvingListSize)
        }
        if information.features.contains(.dataPacketLengthExtension) {
            if let lengths = try await optional(LEReadMaximumDataLength(), in: commands) {
                information.maximumTransmitOctets = lengths.supportedMaxTXOctets
                information.maximumTransmitTime = lengths.supportedMaxTXTime
                _ = try await optional(
                    LEWriteSuggestedDefaultDataLength(
                        suggestedMaxTXOctets: lengths.supportedMaxTXOctets,
                        suggestedMaxTXTime: lengths.supportedMaxTXTime
                    ),
                    in: commands
                )
            }
        }
        if information.usesExtendedCommands {
            if let sets = try await optional(LEReadNumberOfSupportedAdvertisingSets(), in: commands) {
                information.numberOfAdvertisingSets = max(1, Int(sets.numSupportedAdvertisingSets))
            }
            if let length = try await optional(LEReadMaximumAdvertisingDataLength(), in: commands) {
                information.maximumAdvertisingDataLength = max(31, Int(length.maxAdvertisingDataLength))
            }
        }
    }
}
