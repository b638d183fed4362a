import BLEHCI
import BluetoothTypes

// The calls and events of advertising.
extension BluetoothHost {
    /// Starts an advertisement, which continues after connections and recoveries of the controller until it is stopped.
    ///
    /// - Throws: ``HostError/cancelled`` at once if the task is cancelled. The advertisement is then stopped, or never
    ///   starts.
    package func startAdvertising(
        _ configuration: AdvertisementConfiguration
    ) async throws(HostError) -> AdvertisementIdentifier {
        let identifier = AdvertisementIdentifier(value: observers.makeIdentifier())
        try await wait(for: .startOfAdvertisement(identifier)) { host, call in
            do throws(HostError) {
                try host.startAdvertising(identifier, configuration, for: call)
            } catch {
                host.end(call, .failure(error))
            }
        }
        return identifier
    }

    private func startAdvertising(
        _ identifier: AdvertisementIdentifier,
        _ configuration: AdvertisementConfiguration,
        for call: CallToken
    ) throws(HostError) {
        let information = try latestInformation()
        perform(try gap.startAdvertising(identifier, configuration, on: information, for: call, gapContext))
    }

    /// Replaces the data of an advertisement's periodic train from the next event on.
    package func setPeriodicData(
        _ data: AdvertisingData,
        of identifier: AdvertisementIdentifier
    ) throws(HostError) {
        let information = try latestInformation()
        perform(try gap.setPeriodicData(data, of: identifier, on: information, gapContext))
    }

    /// Stops an advertisement; connections made through it stay. Cancelling the task ends the wait; the advertisement
    /// is stopped nevertheless.
    package func stopAdvertising(_ identifier: AdvertisementIdentifier) async {
        beginStoppingAdvertising(identifier)
        _ = try? await wait(for: .endOfAdvertisement(identifier)) { host, call in
            if !host.gap.advertising.awaitEnd(of: identifier, call) { host.end(call, .success(())) }
        }
    }

    /// Stops an advertisement without waiting for the controller; connections made through it stay.
    package func beginStoppingAdvertising(_ identifier: AdvertisementIdentifier) {
        endAdvertisement(identifier)
        endInput()
    }

    func endAdvertisement(_ identifier: AdvertisementIdentifier) {
        perform(isochronous.advertisementEnded(identifier))
        perform(gap.stopAdvertising(identifier, gapContext))
    }

    // MARK: Events and addresses

    func advertisingSetTerminated(_ event: LEAdvertisingSetTerminated) {
        let connection = event.status == .success ? event.connectionHandle : nil
        perform(gap.advertisingSetEnded(event.advertisingHandle, by: connection, gapContext))
    }

    /// This host's address on a new connection.
    func ownAddress(of connection: NewConnection) -> DeviceAddress {
        guard let information else { return DeviceAddress(0, isRandom: false) }
        let isFromAdvertisement = connection.role == .peripheral && !connection.isFromReceivedTrain
        return gap.addressOfNewLink(connection.handle, isFromAdvertisement: isFromAdvertisement, information)
    }

    /// Whether a bonded peer that has a key for private addresses is received only under these (Vol 6, Part B, 4.7).
    package var usesNetworkPrivacy: Bool { configuration.privacyMode == .network }

    /// Handles the address that this host has on a link, because the peer has found an advertising set with it.
    func ownAddressKnown(_ handle: ConnectionHandle, _ address: DeviceAddress) {
        guard let link = links[handle] else { return gap.setAddress(address, ofComingLink: handle) }
        guard link.role == .peripheral, !link.facts.hasAddressOfController else { return }
        inform(link) { security, context in security.contextChanged(ownAddress: address, &context) }
    }
}
