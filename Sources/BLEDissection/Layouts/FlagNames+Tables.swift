extension FlagNames {
    /// - Parameter list: the names from bit 0, separated by commas. An empty name is reserved.
    private convenience init(_ list: String) {
        self.init(
            list.split(separator: ",", omittingEmptySubsequences: false).map {
                let name = $0.drop { $0 == " " }
                return name.isEmpty ? nil : String(name)
            }
        )
    }

    static let physSet = FlagNames("LE 1M, LE 2M, LE Coded")

    static let advertisingFlags = FlagNames(
        "LE limited discoverable, LE general discoverable, BR/EDR not supported, simultaneous LE and BR/EDR"
    )

    static let characteristicProperties = FlagNames(
        "broadcast, read, write without response, write, notify, indicate, authenticated signed writes, "
            + "extended properties"
    )

    static let clientConfiguration = FlagNames("notification, indication")

    /// The flags by their name in layouts.
    static let all: [String: FlagNames] = [
        "phys": physSet,
        "advertisingChannels": FlagNames("37, 38, 39"),
        "extendedProperties": FlagNames(
            "connectable, scannable, directed, high duty cycle, legacy, anonymous, include Tx power, decision, "
                + "include AdvA in all decision PDUs, include ADI in all decision PDUs"
        ),
        "decisionType": FlagNames("resolvable tag"),
        "testFlags": FlagNames("new group, pass if check passes, pass if check fails, pass if field is absent"),
        "spacingTypes": FlagNames("T_IFS_ACL_CP, T_IFS_ACL_PC, T_MCES, T_IFS_CIS, T_MSS_CIS"),
        "extendedReport": FlagNames("connectable, scannable, directed, scan response, legacy, more to come, truncated"),
        "periodicProperties": FlagNames(",,,,,, include Tx power"),
        "periodicEnable": FlagNames("enabled, include ADI"),
        "periodicReceive": FlagNames("reports, duplicates filtered"),
        "syncOptions": FlagNames("periodic advertiser list, reports disabled, duplicates filtered"),
        "dataPaths": FlagNames("input, output"),
        "powerLimits": FlagNames("minimum, maximum"),
        "csRoles": FlagNames("initiator, reflector"),
        "csModes": FlagNames("mode 3"),
        "csPHYs": FlagNames(", LE 2M, LE 2M 2BT"),
        "allPHYs": FlagNames("any transmitter, any receiver"),
        "authReq": FlagNames("bonding,, MITM, SC, keypress, CT2"),
        "keys": FlagNames("EncKey, IdKey, SignKey, LinkKey"),
        "continuation": FlagNames("continuation"),
        "eventMask": FlagNames(
            "Inquiry Complete, Inquiry Result, Connection Complete, Connection Request, Disconnection Complete, "
                + "Authentication Complete, Remote Name Request Complete, Encryption Change, "
                + "Change Connection Link Key Complete, Link Key Type Changed, Read Remote Supported Features Complete, "
                + "Read Remote Version Information Complete, QoS Setup Complete,,, Hardware Error, Flush Occurred, "
                + "Role Change,, Mode Change, Return Link Keys, PIN Code Request, Link Key Request, "
                + "Link Key Notification, Loopback Command, Data Buffer Overflow, Max Slots Change, "
                + "Read Clock Offset Complete, Connection Packet Type Changed, QoS Violation, Page Scan Mode Change, "
                + "Page Scan Repetition Mode Change, Flow Specification Complete, Inquiry Result With RSSI, "
                + "Read Remote Extended Features Complete,,,,,,,,, Synchronous Connection Complete, "
                + "Synchronous Connection Changed, Sniff Subrating, Extended Inquiry Result, "
                + "Encryption Key Refresh Complete, IO Capability Request, IO Capability Response, "
                + "User Confirmation Request, User Passkey Request, Remote OOB Data Request, Simple Pairing Complete,, "
                + "Link Supervision Timeout Changed, Enhanced Flush Complete,, User Passkey Notification, "
                + "Keypress Notification, Remote Host Supported Features Notification, LE Meta"
        ),
        "eventMask2": FlagNames(
            "Physical Link Complete, Channel Selected, Disconnection Physical Link Complete, "
                + "Physical Link Loss Early Warning, Physical Link Recovery, Logical Link Complete, "
                + "Disconnection Logical Link Complete, Flow Spec Modify Complete, Number Of Completed Data Blocks, "
                + "AMP Start Test, AMP Test End, AMP Receiver Report, Short Range Mode Change Complete, "
                + "AMP Status Change, Triggered Clock Capture, Synchronization Train Complete, "
                + "Synchronization Train Received, Connectionless Peripheral Broadcast Receive, "
                + "Connectionless Peripheral Broadcast Timeout, Truncated Page Complete, "
                + "Peripheral Page Response Timeout, Connectionless Peripheral Broadcast Channel Map Change, "
                + "Inquiry Response Notification, Authenticated Payload Timeout Expired, SAM Status Change, "
                + "Encryption Change [v2]"
        ),
        "leEventMask": FlagNames(
            "Connection Complete, Advertising Report, Connection Update Complete, Read Remote Features Complete, "
                + "Long Term Key Request, Remote Connection Parameter Request, Data Length Change, "
                + "Read Local P-256 Public Key Complete, Generate DHKey Complete, Enhanced Connection Complete, "
                + "Directed Advertising Report, PHY Update Complete, Extended Advertising Report, "
                + "Periodic Advertising Sync Established, Periodic Advertising Report, Periodic Advertising Sync Lost, "
                + "Scan Timeout, Advertising Set Terminated, Scan Request Received, Channel Selection Algorithm, "
                + "Connectionless IQ Report, Connection IQ Report, CTE Request Failed, "
                + "Periodic Advertising Sync Transfer Received, CIS Established, CIS Request, Create BIG Complete, "
                + "Terminate BIG Complete, BIG Sync Established, BIG Sync Lost, Request Peer SCA Complete, "
                + "Path Loss Threshold, Transmit Power Reporting, BIGInfo Advertising Report, Subrate Change, "
                + "Periodic Advertising Sync Established [v2], Periodic Advertising Report [v2], "
                + "Periodic Advertising Sync Transfer Received [v2], Periodic Advertising Subevent Data Request, "
                + "Periodic Advertising Response Report, Enhanced Connection Complete [v2], CIS Established [v2], "
                + "Read All Remote Features Complete, CS Read Remote Supported Capabilities Complete, "
                + "CS Read Remote FAE Table Complete, CS Security Enable Complete, CS Config Complete, "
                + "CS Procedure Enable Complete, CS Subevent Result, CS Subevent Result Continue, "
                + "CS Test End Complete, Monitored Advertisers Report, Frame Space Update Complete"
        ),
        "leFeatures": FlagNames(
            "LE Encryption, Connection Parameters Request Procedure, Extended Reject Indication, "
                + "Peripheral-initiated Features Exchange, LE Ping, LE Data Packet Length Extension, LL Privacy, "
                + "Extended Scanning Filter Policies, LE 2M PHY, Stable Modulation Index - Transmitter, "
                + "Stable Modulation Index - Receiver, LE Coded PHY, LE Extended Advertising, LE Periodic Advertising, "
                + "Channel Selection Algorithm #2, LE Power Class 1, Minimum Number of Used Channels Procedure, "
                + "Connection CTE Request, Connection CTE Response, Connectionless CTE Transmitter, "
                + "Connectionless CTE Receiver, Antenna Switching During CTE Transmission, "
                + "Antenna Switching During CTE Reception, Receiving Constant Tone Extensions, "
                + "Periodic Advertising Sync Transfer - Sender, Periodic Advertising Sync Transfer - Recipient, "
                + "Sleep Clock Accuracy Updates, Remote Public Key Validation, "
                + "Connected Isochronous Stream - Central, Connected Isochronous Stream - Peripheral, "
                + "Isochronous Broadcaster, Synchronized Receiver, Connected Isochronous Stream (Host Support), "
                + "LE Power Control Request, LE Power Control Request, LE Path Loss Monitoring, "
                + "Periodic Advertising ADI Support, Connection Subrating, Connection Subrating (Host Support), "
                + "Channel Classification, Advertising Coding Selection, "
                + "Advertising Coding Selection (Host Support), Decision-Based Advertising Filtering, "
                + "Periodic Advertising with Responses - Advertiser, Periodic Advertising with Responses - Scanner, "
                + "Unsegmented Framed Mode, Channel Sounding, Channel Sounding (Host Support), "
                + "Channel Sounding Tone Quality Indication,,,,,,,,,,,,,,, LL Extended Feature Set"
        ),
    ]
}
