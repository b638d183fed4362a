import BLEByteCoding
import BLEHCI
import BLEHCITransport
import BLEL2CAP
import BluetoothTypes

extension BluetoothHost {
    /// Handles one packet from the controller. The packet starts with its H4 indicator.
    func receive(_ packet: RawSpan, generation: UInt64) {
        checkTransportCallback()
        guard port.accepts(generation) else { return }
        metrics.packetsReceived.increment()
        switch packet[checked: 0].flatMap(PacketType.init(rawValue:)) {
        case .event: receiveEvent(packet.extracting(droppingFirst: 1))
        case .acl: receiveACL(packet.extracting(droppingFirst: 1))
        case .iso: receiveISO(packet.extracting(droppingFirst: 1))
        case .synchronous: break  // Links of a kind that this host never makes.
        case .command, nil:
            countMalformed("HCI packet", .invalidValue(UInt64(packet[checked: 0] ?? 0), field: "indicator"))
        }
        endInput()
    }

    func countMalformed(_ what: String, _ error: PacketDecodingError) {
        metrics.malformed.increment()
        logger.debug("malformed \(what): \(error)")
    }

    /// Handles an ACL packet without its H4 indicator.
    func receiveACL(_ bytes: RawSpan) {
        do throws(PacketDecodingError) {
            let packet = try ACLPacket(decoding: bytes)
            guard let link = links[packet.header.connectionHandle] else {
                return receivedStray(bytes, of: packet.header.connectionHandle)
            }
            receive(
                packet.payload,
                on: link,
                isStart: packet.header.packetBoundaryFlag != .continuing
            )
        } catch {
            countMalformed("ACL packet", error)
        }
    }

    private func receiveEvent(_ packet: RawSpan) {
        do throws(PacketDecodingError) {
            try dispatch(try Event(decoding: packet))
        } catch {
            countMalformed("event", error)
        }
    }

    private func dispatch(_ event: borrowing Event) throws(PacketDecodingError) {
        switch event {
        case .numberOfCompletedPackets(let event):
            var completions = event.completions
            while let completion = completions.next() {
                guard let link = links[completion.connectionHandle] else {
                    streamPacketsCompleted(completion)
                    continue
                }
                // A controller may report more than it had.
                let count = min(Int(completion.numCompletedPackets), sender.packetsInController(link.slot))
                _ = sender.completed(count, on: link.slot)
                if !link.att.drains.isEmpty { packetsSent(count, of: link) }
            }
            metrics.aclCredits.record(sender.credits)
        case .leAdvertisingReport(let event): try receive(event)
        case .leExtendedAdvertisingReport(let event): try receive(event)
        case .commandComplete(let event): receive(event)
        case .commandStatus(let event): receive(event)
        case .leConnectionComplete(let event): connectionCompleted(NewConnection(event))
        case .leEnhancedConnectionComplete(let event): connectionCompleted(NewConnection(enhanced: event))
        case .leEnhancedConnectionCompleteV2(let event):
            var connection = NewConnection(enhanced: event)
            connection.isFromReceivedTrain = event.syncHandle != 0xFFFF
            connectionCompleted(connection)
        case .disconnectionComplete(let event): disconnected(event)
        case .leConnectionUpdateComplete(let event): connectionUpdated(event)
        case .leRemoteConnectionParameterRequest(let event): parametersRequested(event)
        case .leReadRemoteFeaturesComplete(let event): remoteFeaturesRead(event)
        case .leDataLengthChange(let event): dataLengthChanged(event)
        case .lePHYUpdateComplete(let event): phyUpdated(event)
        case .leSubrateChange(let event): subrateChanged(event)
        case .leTransmitPowerReporting(let event): transmitPowerReported(event)
        case .lePathLossThreshold(let event): pathLossReported(event)
        case .leAdvertisingSetTerminated(let event): advertisingSetTerminated(event)
        case .leScanTimeout: perform(gap.scanEndedByController(gapContext))
        case .lePeriodicAdvertisingReport(let event): receive(event)
        case .lePeriodicAdvertisingReportV2(let event): receive(event)
        case .lePeriodicAdvertisingSyncEstablished(let event):
            perform(gap.synchronizationEstablished(.init(event), gapContext))
        case .lePeriodicAdvertisingSyncEstablishedV2(let event):
            perform(gap.synchronizationEstablished(event, gapContext))
        case .lePeriodicAdvertisingSubeventDataRequest(let event): perform(gap.subeventDataRequested(event, gapContext))
        case .lePeriodicAdvertisingResponseReport(let event): try receive(event)
        case .lePeriodicAdvertisingSyncLost(let event): perform(gap.synchronizationLost(event.syncHandle, gapContext))
        case .leLongTermKeyRequest(let event): longTermKeyRequested(event)
        case .encryptionChange(let event):
            encryptionChanged(event.connectionHandle, event.status, isOn: event.encryptionEnabled != .off)
        case .encryptionChangeV2(let event):
            encryptionChanged(event.connectionHandle, event.status, isOn: event.encryptionEnabled != .off)
        case .encryptionKeyRefreshComplete(let event):
            encryptionChanged(event.connectionHandle, event.status, isOn: true)
        case .authenticatedPayloadTimeoutExpired(let event): authenticatedPayloadTimedOut(event.connectionHandle)
        case .hardwareError(let event):
            controllerFailed("hardware error \(event.hardwareCode)")
        case .dataBufferOverflow:
            // The host sent no more packets than the controller has buffers. So the controller has miscounted its
            // buffers.
            controllerFailed("its buffers have overflowed")
        case .leCISEstablished(let event): perform(isochronous.established(.init(event)))
        case .leCISEstablishedV2(let event): perform(isochronous.established(event))
        case .leCISRequest(let event): streamRequested(event)
        case .lePeriodicAdvertisingSyncTransferReceived(let event): syncTransferReceived(.init(event))
        case .lePeriodicAdvertisingSyncTransferReceivedV2(let event): syncTransferReceived(event)
        case .leCreateBIGComplete(let event): perform(isochronous.created(event))
        case .leTerminateBIGComplete(let event): perform(isochronous.terminated(event))
        case .leBIGSyncEstablished(let event): perform(isochronous.synchronized(event))
        case .leBIGSyncLost(let event): perform(isochronous.lost(event))
        case .leBIGInfoAdvertisingReport(let event): receive(event)
        case .readRemoteVersionInformationComplete, .leReadLocalP256PublicKeyComplete,
            .leGenerateDHKeyComplete, .leDirectedAdvertisingReport, .leScanRequestReceived,
            .leChannelSelectionAlgorithm, .leReadAllRemoteFeaturesComplete, .leMonitoredAdvertisersReport,
            .leFrameSpaceUpdateComplete:
            break
        case .leCSReadRemoteFAETableComplete, .leCSTestEndComplete: break
        case .leCSReadRemoteSupportedCapabilitiesComplete(let event):
            soundingChanged(event.connectionHandle) { $0.received(event, at: $1) }
        case .leCSSecurityEnableComplete(let event):
            soundingChanged(event.connectionHandle) { $0.received(event, at: $1) }
        case .leCSConfigComplete(let event): soundingChanged(event.connectionHandle) { $0.received(event, at: $1) }
        case .leCSProcedureEnableComplete(let event):
            soundingChanged(event.connectionHandle) { $0.received(event, at: $1) }
        case .leCSSubeventResult(let event): receive(event)
        case .leCSSubeventResultContinue(let event): receive(event)
        case .unknown(let code, let subeventCode, _):
            logger.debug("unknown event \(code), subevent \(subeventCode.map(String.init) ?? "none")")
        }
    }
}
