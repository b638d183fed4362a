import BluetoothHost
import BluetoothTypes

extension HostCentral {
    /// The scan of the app.
    struct Scan {
        /// Maximum number of advertisers in ``droppedAdvertisers``: as many as the host remembers.
        static let droppedAdvertiserLimit = 4096
        /// The first delay before a scan that the controller has refused is started again. It doubles with each
        /// refusal.
        static let shortestRetryDelay = Duration.seconds(1)
        /// The longest delay. After a scan that has lasted longer than this, the delays begin again with the shortest.
        static let longestRetryDelay = Duration.seconds(30)

        let request: ScanRequest
        /// The ``Discovery/scanNumber`` of the discoveries.
        let number: UInt64
        /// The host's identifier of the scan, which changes when the scan is started again; nil before the first start.
        fileprivate(set) var identifier: ScanIdentifier?
        /// Distinguishes the starts of all scans.
        fileprivate var startNumber: UInt64 = 0
        fileprivate var startTime = Instant(nanoseconds: 0)
        fileprivate var retryDelay = Scan.shortestRetryDelay
        /// The number of advertisements that the manager did not take.
        private(set) var dropCount = 0
        /// The advertisers of dropped discoveries, to be reported again when the manager has space for discoveries.
        private(set) var droppedAdvertisers: Set<DeviceAddress> = []

        init(request: ScanRequest, number: UInt64) {
            self.request = request
            self.number = number
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
        submit { host, open in
            self.endScan(on: host)
            self.start(Scan(request: request, number: number), on: host, open)
            self.keepRestoration()
        }
    }

    /// Starts a scan on the host. It becomes the current one.
    private func start(_ scan: Scan, on host: isolated BluetoothHost, _ open: OpenHost) {
        state.lastNumber += 1
        let (startNumber, number) = (state.lastNumber, scan.number)
        let options = ScanOptions(reportsDuplicates: scan.request.allowsDuplicates)
        let filter = ScanFilter(scan.request)
        var scan = scan
        scan.startNumber = startNumber
        scan.startTime = host.loop.now
        scan.identifier = host.startScan(options) { [weak self] event in
            switch event {
            case .advertisement(let advertisement): self?.heard(advertisement, filter, number, open)
            case .ended(let error): self?.scanEnded(startNumber, error, open)
            }
        }
        state.currentScan = scan
    }

    /// Starts a scan again after a delay, because the controller has refused it. Core Bluetooth has no callback for a
    /// scan that fails, so the scan continues until the app stops it or the manager is no longer powered on. Called on
    /// the loop.
    private func scanEnded(_ startNumber: UInt64, _ error: HostError, _ open: OpenHost) {
        guard error != .closed, var scan = state.currentScan, scan.startNumber == startNumber else { return }
        open.host.assumeIsolated { host in
            if host.loop.now - scan.startTime > Scan.longestRetryDelay { scan.retryDelay = Scan.shortestRetryDelay }
            // One line for all refusals in succession.
            if scan.retryDelay == Scan.shortestRetryDelay {
                ProgrammerError.note("the adapter has ended a scan: \(error); it is started again until it succeeds")
            }
            let delay = scan.retryDelay
            scan.retryDelay = min(delay * 2, Scan.longestRetryDelay)
            state.currentScan = scan
            host.run(after: delay) { [weak self] in self?.startAgain(startNumber, open) }
        }
    }

    /// Starts a scan again, unless the app has stopped it or has started another one. Called on the loop.
    private func startAgain(_ startNumber: UInt64, _ open: OpenHost) {
        guard let scan = state.currentScan, scan.startNumber == startNumber else { return }
        open.host.assumeIsolated { start(scan, on: $0, open) }
    }

    func stopScan() {
        submit { host, _ in
            self.endScan(on: host)
            self.keepRestoration()
        }
    }

    func reportDroppedDiscoveries() {
        // The manager makes this call, not the app.
        submit(call: nil) { host, _ in
            guard let identifier = self.state.currentScan?.identifier else { return }
            host.reportAgain(self.state.currentScan?.takeDroppedAdvertisers(), in: identifier)
        }
    }

    func endScan(on host: isolated BluetoothHost) {
        if let identifier = state.currentScan?.identifier { host.stopScan(identifier) }
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
        if !deliver(.discovered(discovery)) { dropped(advertisement, open) }
    }

    private func dropped(_ advertisement: Advertisement, _ open: OpenHost) {
        open.host.advertisementWasDropped(droppedBefore: state.currentScan?.dropCount ?? 0)
        state.currentScan?.noteDrop(of: advertisement.address)
    }
}
