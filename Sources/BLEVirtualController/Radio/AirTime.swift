import BLEHCI
import BluetoothTypes

/// The air time of packets (Vol 6, Part B, 2.1, 2.2 and 4.1).
enum AirTime {
    /// The inter frame space, in microseconds.
    static let interFrameSpace = 150

    /// Returns the air time of a Data Physical Channel PDU, in microseconds.
    ///
    /// - Parameter byteCount: the length of the payload in bytes, without the MIC. On an encrypted link, the MIC adds 4
    ///   bytes to a payload that is not empty.
    static func microseconds(byteCount: Int, phy: PHY, isEncrypted: Bool) -> Int {
        let payload = byteCount + (isEncrypted && byteCount > 0 ? 4 : 0)
        // The header has 2 bytes, the CRC 3.
        switch phy {
        case .le2M: return (2 + 4 + 2 + payload + 3) * 4
        // S=8: preamble 80, access address 256, coding indicator 16, first terminator 24, last terminator 24.
        // S=2: as S=8 to the first terminator, then a quarter of the time.
        case .leCodedS2: return 80 + 256 + 16 + 24 + (2 + payload + 3) * 16 + 6
        case .leCoded: return 80 + 256 + 16 + 24 + (2 + payload + 3) * 64 + 24
        default: return (1 + 4 + 2 + payload + 3) * 8
        }
    }

    /// Returns the number of payload bytes that fit a time in microseconds, between 27 and 251.
    static func byteCount(fitting time: Int, phy: PHY) -> Int {
        let fitting =
            switch phy {
            case .le2M: time / 4 - 15
            case .leCodedS2: (time - 382) / 16 - 9
            case .leCoded: (time - 400) / 64 - 9
            default: time / 8 - 14
            }
        return max(27, min(251, fitting))
    }

    /// Returns the air time of the longest PDU with this payload length, including its MIC, in microseconds. The Data
    /// Length Update Procedure uses this value.
    static func maximum(byteCount: Int, phy: PHY) -> Int {
        microseconds(byteCount: byteCount, phy: phy, isEncrypted: true)
    }

    /// The receiver sensitivity, in dBm.
    static func sensitivity(_ phy: PHY) -> Int8 {
        switch phy {
        case .le2M: -92
        case .leCodedS2: -100
        case .leCoded: -103
        default: -95
        }
    }
}
