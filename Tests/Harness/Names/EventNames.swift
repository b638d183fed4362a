/// The events that controllers send to LE hosts (Vol 4, Part E, 7.7), without the prefix HCI_.
enum EventNames {
    static let leMeta: UInt8 = 0x3E

    static let events = NameTable(
        """
        05 Disconnection_Complete
        08 Encryption_Change
        0C Read_Remote_Version_Information_Complete
        0E Command_Complete
        0F Command_Status
        10 Hardware_Error
        13 Number_Of_Completed_Packets
        1A Data_Buffer_Overflow
        30 Encryption_Key_Refresh_Complete
        3E LE_Meta
        57 Authenticated_Payload_Timeout_Expired
        59 Encryption_Change_V2
        FF Vendor
        """
    )

    /// Events within LE Meta, by their subevent codes (7.7.65).
    static let subevents = NameTable(
        """
        01 LE_Connection_Complete
        02 LE_Advertising_Report
        03 LE_Connection_Update_Complete
        04 LE_Read_Remote_Features_Complete
        05 LE_Long_Term_Key_Request
        06 LE_Remote_Connection_Parameter_Request
        07 LE_Data_Length_Change
        08 LE_Read_Local_P-256_Public_Key_Complete
        09 LE_Generate_DHKey_Complete
        0A LE_Enhanced_Connection_Complete
        0B LE_Directed_Advertising_Report
        0C LE_PHY_Update_Complete
        0D LE_Extended_Advertising_Report
        11 LE_Scan_Timeout
        12 LE_Advertising_Set_Terminated
        13 LE_Scan_Request_Received
        14 LE_Channel_Selection_Algorithm
        """
    )

    /// The codes for a name or a number.
    static func code(of text: String) throws(Complaint) -> (code: UInt8, subevent: UInt8?) {
        if let subevent = subevents.number(of: text) { return (leMeta, UInt8(truncatingIfNeeded: subevent)) }
        if let code = events.number(of: text) { return (UInt8(truncatingIfNeeded: code), nil) }
        guard text.hasPrefix("0x"), let number = UInt64(number: text), number <= 0xFF else {
            throw Complaint("\"\(text)\" is no event; use a name such as Disconnection_Complete, or 0x05")
        }
        return (UInt8(truncatingIfNeeded: number), nil)
    }
}
