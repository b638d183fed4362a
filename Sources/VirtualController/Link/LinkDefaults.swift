import BluetoothTypes
import HCI

/// What the host wants of links that are made from now on.
struct LinkDefaults {
    var suggestedTxOctets: UInt16 = 27
    var suggestedTxTime: UInt16 = 328
    var phys: PHYChoice?
    var channelMap = ChannelMap.all

    func dataLength(of configuration: VirtualController.Configuration) -> DataLength {
        let maximum = configuration.maximumDataLength
        return DataLength(
            maxRxOctets: maximum.maxRxOctets,
            maxRxTime: maximum.maxRxTime,
            maxTxOctets: min(suggestedTxOctets, maximum.maxTxOctets),
            maxTxTime: min(suggestedTxTime, maximum.maxTxTime)
        )
    }

    /// The PHYs that the host would use, or all that there are.
    func phys(of configuration: VirtualController.Configuration) -> PHYChoice {
        phys ?? PHYChoice(transmit: configuration.phys, receive: configuration.phys)
    }
}

extension VirtualController.Configuration {
    /// What its Link Layer can send and receive: octets, and microseconds on its slowest PHY.
    var maximumDataLength: DataLength {
        guard features.contains(.dataPacketLengthExtension) else {
            return DataLength(maxRxOctets: 27, maxRxTime: 328, maxTxOctets: 27, maxTxTime: 328)
        }
        let time: UInt16 = features.contains(.leCodedPHY) ? 17040 : 2120
        return DataLength(maxRxOctets: 251, maxRxTime: time, maxTxOctets: 251, maxTxTime: time)
    }

    var phys: PHYSet {
        var phys: PHYSet = .le1M
        if features.contains(.le2MPHY) { phys.insert(.le2M) }
        if features.contains(.leCodedPHY) { phys.insert(.leCoded) }
        return phys
    }
}
