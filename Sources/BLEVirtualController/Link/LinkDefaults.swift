import BLEHCI
import BluetoothTypes

/// The host's defaults for new links.
struct LinkDefaults {
    var suggestedTXOctets: UInt16 = 27
    var suggestedTXTime: UInt16 = 328
    var phys: PHYChoice?
    var channelMap = ChannelMap.all
    var syncTransfer = SyncTransferSettings()
    /// The subrate parameters that the controller accepts as central.
    var subrate = SubrateRange.initial

    func dataLength(of configuration: VirtualController.Configuration) -> DataLength {
        let maximum = configuration.maximumDataLength
        return DataLength(
            maxRXOctets: maximum.maxRXOctets,
            maxRXTime: maximum.maxRXTime,
            maxTXOctets: min(suggestedTXOctets, maximum.maxTXOctets),
            maxTXTime: min(suggestedTXTime, maximum.maxTXTime)
        )
    }

    /// The PHYs that the host prefers, or all supported PHYs.
    func phys(of configuration: VirtualController.Configuration) -> PHYChoice {
        phys ?? PHYChoice(transmit: configuration.phys, receive: configuration.phys)
    }
}

extension VirtualController.Configuration {
    /// The limits of the Link Layer: bytes, and microseconds on its slowest PHY.
    var maximumDataLength: DataLength {
        guard features.contains(.dataPacketLengthExtension) else {
            return DataLength(maxRXOctets: 27, maxRXTime: 328, maxTXOctets: 27, maxTXTime: 328)
        }
        let time: UInt16 = features.contains(.leCodedPHY) ? 17040 : 2120
        return DataLength(maxRXOctets: 251, maxRXTime: time, maxTXOctets: 251, maxTXTime: time)
    }

    var phys: PHYSet {
        var phys: PHYSet = .le1M
        if features.contains(.le2MPHY) { phys.insert(.le2M) }
        if features.contains(.leCodedPHY) { phys.insert(.leCoded) }
        return phys
    }
}
