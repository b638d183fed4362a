extension Event {
    /// The event's name in the specification (Vol 4, Part E, 7.7), or its number where it has none.
    ///
    /// - Parameter subeventCode: of an LE Meta event, whose name is the subevent's then.
    public static func name(code: UInt8, subeventCode: UInt8? = nil) -> String {
        if code == leMetaCode, let subeventCode {
            return subeventNames[subeventCode] ?? "LE subevent 0x" + hexadecimal(subeventCode)
        }
        return names[code] ?? "event 0x" + hexadecimal(code)
    }

    private static func hexadecimal(_ value: UInt8) -> String {
        (value < 0x10 ? "0" : "") + String(value, radix: 16, uppercase: true)
    }

    private static let names = parse(table)
    private static let subeventNames = parse(subeventTable)

    /// Reads lines of two hexadecimal digits, a space and the name.
    private static func parse(_ table: String) -> [UInt8: String] {
        var names: [UInt8: String] = [:]
        for line in table.split(separator: "\n") {
            guard let number = UInt8(line.prefix(2), radix: 16) else { continue }
            names[number] = String(line.dropFirst(3))
        }
        return names
    }

    private static let table = """
        01 Inquiry Complete
        02 Inquiry Result
        03 Connection Complete
        04 Connection Request
        05 Disconnection Complete
        06 Authentication Complete
        07 Remote Name Request Complete
        08 Encryption Change
        09 Change Connection Link Key Complete
        0A Link Key Type Changed
        0B Read Remote Supported Features Complete
        0C Read Remote Version Information Complete
        0D QoS Setup Complete
        0E Command Complete
        0F Command Status
        10 Hardware Error
        11 Flush Occurred
        12 Role Change
        13 Number Of Completed Packets
        14 Mode Change
        15 Return Link Keys
        16 PIN Code Request
        17 Link Key Request
        18 Link Key Notification
        19 Loopback Command
        1A Data Buffer Overflow
        1B Max Slots Change
        1C Read Clock Offset Complete
        1D Connection Packet Type Changed
        1E QoS Violation
        1F Page Scan Mode Change
        20 Page Scan Repetition Mode Change
        21 Flow Specification Complete
        22 Inquiry Result With RSSI
        23 Read Remote Extended Features Complete
        2C Synchronous Connection Complete
        2D Synchronous Connection Changed
        2E Sniff Subrating
        2F Extended Inquiry Result
        30 Encryption Key Refresh Complete
        31 IO Capability Request
        32 IO Capability Response
        33 User Confirmation Request
        34 User Passkey Request
        35 Remote OOB Data Request
        36 Simple Pairing Complete
        38 Link Supervision Timeout Changed
        39 Enhanced Flush Complete
        3B User Passkey Notification
        3C Keypress Notification
        3D Remote Host Supported Features Notification
        3E LE Meta
        40 Physical Link Complete
        41 Channel Selected
        42 Disconnection Physical Link Complete
        43 Physical Link Loss Early Warning
        44 Physical Link Recovery
        45 Logical Link Complete
        46 Disconnection Logical Link Complete
        47 Flow Spec Modify Complete
        48 Number Of Completed Data Blocks
        49 AMP Start Test
        4A AMP Test End
        4B AMP Receiver Report
        4C Short Range Mode Change Complete
        4D AMP Status Change
        4E Triggered Clock Capture
        4F Synchronization Train Complete
        50 Synchronization Train Received
        51 Connectionless Peripheral Broadcast Receive
        52 Connectionless Peripheral Broadcast Timeout
        53 Truncated Page Complete
        54 Peripheral Page Response Timeout
        55 Connectionless Peripheral Broadcast Channel Map Change
        56 Inquiry Response Notification
        57 Authenticated Payload Timeout Expired
        58 SAM Status Change
        59 Encryption Change [v2]
        FF Vendor Specific
        """

    private static let subeventTable = """
        01 LE Connection Complete
        02 LE Advertising Report
        03 LE Connection Update Complete
        04 LE Read Remote Features Complete
        05 LE Long Term Key Request
        06 LE Remote Connection Parameter Request
        07 LE Data Length Change
        08 LE Read Local P-256 Public Key Complete
        09 LE Generate DHKey Complete
        0A LE Enhanced Connection Complete
        0B LE Directed Advertising Report
        0C LE PHY Update Complete
        0D LE Extended Advertising Report
        0E LE Periodic Advertising Sync Established
        0F LE Periodic Advertising Report
        10 LE Periodic Advertising Sync Lost
        11 LE Scan Timeout
        12 LE Advertising Set Terminated
        13 LE Scan Request Received
        14 LE Channel Selection Algorithm
        15 LE Connectionless IQ Report
        16 LE Connection IQ Report
        17 LE CTE Request Failed
        18 LE Periodic Advertising Sync Transfer Received
        19 LE CIS Established
        1A LE CIS Request
        1B LE Create BIG Complete
        1C LE Terminate BIG Complete
        1D LE BIG Sync Established
        1E LE BIG Sync Lost
        1F LE Request Peer SCA Complete
        20 LE Path Loss Threshold
        21 LE Transmit Power Reporting
        22 LE BIGInfo Advertising Report
        23 LE Subrate Change
        24 LE Periodic Advertising Sync Established [v2]
        25 LE Periodic Advertising Report [v2]
        26 LE Periodic Advertising Sync Transfer Received [v2]
        27 LE Periodic Advertising Subevent Data Request
        28 LE Periodic Advertising Response Report
        29 LE Enhanced Connection Complete [v2]
        2A LE CIS Established [v2]
        2B LE Read All Remote Features Complete
        2C LE CS Read Remote Supported Capabilities Complete
        2D LE CS Read Remote FAE Table Complete
        2E LE CS Security Enable Complete
        2F LE CS Config Complete
        30 LE CS Procedure Enable Complete
        31 LE CS Subevent Result
        32 LE CS Subevent Result Continue
        33 LE CS Test End Complete
        34 LE Monitored Advertisers Report
        35 LE Frame Space Update Complete
        """
}
