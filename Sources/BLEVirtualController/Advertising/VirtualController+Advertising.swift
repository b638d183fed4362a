import BLEHCI
import BluetoothTypes

extension VirtualController {
    // MARK: Beginning and ending

    /// Advertises a set, and replaces advertising that is already enabled.
    ///
    /// - Parameters:
    ///   - duration: the duration of advertising; zero for no limit.
    ///   - maximumEvents: maximum number of events; zero for no limit.
    func startAdvertising(_ index: Int, duration: Duration = .zero, maximumEvents: UInt8 = 0) {
        stopAdvertising(index)
        let set = advertiser.sets[index]
        let handle = set.handle
        let number = advertiser.nextRun()
        advertiser.sets[index].run = AdvertisingSet.Run(
            number: number,
            maximumEvents: maximumEvents == 0 ? nil : Int(maximumEvents)
        )
        schedule(after: advertisingDelay(), on: set.eventTimer) { $0.advertise(handle, number) }
        if duration > .zero {
            schedule(after: duration, on: set.durationTimer) {
                $0.finishAdvertising(handle, number, .advertisingTimeout)
            }
        }
        if let train = set.train { startIfReady(train) }
    }

    /// Stops a set's advertising at the request of its host.
    func stopAdvertising(_ index: Int) {
        advertiser.sets[index].run = nil
        air.cancel(advertiser.sets[index].eventTimer)
        air.cancel(advertiser.sets[index].durationTimer)
    }

    /// Stops all advertising.
    func stopAdvertising() {
        for index in advertiser.sets.indices {
            stopAdvertising(index)
            if let train = advertiser.sets[index].train { stop(train) }
        }
    }

    /// Stops a set's advertising at its limit, and reports this to the host.
    private func finishAdvertising(_ handle: UInt8, _ number: UInt64, _ reason: HCIErrorCode) {
        guard let index = advertiser.index(of: handle), let run = advertiser.sets[index].run, run.number == number
        else {
            return
        }
        stopAdvertising(index)
        if advertiser.commands == .extended {
            tellTerminated(handle, reason, after: run)
        } else {
            tellNotConnected(reason, role: .peripheral)
        }
    }

    /// Stops a set's advertising after a connection.
    func advertisingHasConnected(_ advertisement: Advertisement, _ handle: ConnectionHandle) {
        guard let index = advertiser.index(of: advertisement.advertisingSet.handle),
            let run = advertiser.sets[index].run
        else {
            return
        }
        stopAdvertising(index)
        if advertiser.commands == .extended {
            tellTerminated(advertisement.advertisingSet.handle, .success, after: run, handle)
        }
    }

    private func tellTerminated(
        _ handle: UInt8,
        _ status: HCIErrorCode,
        after run: AdvertisingSet.Run,
        _ connectionHandle: ConnectionHandle = 0
    ) {
        tellLE(
            LEAdvertisingSetTerminated(
                status: status,
                advertisingHandle: handle,
                connectionHandle: connectionHandle,
                numCompletedExtendedAdvertisingEvents: UInt8(clamping: run.completedEvents)
            )
        )
    }

    // MARK: Advertising events

    /// A delay up to 10 ms, which prevents repeated collisions of advertisers (Vol 6, Part B, 4.4.2.2.1).
    private func advertisingDelay() -> Duration {
        .microseconds(Int(air.random.next(upTo: 10_000)))
    }

    /// Sends one advertising event, and schedules the next.
    private func advertise(_ handle: UInt8, _ number: UInt64) {
        guard let index = advertiser.index(of: handle), advertiser.sets[index].run?.number == number,
            let advertisement = makeAdvertisement(of: advertiser.sets[index])
        else { return }
        for listener in air.listeners where listener !== self {
            listener.hear(advertisement)
            // A connection ends the event.
            guard advertiser.index(of: handle) == index, advertiser.sets[index].run?.number == number else { return }
        }
        guard var run = advertiser.sets[index].run else { return }
        run.completedEvents += 1
        advertiser.sets[index].run = run
        if let maximum = run.maximumEvents, run.completedEvents >= maximum {
            return finishAdvertising(handle, number, .limitReached)
        }
        let parameters = advertisement.advertisingSet.parameters
        let delay = parameters.isHighDutyCycle ? Duration.zero : advertisingDelay()
        schedule(after: parameters.intervalDuration + delay, on: advertisement.advertisingSet.eventTimer) {
            $0.advertise(handle, number)
        }
    }

    private func makeAdvertisement(of set: AdvertisingSet) -> Advertisement? {
        guard let address = ownAddress(of: set) else { return nil }
        let parameters = set.parameters
        return Advertisement(
            sender: self,
            advertisingSet: set,
            address: address,
            target: parameters.properties.contains(.directed)
                ? targetAddress(for: parameters.peerAddress, parameters.ownAddressType) : nil
        )
    }

    /// Returns the address with which a set is advertised, or nil if it has none.
    func ownAddress(of set: AdvertisingSet) -> OwnAddress? {
        ownAddress(
            set.parameters.ownAddressType,
            random: advertiser.commands == .legacy ? randomAddress : set.randomAddress,
            towards: resolvingList.index(of: set.parameters.peerAddress)
        )
    }

    // MARK: Requests

    /// Handles a scan request for an advertisement. Returns whether it is answered.
    func answersScan(of advertisement: Advertisement, from scanner: DeviceAddress) -> Bool {
        let parameters = advertisement.advertisingSet.parameters
        guard let identity = identify(scanner), isMeant(identity, scanner, by: advertisement) else { return false }
        switch parameters.filterPolicy {
        case .scanRequestsFromFilterAcceptList, .filterAcceptListOnly:
            guard isAccepted(identity.address) else { return false }
        case .all, .connectionRequestsFromFilterAcceptList: break
        }
        if parameters.notifiesOfScanRequests {
            tellLE(
                LEScanRequestReceived(
                    advertisingHandle: advertisement.advertisingSet.handle,
                    scannerAddress: identity.address
                )
            )
        }
        return true
    }

    /// Handles a connection request for an advertisement. Returns this side of the link if the request is accepted.
    func acceptsConnection(to advertisement: Advertisement, from initiator: DeviceAddress) -> LinkParty? {
        guard let identity = identify(initiator), isMeant(identity, initiator, by: advertisement),
            !isConnected(to: identity.address)
        else { return nil }
        switch advertisement.advertisingSet.parameters.filterPolicy {
        // The target of a directed advertisement is accepted without the list (Vol 6, Part B, 4.3.2).
        case .connectionRequestsFromFilterAcceptList, .filterAcceptListOnly:
            guard advertisement.target != nil || isAccepted(identity.address) else { return nil }
        case .all, .scanRequestsFromFilterAcceptList: break
        }
        return LinkParty(
            controller: self,
            localResolvablePrivateAddress: advertisement.address.isGenerated ? advertisement.address.address : nil,
            peer: identity.address,
            peerResolvablePrivateAddress: identity.resolvablePrivateAddress
        )
    }

    /// Whether the advertisement is undirected, or directed to the requesting device.
    private func isMeant(_ identity: Identity, _ address: DeviceAddress, by advertisement: Advertisement) -> Bool {
        guard let target = advertisement.target else { return true }
        return address == target
            || identity.address.deviceAddress == advertisement.advertisingSet.parameters.peerAddress
    }
}
