/// The names of PDUs on the fixed channels, by their first byte.
enum ChannelNames {
    /// The protocol of a channel, or its number.
    static func name(of channel: UInt16) -> String {
        switch channel {
        case 4: "ATT"
        case 5: "signaling"
        case 6: "SMP"
        default: "channel 0x" + channel.hexadecimal
        }
    }

    /// The name of the PDU with this first byte on a channel.
    static func name(ofPayload first: UInt8, on channel: UInt16) -> String? {
        switch channel {
        case 4: attributes.name(of: Int(first))
        case 5: signaling.name(of: Int(first))
        case 6: security.name(of: Int(first))
        default: nil
        }
    }

    /// Vol 3, Part F, 3.4.8.
    private static let attributes = NameTable(
        """
        01 Error_Response
        02 Exchange_MTU_Request
        03 Exchange_MTU_Response
        04 Find_Information_Request
        05 Find_Information_Response
        06 Find_By_Type_Value_Request
        07 Find_By_Type_Value_Response
        08 Read_By_Type_Request
        09 Read_By_Type_Response
        0A Read_Request
        0B Read_Response
        0C Read_Blob_Request
        0D Read_Blob_Response
        0E Read_Multiple_Request
        0F Read_Multiple_Response
        10 Read_By_Group_Type_Request
        11 Read_By_Group_Type_Response
        12 Write_Request
        13 Write_Response
        16 Prepare_Write_Request
        17 Prepare_Write_Response
        18 Execute_Write_Request
        19 Execute_Write_Response
        1B Handle_Value_Notification
        1D Handle_Value_Indication
        1E Handle_Value_Confirmation
        20 Read_Multiple_Variable_Request
        21 Read_Multiple_Variable_Response
        23 Multiple_Handle_Value_Notification
        52 Write_Command
        D2 Signed_Write_Command
        """
    )

    /// Vol 3, Part F, 3.4.1.1.
    static let attributeErrors = NameTable(
        """
        01 Invalid_Handle
        02 Read_Not_Permitted
        03 Write_Not_Permitted
        04 Invalid_PDU
        05 Insufficient_Authentication
        06 Request_Not_Supported
        07 Invalid_Offset
        08 Insufficient_Authorization
        09 Prepare_Queue_Full
        0A Attribute_Not_Found
        0B Attribute_Not_Long
        0C Encryption_Key_Size_Too_Short
        0D Invalid_Attribute_Value_Length
        0E Unlikely_Error
        0F Insufficient_Encryption
        10 Unsupported_Group_Type
        11 Insufficient_Resources
        12 Database_Out_Of_Sync
        13 Value_Not_Allowed
        """
    )

    /// Vol 3, Part A, 4.
    private static let signaling = NameTable(
        """
        01 Command_Reject
        06 Disconnection_Request
        07 Disconnection_Response
        12 Connection_Parameter_Update_Request
        13 Connection_Parameter_Update_Response
        14 LE_Credit_Based_Connection_Request
        15 LE_Credit_Based_Connection_Response
        16 Flow_Control_Credit
        17 Credit_Based_Connection_Request
        18 Credit_Based_Connection_Response
        19 Credit_Based_Reconfigure_Request
        1A Credit_Based_Reconfigure_Response
        """
    )

    /// Vol 3, Part H, 3.3.
    private static let security = NameTable(
        """
        01 Pairing_Request
        02 Pairing_Response
        03 Pairing_Confirm
        04 Pairing_Random
        05 Pairing_Failed
        06 Encryption_Information
        07 Central_Identification
        08 Identity_Information
        09 Identity_Address_Information
        0A Signing_Information
        0B Security_Request
        0C Pairing_Public_Key
        0D Pairing_DHKey_Check
        0E Keypress_Notification
        """
    )
}
