extension Opcode: CustomStringConvertible {
    /// The command's name in the specification, or its number.
    public var description: String {
        Opcode.names[rawValue].map(String.init) ?? "command 0x" + String(rawValue, radix: 16, uppercase: true)
    }

    private static let names: [UInt16: Substring] = {
        var names: [UInt16: Substring] = [:]
        for line in table.split(separator: "\n") {
            guard let number = UInt16(line.prefix(4), radix: 16) else { continue }
            names[number] = line.dropFirst(5)
        }
        return names
    }()

    /// Lines of four hexadecimal digits, a space and the name.
    private static let table = """
        0406 Disconnect
        041D Read Remote Version Information
        0C01 Set Event Mask
        0C03 Reset
        0C2D Read Transmit Power Level
        0C31 Set Controller To Host Flow Control
        0C33 Host Buffer Size
        0C35 Host Number Of Completed Packets
        0C63 Set Event Mask Page 2
        0C6D Write LE Host Support
        1001 Read Local Version Information
        1002 Read Local Supported Commands
        1003 Read Local Supported Features
        1005 Read Buffer Size
        1009 Read BD_ADDR
        1405 Read RSSI
        2001 LE Set Event Mask
        2002 LE Read Buffer Size
        2003 LE Read Local Supported Features
        2005 LE Set Random Address
        2006 LE Set Advertising Parameters
        2007 LE Read Advertising Physical Channel Tx Power
        2008 LE Set Advertising Data
        2009 LE Set Scan Response Data
        200A LE Set Advertising Enable
        200B LE Set Scan Parameters
        200C LE Set Scan Enable
        200D LE Create Connection
        200E LE Create Connection Cancel
        200F LE Read Filter Accept List Size
        2010 LE Clear Filter Accept List
        2011 LE Add Device To Filter Accept List
        2012 LE Remove Device From Filter Accept List
        2013 LE Connection Update
        2014 LE Set Host Channel Classification
        2015 LE Read Channel Map
        2016 LE Read Remote Features
        2017 LE Encrypt
        2018 LE Rand
        2019 LE Enable Encryption
        201A LE Long Term Key Request Reply
        201B LE Long Term Key Request Negative Reply
        201C LE Read Supported States
        2020 LE Remote Connection Parameter Request Reply
        2021 LE Remote Connection Parameter Request Negative Reply
        2022 LE Set Data Length
        2023 LE Read Suggested Default Data Length
        2024 LE Write Suggested Default Data Length
        2025 LE Read Local P256 Public Key
        2026 LE Generate DH Key
        2027 LE Add Device To Resolving List
        2028 LE Remove Device From Resolving List
        2029 LE Clear Resolving List
        202A LE Read Resolving List Size
        202B LE Read Peer Resolvable Address
        202C LE Read Local Resolvable Address
        202D LE Set Address Resolution Enable
        202E LE Set Resolvable Private Address Timeout
        202F LE Read Maximum Data Length
        2030 LE Read PHY
        2031 LE Set Default PHY
        2032 LE Set PHY
        2035 LE Set Advertising Set Random Address
        2036 LE Set Extended Advertising Parameters
        2037 LE Set Extended Advertising Data
        2038 LE Set Extended Scan Response Data
        2039 LE Set Extended Advertising Enable
        203A LE Read Maximum Advertising Data Length
        203B LE Read Number Of Supported Advertising Sets
        203C LE Remove Advertising Set
        203D LE Clear Advertising Sets
        203E LE Set Periodic Advertising Parameters
        203F LE Set Periodic Advertising Data
        2040 LE Set Periodic Advertising Enable
        2041 LE Set Extended Scan Parameters
        2042 LE Set Extended Scan Enable
        2043 LE Extended Create Connection
        2044 LE Periodic Advertising Create Sync
        2045 LE Periodic Advertising Create Sync Cancel
        2046 LE Periodic Advertising Terminate Sync
        204B LE Read Transmit Power
        204E LE Set Privacy Mode
        2060 LE Read Buffer Size [v2]
        """
}
