import HCI

/// Data that a host sets whole or in fragments, and that goes out in one PDU or in a chain of them.
struct AdvertisingPayload {
    /// How many octets one PDU of a chain brings: what 255 octets of payload leave beside an extended header.
    static let octetsPerPDU = 245

    private(set) var bytes: [UInt8] = []
    /// Whether the last fragment is there.
    private(set) var isComplete = true

    /// How many PDUs it takes; one where there are no data.
    var chainLength: Int { max(1, (bytes.count + Self.octetsPerPDU - 1) / Self.octetsPerPDU) }

    /// Takes what a command brings (Vol 4, Part E, 7.8.54).
    ///
    /// - Parameter limit: how many octets there may be in all. Where there are more, nothing is kept.
    mutating func take(_ fragment: [UInt8], _ operation: AdvertisingDataOperation, limit: Int) -> ErrorCode {
        switch operation {
        case .unchanged:
            return .success
        case .complete, .firstFragment:
            bytes = fragment
        case .intermediateFragment, .lastFragment:
            guard !isComplete else { return .commandDisallowed }
            bytes += fragment
        }
        isComplete = operation == .complete || operation == .lastFragment
        guard bytes.count <= limit else {
            self = AdvertisingPayload()
            return .memoryCapacityExceeded
        }
        return .success
    }

    /// How long the chain is on the air, in microseconds, with the frame space that the sender needs after each PDU.
    func airTime(phy: PHY) -> Int {
        let fullPDUs = chainLength - 1
        let rest = bytes.count - fullPDUs * Self.octetsPerPDU
        let headers = 255 - Self.octetsPerPDU
        return fullPDUs * AirTime.microseconds(octets: 255, phy: phy, isEncrypted: false)
            + AirTime.microseconds(octets: rest + headers, phy: phy, isEncrypted: false) + chainLength * 300
    }
}
