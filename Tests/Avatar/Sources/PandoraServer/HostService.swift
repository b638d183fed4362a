import BLE
import FoundationEssentials
import GRPCCore
import SwiftProtobuf

/// The interface `pandora.Host`, without its methods for BR/EDR.
struct HostService: Pandora_Host.SimpleServiceProtocol {
    let device: Device

    func factoryReset(request: Google_Protobuf_Empty, context: ServerContext) async throws -> Google_Protobuf_Empty {
        try await perform { try await device.factoryReset() }
        return Google_Protobuf_Empty()
    }

    func reset(request: Google_Protobuf_Empty, context: ServerContext) async throws -> Google_Protobuf_Empty {
        try await perform { await device.reset() }
        return Google_Protobuf_Empty()
    }

    func readLocalAddress(
        request: Google_Protobuf_Empty,
        context: ServerContext
    ) async throws -> Pandora_ReadLocalAddressResponse {
        try await perform {
            let information = try await device.adapter.information
            return .with { $0.address = (information.publicAddress ?? information.identityAddress).data }
        }
    }

    // MARK: Connections

    func connectLE(
        request: Pandora_ConnectLERequest,
        context: ServerContext
    ) async throws -> Pandora_ConnectLEResponse {
        let address: DeviceAddress? =
            switch request.address {
            case .public(let data)?, .publicIdentity(let data)?: DeviceAddress(data, isRandom: false)
            case .random(let data)?, .randomStaticIdentity(let data)?: DeviceAddress(data, isRandom: true)
            case nil: nil
            }
        guard let address else { throw RPCError(code: .invalidArgument, message: "the address has not 6 bytes") }
        return try await perform {
            let number = try await device.connect(to: address)
            return .with { $0.connection = Pandora_Connection(number) }
        }
    }

    func disconnect(
        request: Pandora_DisconnectRequest,
        context: ServerContext
    ) async throws -> Google_Protobuf_Empty {
        try await perform { try await device.disconnect(try request.connection.number) }
        return Google_Protobuf_Empty()
    }

    func waitDisconnection(
        request: Pandora_WaitDisconnectionRequest,
        context: ServerContext
    ) async throws -> Google_Protobuf_Empty {
        try await perform {
            _ = try await device.value(of: try request.connection.number) { $0.isEnded ? true : nil }
        }
        return Google_Protobuf_Empty()
    }

    // MARK: Advertising and scanning

    func advertise(
        request: Pandora_AdvertiseRequest,
        response: RPCWriter<Pandora_AdvertiseResponse>,
        context: ServerContext
    ) async throws {
        try await perform {
            let clients = await device.clients()
            let address = try await device.advertisingAddress(request.ownAddressType)
            let configuration = try AdvertisementConfiguration(request, address)
            let advertising = try await device.adapter.peripheral.startAdvertising(configuration)
            do {
                for await number in clients {
                    try await response.write(.with { $0.connection = Pandora_Connection(number) })
                }
            } catch {
                await advertising.stop()
                throw error
            }
            await advertising.stop()
        }
    }

    func scan(
        request: Pandora_ScanRequest,
        response: RPCWriter<Pandora_ScanningResponse>,
        context: ServerContext
    ) async throws {
        try await perform {
            var reports = ScanReports(isActive: !request.passive)
            for try await advertisement in try await device.adapter.central.scan(ScanOptions(request)) {
                guard !request.legacy || advertisement.isLegacy, reports.isComplete(advertisement) else { continue }
                try await response.write(Pandora_ScanningResponse(advertisement))
            }
        }
    }
}

extension AdvertisementConfiguration {
    /// - Parameter address: the own address; nil for the adapter's identity address.
    fileprivate init(_ request: Pandora_AdvertiseRequest, _ address: DeviceAddress?) throws {
        self.init(
            isConnectable: request.connectable,
            isScannable: request.hasScanResponseData,
            advertisingData: try AdvertisingData(request.data),
            scanResponseData: try AdvertisingData(request.scanResponseData),
            address: address,
            usesExtendedPDUs: !request.legacy
        )
        if request.interval > 0 { interval = .milliseconds(Double(request.interval)) }
        switch request.target {
        case .public(let data)?: peer = DeviceAddress(data, isRandom: false)
        case .random(let data)?: peer = DeviceAddress(data, isRandom: true)
        case nil: break
        }
    }
}

extension ScanOptions {
    fileprivate init(_ request: Pandora_ScanRequest) {
        self.init(isActive: !request.passive, reportsDuplicates: true)
        if request.interval > 0 { interval = .milliseconds(Double(request.interval)) }
        if request.window > 0 { window = .milliseconds(Double(request.window)) }
        phys = []
        if request.phys.contains(.primary1M) { phys.insert(.le1M) }
        if request.phys.contains(.primaryCoded) { phys.insert(.leCoded) }
        if phys.isEmpty { phys = [.le1M, .leCoded] }
    }
}

/// Decides which packets are reported to the test, which reads one report of an advertiser: with its scan response, if
/// there is one.
struct ScanReports {
    private struct Source: Hashable {
        let address: DeviceAddress
        let advertisingSetIdentifier: UInt8?
    }

    private let isActive: Bool
    /// The advertisers whose scan response is awaited.
    private var awaited: Set<Source> = []

    init(isActive: Bool) {
        self.isActive = isActive
    }

    /// Whether an advertisement is reported: its scan response has arrived, there will be none, or the advertiser was
    /// received again.
    mutating func isComplete(_ advertisement: Advertisement) -> Bool {
        guard isActive, advertisement.isScannable, advertisement.scanResponseData.isEmpty else { return true }
        let source = Source(
            address: advertisement.address,
            advertisingSetIdentifier: advertisement.advertisingSetIdentifier
        )
        return !awaited.insert(source).inserted
    }
}

extension Pandora_ScanningResponse {
    fileprivate init(_ advertisement: Advertisement) throws {
        legacy = advertisement.isLegacy
        let address = advertisement.address
        switch (advertisement.privateAddress == nil, address.isRandom) {
        case (true, false): `public` = address.data
        case (true, true): random = address.data
        case (false, false): publicIdentity = address.data
        case (false, true): randomStaticIdentity = address.data
        }
        connectable = advertisement.isConnectable
        scannable = advertisement.isScannable
        truncated = advertisement.isTruncated
        sid = UInt32(advertisement.advertisingSetIdentifier ?? 0xFF)
        primaryPhy = advertisement.primaryPHY == .leCoded ? .primaryCoded : .primary1M
        switch advertisement.secondaryPHY {
        case .le1M: secondaryPhy = .secondary1M
        case .le2M: secondaryPhy = .secondary2M
        case .leCoded: secondaryPhy = .secondaryCoded
        default: secondaryPhy = .secondaryNone
        }
        txPower = Int32(advertisement.txPower ?? 127)
        rssi = Int32(advertisement.rssi ?? 127)
        data = Pandora_DataTypes(advertisement.data)
    }
}
