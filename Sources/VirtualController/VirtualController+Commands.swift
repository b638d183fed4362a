import BluetoothTypes
import ByteCoding
import HCI

extension VirtualController {
    /// What the controller has.
    static let supportedCommands: SupportedCommands = {
        var commands = SupportedCommands()
        commands.insert(Reset.self)
        commands.insert(SetEventMask.self)
        commands.insert(Disconnect.self)
        commands.insert(ReadLocalVersionInformation.self)
        commands.insert(ReadLocalSupportedFeatures.self)
        commands.insert(ReadBDADDR.self)
        commands.insert(ReadRSSI.self)
        commands.insert(LESetEventMask.self)
        commands.insert(LEReadBufferSize.self)
        commands.insert(LEReadLocalSupportedFeatures.self)
        commands.insert(LESetRandomAddress.self)
        commands.insert(LESetAdvertisingParameters.self)
        commands.insert(LESetAdvertisingData.self)
        commands.insert(LESetScanResponseData.self)
        commands.insert(LESetAdvertisingEnable.self)
        commands.insert(LESetScanParameters.self)
        commands.insert(LESetScanEnable.self)
        commands.insert(LECreateConnection.self)
        commands.insert(LECreateConnectionCancel.self)
        commands.insert(LEReadFilterAcceptListSize.self)
        commands.insert(LEClearFilterAcceptList.self)
        commands.insert(LEAddDeviceToFilterAcceptList.self)
        commands.insert(LERemoveDeviceFromFilterAcceptList.self)
        commands.insert(LEConnectionUpdate.self)
        commands.insert(LERand.self)
        commands.insert(LEReadSupportedStates.self)
        return commands
    }()

    func process(_ command: borrowing CommandPacket) {
        do throws(PacketDecodingError) {
            try dispatch(command)
        } catch {
            fail(command.opcode, .invalidHCICommandParameters)
        }
    }

    /// Answers with a status alone, as a controller does that does not carry a command out.
    private func fail(_ opcode: Opcode, _ error: ErrorCode) {
        let parameters = [error.rawValue]
        sendEvent {
            CommandComplete(commandOpcode: opcode, returnParameters: parameters.rawSpan).encodePacket(into: &$0)
        }
    }

    private func succeed(_ opcode: Opcode, _ result: ErrorCode = .success) {
        fail(opcode, result)
    }

    private func dispatch(_ command: borrowing CommandPacket) throws(PacketDecodingError) {
        switch command.opcode {
        case Reset.opcode:
            forgetEverything(reason: .connectionTimeout)
            succeed(command.opcode)
        case SetEventMask.opcode:
            eventMask = try command.decode(SetEventMask.self).eventMask
            succeed(command.opcode)
        case LESetEventMask.opcode:
            leEventMask = try command.decode(LESetEventMask.self).leEventMask
            succeed(command.opcode)
        case LESetRandomAddress.opcode:
            randomAddress = try command.decode(LESetRandomAddress.self).randomAddress
            succeed(command.opcode)
        case LERand.opcode: complete(LERand.self, .success(.init(randomNumber: nextRandom())))
        default:
            if answerInformation(command.opcode) { return }
            if try processAdvertising(command) { return }
            if try processScanning(command) { return }
            if try processConnection(command) { return }
            fail(command.opcode, .unknownHCICommand)
        }
    }

    private func answerInformation(_ opcode: Opcode) -> Bool {
        switch opcode {
        case ReadLocalVersionInformation.opcode:
            complete(
                ReadLocalVersionInformation.self,
                .success(
                    .init(
                        hciVersion: .v42,
                        hciSubversion: 0,
                        lmpVersion: .v42,
                        companyIdentifier: 0xFFFF,
                        lmpSubversion: 0
                    )
                )
            )
        case ReadLocalSupportedCommands.opcode:
            complete(
                ReadLocalSupportedCommands.self,
                .success(.init(supportedCommands: VirtualController.supportedCommands))
            )
        case ReadLocalSupportedFeatures.opcode:
            complete(
                ReadLocalSupportedFeatures.self,
                .success(.init(lmpFeatures: [.brEdrNotSupported, .leSupportedController]))
            )
        case LEReadLocalSupportedFeatures.opcode:
            complete(LEReadLocalSupportedFeatures.self, .success(.init(leFeatures: [])))
        case ReadBDADDR.opcode: complete(ReadBDADDR.self, .success(.init(bdADDR: configuration.address)))
        case LEReadBufferSize.opcode:
            complete(
                LEReadBufferSize.self,
                .success(
                    .init(
                        leACLDataPacketLength: configuration.aclDataLength,
                        totalNumLEACLDataPackets: configuration.aclPacketCount
                    )
                )
            )
        case LEReadFilterAcceptListSize.opcode:
            complete(
                LEReadFilterAcceptListSize.self,
                .success(.init(filterAcceptListSize: configuration.filterAcceptListSize))
            )
        case LEReadSupportedStates.opcode:
            // All combinations of the states of Bluetooth 4.2.
            complete(LEReadSupportedStates.self, .success(.init(leStates: 0x0000_03FF_FFFF_FFFF)))
        default: return false
        }
        return true
    }

