import BLEATT
import BLEHCI
import BluetoothTypes

extension NamedValues {
    /// The errors of HCI (Vol 1, Part F, 1.3).
    static let errors = NamedValues(
        names(in: 0x00...0xFF) { code in
            let text = HCIErrorCode(rawValue: UInt8(truncatingIfNeeded: code)).description
            return text.hasPrefix("Error 0x") ? nil : text
        }
    )

    /// The errors of ATT (Vol 3, Part F, 3.4.1.1).
    static let attErrors = NamedValues(
        names(in: 0x00...0xFF) { code in
            let text = ATTErrorCode(rawValue: UInt8(truncatingIfNeeded: code)).description
            return text.hasPrefix("Error 0x") ? nil : text
        }
    )

    static func companies() -> [UInt64: String] {
        names(in: 0x0000...0xFFFF) { CompanyIdentifier(rawValue: UInt16(truncatingIfNeeded: $0)).name }
    }

    private static func names(in range: ClosedRange<UInt64>, _ name: (UInt64) -> String?) -> [UInt64: String] {
        var names: [UInt64: String] = [:]
        for value in range { names[value] = name(value) }
        return names
    }
}
