import BluetoothHost
import BluetoothTypes

extension HostCentral {
    /// The scan of the app.
    struct Scan {
        /// Maximum number of advertisers in ``droppedAdvertisers``: as many as the host remembers.
        static let droppedAdvertiserLimit = 4096

        let request: ScanRequest
        let identifier: ScanIdentifier
        /// The number of advertisements that the manager did not take.
        private(set) var dropCount = 0
        /// The advertisers of dropped discoveries, to be reported again when the manager has space for discoveries.
        private(set) var droppedAdvertisers: Set<DeviceAddress> = []

        init(request: ScanRequest, identifier: ScanIdentifier) {
            self.request = request
            self.identifier = identifier
        }

        /// Notes an advertisement that the manager did not take. A scan with duplicates reports its advertiser again
        /// anyway.
        mutating func noteDrop(of advertiser: DeviceAddress) {
            dropCount += 1
            guard !request.allowsDuplicates, droppedAdvertisers.count < Scan.droppedAdvertiserLimit else { return }
            droppedAdvertisers.insert(advertiser)
        }

        /// Returns the advertisers that are to be reported again, and forgets them; nil for all advertisers, if some
        /// may not have been noted.
        mutating func takeDroppedAdvertisers() -> Set<DeviceAddress>? {
            defer { droppedAdvertisers = [] }
            return droppedAdvertisers.count < Scan.droppedAdvertiserLimit ? droppedAdvertisers : nil
        }
    }

    func scan(_ request: ScanRequest, number: UInt64) {
        post { host, open in
            self.endScan(on: host)
            var options = ScanOptions(reportsDuplicates: request.allowsDuplicates)
            options.filtersInController = false
            let filter = ScanFilter(request)
            let identifier = host.startScan(options) { [weak self] event in
                if case .advertisement(let advertisement) = event {
                    self?.heard(advertisement, filter, number, open)
                }
            }
            self.state.currentScan = Scan(request: request, identifier: identifier)
            self.keepRestoration()
        }
    }

    func stopScan() {
        post { host, _ in
            self.endScan(on: host)
            self.keepRestoration()
        }
    }

    func reportDroppedDiscoveries() {
        // The manager makes this call, not the app.
        post(call: nil) { host, _ in
            guard let identifier = self.state.currentScan?.identifier else { return }
            host.reportAgain(self.state.currentScan?.takeDroppedAdvertisers(), in: identifier)
        }
    }

    func endScan(on host: isolated BluetoothHost) {
        if let currentScan = state.currentScan { host.stopScan(currentScan.identifier) }
        state.currentScan = nil
    }

    private func heard(_ advertisement: Advertisement, _ filter: ScanFilter, _ scanNumber: UInt64, _ open: OpenHost) {
        guard filter.matches(advertisement.data) else { return }
        let content = AdvertisedContent(advertisement.data)
        let services = content.services.lazy.map(\.value)
        let known = open.peers.heard(advertisement.address, name: content.localName, services: services)
        let discovery = Discovery(
            identifier: known.identifier,
            name: known.name,
            content: content,
            isConnectable: advertisement.isConnectable,
            rssi: advertisement.rssi,
            time: open.wallClock(),
            scanNumber: scanNumber,
            hold: known.hold
        )
        if !say(.discovered(discovery)) { dropped(advertisement, open) }
    }

    private func dropped(_ advertisement: Advertisement, _ open: OpenHost) {
        open.host.advertisementWasDropped(droppedBefore: state.currentScan?.dropCount ?? 0)
        state.currentScan?.noteDrop(of: advertisement.address)
    }
}
