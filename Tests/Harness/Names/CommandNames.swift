/// The commands that LE hosts send (Vol 4, Part E, 7), without the prefix HCI_.
enum CommandNames {
    static let table = NameTable(
        """
        0406 Disconnect
        041D Read_Remote_Version_Information
        0C01 Set_Event_Mask
        0C03 Reset
        0C05 Set_Event_Filter
        0C13 Write_Local_Name
        0C14 Read_Local_Name
        0C16 Write_Connection_Accept_Timeout
        0C23 Read_Class_of_Device
        0C24 Write_Class_of_Device
        0C25 Read_Voice_Setting
        0C2D Read_Transmit_Power_Level
        0C31 Set_Controller_To_Host_Flow_Control
        0C33 Host_Buffer_Size
        0C35 Host_Number_Of_Completed_Packets
        0C38 Read_Number_Of_Supported_IAC
        0C39 Read_Current_IAC_LAP
        0C45 Write_Inquiry_Mode
        0C56 Write_Simple_Pairing_Mode
        0C63 Set_Event_Mask_Page_2
        0C6C Read_LE_Host_Support
        0C6D Write_LE_Host_Support
        0C7A Write_Secure_Connections_Host_Support
        0C7B Read_Authenticated_Payload_Timeout
        0C7C Write_Authenticated_Payload_Timeout
        1001 Read_Local_Version_Information
        1002 Read_Local_Supported_Commands
        1003 Read_Local_Supported_Features
        1004 Read_Local_Extended_Features
        1005 Read_Buffer_Size
        1009 Read_BD_ADDR
        100B Read_Local_Supported_Codecs
        1405 Read_RSSI
        2001 LE_Set_Event_Mask
        2002 LE_Read_Buffer_Size
        2003 LE_Read_Local_Supported_Features
        2005 LE_Set_Random_Address
        2006 LE_Set_Advertising_Parameters
        2007 LE_Read_Advertising_Physical_Channel_Tx_Power
        2008 LE_Set_Advertising_Data
        2009 LE_Set_Scan_Response_Data
        200A LE_Set_Advertising_Enable
        200B LE_Set_Scan_Parameters
        200C LE_Set_Scan_Enable
        200D LE_Create_Connection
        200E LE_Create_Connection_Cancel
        200F LE_Read_Filter_Accept_List_Size
        2010 LE_Clear_Filter_Accept_List
        2011 LE_Add_Device_To_Filter_Accept_List
        2012 LE_Remove_Device_From_Filter_Accept_List
        2013 LE_Connection_Update
        2014 LE_Set_Host_Channel_Classification
        2015 LE_Read_Channel_Map
        2016 LE_Read_Remote_Features
        2017 LE_Encrypt
        2018 LE_Rand
        2019 LE_Enable_Encryption
        201A LE_Long_Term_Key_Request_Reply
        201B LE_Long_Term_Key_Request_Negative_Reply
        201C LE_Read_Supported_States
        2020 LE_Remote_Connection_Parameter_Request_Reply
        2021 LE_Remote_Connection_Parameter_Request_Negative_Reply
        2022 LE_Set_Data_Length
        2023 LE_Read_Suggested_Default_Data_Length
        2024 LE_Write_Suggested_Default_Data_Length
        2025 LE_Read_Local_P-256_Public_Key
        2026 LE_Generate_DHKey
        2027 LE_Add_Device_To_Resolving_List
        2028 LE_Remove_Device_From_Resolving_List
        2029 LE_Clear_Resolving_List
        202A LE_Read_Resolving_List_Size
        202D LE_Set_Address_Resolution_Enable
        202E LE_Set_Resolvable_Private_Address_Timeout
        202F LE_Read_Maximum_Data_Length
        2030 LE_Read_PHY
        2031 LE_Set_Default_PHY
        2032 LE_Set_PHY
        2035 LE_Set_Advertising_Set_Random_Address
        2036 LE_Set_Extended_Advertising_Parameters
        2037 LE_Set_Extended_Advertising_Data
        2038 LE_Set_Extended_Scan_Response_Data
        2039 LE_Set_Extended_Advertising_Enable
        203A LE_Read_Maximum_Advertising_Data_Length
        203B LE_Read_Number_of_Supported_Advertising_Sets
        203C LE_Remove_Advertising_Set
        203D LE_Clear_Advertising_Sets
        2041 LE_Set_Extended_Scan_Parameters
        2042 LE_Set_Extended_Scan_Enable
        2043 LE_Extended_Create_Connection
        204A LE_Read_Periodic_Advertiser_List_Size
        204B LE_Read_Transmit_Power
        204E LE_Set_Privacy_Mode
        2060 LE_Read_Buffer_Size_V2
        2074 LE_Set_Host_Feature
        """
    )

    /// The name, or the number if there is none.
    static func name(of opcode: UInt16) -> String {
        table.name(of: Int(opcode)) ?? "0x" + opcode.hexadecimal
    }
}

extension UInt16 {
    /// The opcode for a name or a number.
    init(command text: String) throws(Complaint) {
        if let opcode = CommandNames.table.number(of: text) {
            self = UInt16(truncatingIfNeeded: opcode)
        } else if text.hasPrefix("0x"), let number = UInt64(number: text), number <= 0xFFFF {
            self = UInt16(truncatingIfNeeded: number)
        } else {
            throw Complaint("\"\(text)\" is no command; use a name such as LE_Set_Advertising_Enable, or 0x200A")
        }
    }
}

extension FixedWidthInteger {
    /// The number in hexadecimal, with two digits for each byte.
    var hexadecimal: String {
        let digits = String(self, radix: 16, uppercase: true)
        return String(repeating: "0", count: Swift.max(0, Self.bitWidth / 4 - digits.count)) + digits
    }
}
