import BLEByteCoding
import BLECapture
import BLEHCI
import BluetoothTypes

extension Dissector {
    /// Updates the state of links, commands and devices from an event.
    func follow(
        _ event: borrowing Event,
        _ adapter: AdapterState,
        _ packet: inout PacketDescription
    ) throws(PacketDecodingError) {
        switch event {
        case .commandComplete(let complete):
            answered(complete.commandOpcode, complete.status, adapter, &packet)
            if complete.commandOpcode == Reset.opcode, complete.status == .success {
                for link in adapter.reset() { withSummary { $0.linkEnded(link.number, reason: nil, at: packet.time) } }
            }
        case .commandStatus(let status): answered(status.commandOpcode, status.status, adapter, &packet)
        case .leConnectionComplete(let complete):
            connected(complete.status, complete.connectionHandle, complete.role, complete.peerAddress, adapter, &packet)
        case .leEnhancedConnectionComplete(let complete):
            connected(complete.status, complete.connectionHandle, complete.role, complete.peerAddress, adapter, &packet)
        case .leEnhancedConnectionCompleteV2(let complete):
            connected(complete.status, complete.connectionHandle, complete.role, complete.peerAddress, adapter, &packet)
        case .disconnectionComplete(let complete):
            packet.link = adapter.link(complete.connectionHandle.rawValue)?.reference
            guard complete.status == .success else { return }
            if let link = adapter.close(complete.connectionHandle.rawValue) {
                withSummary { $0.linkEnded(link.number, reason: complete.reason, at: packet.time) }
            }
        case .leAdvertisingReport(let event):
            guard summary != nil else { return }
            var reports = event.reports
            while let report = try reports.next() {
                withSummary { $0.noteReport(report.address, rssi: report.rssi, report.data) }
            }
        case .leExtendedAdvertisingReport(let event):
            guard summary != nil else { return }
            var reports = event.reports
            while let report = try reports.next() {
                withSummary { $0.noteReport(report.address, rssi: report.rssi, report.data) }
            }
        default:
            if let handle = event.connectionHandle { packet.link = adapter.link(handle.rawValue)?.reference }
        }
    }

    private func answered(
        _ opcode: HCIOpcode,
        _ status: HCIErrorCode?,
        _ adapter: AdapterState,
        _ packet: inout PacketDescription
    ) {
        if let status, status != .success {
            withSummary { $0.noteError("\(status)", in: opcode.title) }
        }
        guard let command = adapter.answer(opcode.rawValue) else { return }
        let time = packet.time &- command.time
        packet.answered = .init(index: command.index, microseconds: time)
        withSummary { $0.commandTook(opcode.rawValue, microseconds: time) }
    }

    private func connected(
        _ status: HCIErrorCode,
        _ handle: ConnectionHandle,
        _ role: Role,
        _ peer: PeerAddress,
        _ adapter: AdapterState,
        _ packet: inout PacketDescription
    ) {
        guard status == .success else {
            withSummary { $0.noteError("\(status)", in: "LE Connection Complete") }
            return
        }
        let reference = PeerReference(address: peer.value, type: peer.type.rawValue)
        packet.link =
            openLink(adapter, handle: handle.rawValue, peer: reference, isCentral: role == .central, at: packet.time)
            .reference
    }

    /// Handles a BR/EDR Connection Complete. Frames of BR/EDR links are reassembled too.
    func followClassic(
        _ parameters: RawSpan,
        _ adapter: AdapterState,
        _ packet: inout PacketDescription
    ) {
        var reader = ByteReader(parameters)
        guard let status = try? reader.readUInt8(), status == 0, let handle = try? reader.readUInt16(),
            let address = try? reader.readUInt48(), let type = try? reader.readUInt8(), type == 1
        else { return }
        let peer = PeerReference(address: address, type: nil)
        packet.link =
            openLink(adapter, handle: handle & 0x0FFF, peer: peer, isCentral: nil, at: packet.time).reference
    }

    /// Sets the packet's link for a command whose first parameter is a connection handle.
    func noteLink(
        ofCommand opcode: HCIOpcode,
        _ parameters: RawSpan,
        _ adapter: AdapterState,
        _ packet: inout PacketDescription
    ) {
        guard CommandLayouts.parameters[opcode.rawValue]?.beginsWithConnectionHandle == true else { return }
        var reader = ByteReader(parameters)
        guard let handle = try? reader.readUInt16() else { return }
        packet.link = adapter.link(handle & 0x0FFF)?.reference
    }
}

extension ParameterLayout {
    /// Whether the first parameter is a connection handle.
    fileprivate var beginsWithConnectionHandle: Bool {
        guard let first = parameters.first, case .handle = first.kind else { return false }
        return first.name.key == "connectionHandle"
    }
}

extension Event {
    /// The link of the event; nil for an event about several links or none.
    fileprivate var connectionHandle: ConnectionHandle? {
        switch self {
        case .encryptionChange(let event): event.connectionHandle
        case .encryptionChangeV2(let event): event.connectionHandle
        case .encryptionKeyRefreshComplete(let event): event.connectionHandle
        case .authenticatedPayloadTimeoutExpired(let event): event.connectionHandle
        case .readRemoteVersionInformationComplete(let event): event.connectionHandle
        case .leConnectionUpdateComplete(let event): event.connectionHandle
        case .leReadRemoteFeaturesComplete(let event): event.connectionHandle
        case .leLongTermKeyRequest(let event): event.connectionHandle
        case .leRemoteConnectionParameterRequest(let event): event.connectionHandle
        case .leDataLengthChange(let event): event.connectionHandle
        case .lePHYUpdateComplete(let event): event.connectionHandle
        case .leChannelSelectionAlgorithm(let event): event.connectionHandle
        case .leSubrateChange(let event): event.connectionHandle
        case .leReadAllRemoteFeaturesComplete(let event): event.connectionHandle
        case .leFrameSpaceUpdateComplete(let event): event.connectionHandle
        case .lePathLossThreshold(let event): event.connectionHandle
        case .leTransmitPowerReporting(let event): event.connectionHandle
        case .lePeriodicAdvertisingSyncTransferReceived(let event): event.connectionHandle
        case .lePeriodicAdvertisingSyncTransferReceivedV2(let event): event.connectionHandle
        case .leCSReadRemoteSupportedCapabilitiesComplete(let event): event.connectionHandle
        case .leCSReadRemoteFAETableComplete(let event): event.connectionHandle
        case .leCSSecurityEnableComplete(let event): event.connectionHandle
        case .leCSConfigComplete(let event): event.connectionHandle
        case .leCSProcedureEnableComplete(let event): event.connectionHandle
        case .leCSSubeventResult(let event): ConnectionHandle(rawValue: event.connectionHandle)
        case .leCSSubeventResultContinue(let event): ConnectionHandle(rawValue: event.connectionHandle)
        default: nil
        }
    }
}
