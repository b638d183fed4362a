import BLEHCI

/// Data that the host sets whole or in fragments. It is sent in one PDU or in a chain of PDUs.
struct AdvertisingPayload {
    /// The number of data bytes in one PDU of a chain: 255 bytes of payload less an extended header with the address of
    /// the advertiser and the ADI field.
    static let bytesPerPDU = 245

    private(set) var bytes: [UInt8] = []
    /// Whether the last fragment has been set.
    private(set) var isComplete = true

    /// The number of PDUs in the chain; one if there is no data.
    var chainLength: Int { max(1, (bytes.count + Self.bytesPerPDU - 1) / Self.bytesPerPDU) }

    /// Takes the data of a command (Vol 4, Part E, 7.8.54).
    ///
    /// - Parameter limit: maximum total number of bytes. If there are more, the data is discarded.
    mutating func take(_ fragment: [UInt8], _ operation: AdvertisingDataOperation, limit: Int) -> HCIErrorCode {
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

    /// The air time of the chain in microseconds, with the frame space that the sender needs after each PDU.
    func airTime(phy: PHY) -> Int {
        let fullPDUs = chainLength - 1
        let rest = bytes.count - fullPDUs * Self.bytesPerPDU
        let headers = 255 - Self.bytesPerPDU
        return fullPDUs * AirTime.microseconds(byteCount: 255, phy: phy, isEncrypted: false)
            + AirTime.microseconds(byteCount: rest + headers, phy: phy, isEncrypted: false) + chainLength * 300
    }
}