    private func processAdvertising(_ command: borrowing CommandPacket) throws(PacketDecodingError) -> Bool {
        switch command.opcode {
        case LESetAdvertisingParameters.opcode:
            let parameters = try command.decode(LESetAdvertisingParameters.self)
            guard !advertiser.isEnabled else {
                fail(command.opcode, .commandDisallowed)
                return true
            }
            advertiser.parameters = parameters
            succeed(command.opcode)
        case LESetAdvertisingData.opcode:
            advertiser.data = try command.decode(LESetAdvertisingData.self).advertisingData.bytes
            succeed(command.opcode)
        case LESetScanResponseData.opcode:
            advertiser.scanResponse = try command.decode(LESetScanResponseData.self).scanResponseData.bytes
            succeed(command.opcode)
        case LESetAdvertisingEnable.opcode:
            let isEnabled = try command.decode(LESetAdvertisingEnable.self).advertisingEnable
            succeed(command.opcode, setAdvertising(isEnabled))
        default: return false
        }
        return true
    }

    private func processScanning(_ command: borrowing CommandPacket) throws(PacketDecodingError) -> Bool {
        switch command.opcode {
        case LESetScanParameters.opcode:
            let parameters = try command.decode(LESetScanParameters.self)
            if scanner.isEnabled {
                fail(command.opcode, .commandDisallowed)
            } else {
                scanner.parameters = parameters
                succeed(command.opcode)
            }
        case LESetScanEnable.opcode:
            let enable = try command.decode(LESetScanEnable.self)
            scanner.isEnabled = enable.leScanEnable
            scanner.filtersDuplicates = enable.filterDuplicates
            scanner.reported = []
            succeed(command.opcode)
        case LEClearFilterAcceptList.opcode:
            acceptList = []
            succeed(command.opcode)
        case LEAddDeviceToFilterAcceptList.opcode:
            let address = try command.decode(LEAddDeviceToFilterAcceptList.self).address
            let hasRoom = acceptList.contains(address) || acceptList.count < Int(configuration.filterAcceptListSize)
            if hasRoom { acceptList.insert(address) }
            succeed(command.opcode, hasRoom ? .success : .memoryCapacityExceeded)
        case LERemoveDeviceFromFilterAcceptList.opcode:
            acceptList.remove(try command.decode(LERemoveDeviceFromFilterAcceptList.self).address)
            succeed(command.opcode)
        default: return false
        }
        return true
    }

    private func processConnection(_ command: borrowing CommandPacket) throws(PacketDecodingError) -> Bool {
        switch command.opcode {
        case LECreateConnection.opcode:
            let create = try command.decode(LECreateConnection.self)
            guard initiator == nil else {
                status(command.opcode, .commandDisallowed)
                return true
            }
            status(command.opcode)
            initiator = InitiatingState(command: create)
        case LECreateConnectionCancel.opcode:
            guard initiator != nil else {
                fail(command.opcode, .commandDisallowed)
                return true
            }
            initiator = nil
            succeed(command.opcode)
            sendConnectionComplete(status: .unknownConnectionIdentifier)
        case Disconnect.opcode:
            let disconnect = try command.decode(Disconnect.self)
            guard let link = links[disconnect.connectionHandle] else {
                status(command.opcode, .unknownConnectionIdentifier)
                return true
            }
            status(command.opcode)
            link.close(by: self, reason: disconnect.reason)
        case ReadRSSI.opcode:
            let handle = try command.decode(ReadRSSI.self).connectionHandle
            complete(
                ReadRSSI.self,
                links[handle] == nil
                    ? .failure(.unknownConnectionIdentifier)
                    : .success(.init(connectionHandle: handle, rssi: configuration.rssi))
            )
        case LEConnectionUpdate.opcode:
            let update = try command.decode(LEConnectionUpdate.self)
            guard let link = links[update.connectionHandle] else {
                status(command.opcode, .unknownConnectionIdentifier)
                return true
            }
            status(command.opcode)
            link.update(update)
        default: return false
        }
        return true
    }
}
