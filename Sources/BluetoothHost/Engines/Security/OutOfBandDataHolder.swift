import BLESMP

/// A source of out-of-band data for pairings.
protocol OutOfBandDataHolder {
    var ownOutOfBandData: OwnOutOfBandData? { get set }
    var peerOutOfBandData: OutOfBandData? { get set }
}

extension SecurityPolicy: OutOfBandDataHolder {}
extension PairingParameters: OutOfBandDataHolder {}

extension OutOfBandDataHolder {
    /// Removes the out-of-band data that a pairing with these parameters uses.
    mutating func forgetOutOfBandData(of used: PairingParameters) {
        if ownOutOfBandData == used.ownOutOfBandData { ownOutOfBandData = nil }
        if peerOutOfBandData == used.peerOutOfBandData { peerOutOfBandData = nil }
    }

    /// Whether a pairing with these parameters uses some of the same out-of-band data.
    func sharesOutOfBandData(with used: PairingParameters) -> Bool {
        ownOutOfBandData != nil && ownOutOfBandData == used.ownOutOfBandData
            || peerOutOfBandData != nil && peerOutOfBandData == used.peerOutOfBandData
    }
}
