/// The parameters of commands and what Command Complete returns for them after the status (Vol 4, Part E, 7).
///
/// Commands without parameters, and commands that return a status alone or are answered by Command Status, have an empty
/// line or none.
enum CommandLayouts {
    static let parameters = LayoutTable(
        """
        0401 LAP:x24 Inquiry_Length:u8*1280ms Num_Responses:u8
        0402
        0405 BD_ADDR:address! Packet_Type:x16 Page_Scan_Repetition_Mode:@pageScanRepetition Reserved:u8 Clock_Offset:x16 \
        Allow_Role_Switch:@enable
        0406 Connection_Handle:handle! Reason:@error!
        0408 BD_ADDR:address!
        0409 BD_ADDR:address! Role:@role!
        040A BD_ADDR:address! Reason:@error!
        040B BD_ADDR:address! Link_Key:u128
        040C BD_ADDR:address!
        040D BD_ADDR:address! PIN_Code_Length:u8 PIN_Code:text16
        040E BD_ADDR:address!
        040F Connection_Handle:handle! Packet_Type:x16
        0411 Connection_Handle:handle!
        0413 Connection_Handle:handle! Encryption_Enable:@enable!
        0415 Connection_Handle:handle!
        0417 Key_Flag:u8
        0419 BD_ADDR:address! Page_Scan_Repetition_Mode:@pageScanRepetition Reserved:u8 Clock_Offset:x16
        041A BD_ADDR:address!
        041B Connection_Handle:handle!
        041C Connection_Handle:handle! Page_Number:u8!
        041D Connection_Handle:handle!
        041F Connection_Handle:handle!
        0420 Connection_Handle:handle!
        0428 Connection_Handle:handle! Transmit_Bandwidth:u32 Receive_Bandwidth:u32 Max_Latency:u16 Voice_Setting:x16 \
        Retransmission_Effort:u8 Packet_Type:x16
        042B BD_ADDR:address! IO_Capability:@ioCapability! OOB_Data_Present:u8 Authentication_Requirements:u8
        042C BD_ADDR:address!
        042D BD_ADDR:address!
        042E BD_ADDR:address! Numeric_Value:u32!
        042F BD_ADDR:address!
        0433 BD_ADDR:address!
        0434 BD_ADDR:address! Reason:@error!
        0803 Connection_Handle:handle! Sniff_Max_Interval:u16*625us Sniff_Min_Interval:u16*625us Sniff_Attempt:u16 \
        Sniff_Timeout:u16
        0804 Connection_Handle:handle!
        0809 Connection_Handle:handle!
        080B BD_ADDR:address! Role:@role!
        080C Connection_Handle:handle!
        080D Connection_Handle:handle! Link_Policy_Settings:x16!
        080E
        080F Default_Link_Policy_Settings:x16!
        0811 Connection_Handle:handle! Max_Latency:u16*625us Min_Remote_Timeout:u16*625us Min_Local_Timeout:u16*625us
        0C01 Event_Mask:#8eventMask
        0C03
        0C05 Filter_Type:u8! Condition:rest
        0C08 Connection_Handle:handle!
        0C0D BD_ADDR:address! Read_All:u8
        0C12 BD_ADDR:address! Delete_All:u8
        0C13 Local_Name:text248!
        0C14
        0C15
        0C16 Connection_Accept_Timeout:u16*625us!
        0C17
        0C18 Page_Timeout:u16*625us!
        0C19
        0C1A Scan_Enable:@scanEnable!
        0C1C Page_Scan_Interval:u16*625us! Page_Scan_Window:u16*625us!
        0C1E Inquiry_Scan_Interval:u16*625us! Inquiry_Scan_Window:u16*625us!
        0C20 Authentication_Enable:@enable!
        0C23
        0C24 Class_Of_Device:x24!
        0C26 Voice_Setting:x16!
        0C2D Connection_Handle:handle! Type:@powerType!
        0C2F Synchronous_Flow_Control_Enable:@enable!
        0C31 Flow_Control_Enable:@flowControl!
        0C33 Host_ACL_Data_Packet_Length:u16! Host_Synchronous_Data_Packet_Length:u8 Host_Total_Num_ACL_Data_Packets:u16! \
        Host_Total_Num_Synchronous_Data_Packets:u16
        0C35 Num_Handles:count Connections{ Connection_Handle:handle! Host_Num_Completed_Packets:u16! }
        0C36 Connection_Handle:handle!
        0C37 Connection_Handle:handle! Link_Supervision_Timeout:u16*625us!
        0C3A Num_Current_IAC:count Codes{ IAC_LAP:x24! }
        0C43 Scan_Type:u8!
        0C45 Inquiry_Mode:u8!
        0C47 Page_Scan_Type:u8!
        0C52 FEC_Required:u8 Extended_Inquiry_Response:ad
        0C53 Connection_Handle:handle!
        0C56 Simple_Pairing_Mode:@enable!
        0C59 Tx_Power:i8dBm!
        0C5B Erroneous_Data_Reporting:@enable!
        0C60 BD_ADDR:address! Notification_Type:@keypress!
        0C63 Event_Mask_Page_2:#8eventMask2
        0C68 Connection_Handle:handle! Type:@powerType!
        0C6C
        0C6D LE_Supported_Host:@enable! Simultaneous_LE_Host:u8
        0C7A Secure_Connections_Host_Support:@enable!
        0C7B Connection_Handle:handle!
        0C7C Connection_Handle:handle! Authenticated_Payload_Timeout:u16*10ms!
        0C84 Min_Encryption_Key_Size:u8!
        1001
        1002
        1003
        1004 Page_Number:u8!
        1005
        1009
        100A
        100B
        1401 Connection_Handle:handle!
        1403 Connection_Handle:handle!
        1405 Connection_Handle:handle!
        1406 Connection_Handle:handle!
        1408 Connection_Handle:handle!
        1802 Loopback_Mode:u8!
        1804 Simple_Pairing_Debug_Mode:@enable!
        2001 LE_Event_Mask:#8leEventMask
        2002
        2003
        2005 Random_Address:address!
        2006 Advertising_Interval_Min:u16*625us! Advertising_Interval_Max:u16*625us Advertising_Type:@advertisingType! \
        Own_Address_Type:@ownAddressType! Peer_Address_Type:@addressType Peer_Address:address \
        Advertising_Channel_Map:#advertisingChannels Advertising_Filter_Policy:@advertisingFilter
        2007
        2008 Advertising_Data:ad8of31!
        2009 Scan_Response_Data:ad8of31!
        200A Advertising_Enable:@enable!
        200B LE_Scan_Type:@scanType! LE_Scan_Interval:u16*625us! LE_Scan_Window:u16*625us! \
        Own_Address_Type:@ownAddressType Scanning_Filter_Policy:@scanFilter
        200C LE_Scan_Enable:@enable! Filter_Duplicates:@duplicates!
        200D LE_Scan_Interval:u16*625us LE_Scan_Window:u16*625us Initiator_Filter_Policy:@initiatorFilter \
        Peer_Address_Type:@addressType! Peer_Address:address! Own_Address_Type:@ownAddressType \
        Connection_Interval_Min:u16*1250us! Connection_Interval_Max:u16*1250us Max_Latency:u16 \
        Supervision_Timeout:u16*10ms! Min_CE_Length:u16*625us Max_CE_Length:u16*625us
        200E
        200F
        2010
        2011 Address_Type:@addressType! Address:address!
        2012 Address_Type:@addressType! Address:address!
        2013 Connection_Handle:handle! Connection_Interval_Min:u16*1250us! Connection_Interval_Max:u16*1250us! \
        Max_Latency:u16! Supervision_Timeout:u16*10ms! Min_CE_Length:u16*625us Max_CE_Length:u16*625us
        2014 Channel_Map:x40!
        2015 Connection_Handle:handle!
        2016 Connection_Handle:handle!
        2017 Key:u128 Plaintext_Data:u128
        2018
        2019 Connection_Handle:handle! Random_Number:x64 Encrypted_Diversifier:x16! Long_Term_Key:u128
        201A Connection_Handle:handle! Long_Term_Key:u128
        201B Connection_Handle:handle!
        201C
        201D RX_Channel:u8!
        201E TX_Channel:u8! Test_Data_Length:u8 Packet_Payload:u8
        201F
        2020 Connection_Handle:handle! Interval_Min:u16*1250us! Interval_Max:u16*1250us! Max_Latency:u16! \
        Timeout:u16*10ms! Min_CE_Length:u16*625us Max_CE_Length:u16*625us
        2021 Connection_Handle:handle! Reason:@error!
        2022 Connection_Handle:handle! TX_Octets:u16! TX_Time:u16*1us!
        2023
        2024 Suggested_Max_TX_Octets:u16! Suggested_Max_TX_Time:u16*1us!
        2025
        2026 Key_X_Coordinate:bytes32 Key_Y_Coordinate:bytes32
        2027 Peer_Identity_Address_Type:@addressType! Peer_Identity_Address:address! Peer_IRK:u128 Local_IRK:u128
        2028 Peer_Identity_Address_Type:@addressType! Peer_Identity_Address:address!
        2029
        202A
        202B Peer_Identity_Address_Type:@addressType! Peer_Identity_Address:address!
        202C Peer_Identity_Address_Type:@addressType! Peer_Identity_Address:address!
        202D Address_Resolution_Enable:@enable!
        202E RPA_Timeout:u16*1s!
        202F
        2030 Connection_Handle:handle!
        2031 All_PHYs:#allPHYs TX_PHYs:#phys! RX_PHYs:#phys!
        2032 Connection_Handle:handle! All_PHYs:#allPHYs TX_PHYs:#phys! RX_PHYs:#phys! PHY_Options:x16
        2035 Advertising_Handle:u8! Random_Address:address!
        2036 Advertising_Handle:u8! Advertising_Event_Properties:##extendedProperties! \
        Primary_Advertising_Interval_Min:u24*625us! Primary_Advertising_Interval_Max:u24*625us \
        Primary_Advertising_Channel_Map:#advertisingChannels Own_Address_Type:@ownAddressType! \
        Peer_Address_Type:@addressType Peer_Address:address Advertising_Filter_Policy:@advertisingFilter \
        Advertising_TX_Power:i8dBm Primary_Advertising_PHY:@phy Secondary_Advertising_Max_Skip:u8 \
        Secondary_Advertising_PHY:@phy Advertising_SID:u8 Scan_Request_Notification_Enable:@enable
        2037 Advertising_Handle:u8! Operation:@operation! Fragment_Preference:@fragmentPreference Advertising_Data:ad8!
        2038 Advertising_Handle:u8! Operation:@operation! Fragment_Preference:@fragmentPreference Scan_Response_Data:ad8!
        2039 Enable:@enable! Num_Sets:count Sets{ Advertising_Handle:u8! Duration:u16*10ms \
        Max_Extended_Advertising_Events:u8 }
        203A
        203B
        203C Advertising_Handle:u8!
        203D
        203E Advertising_Handle:u8! Periodic_Advertising_Interval_Min:u16*1250us! \
        Periodic_Advertising_Interval_Max:u16*1250us Periodic_Advertising_Properties:##periodicProperties
        203F Advertising_Handle:u8! Operation:@operation! Advertising_Data:ad8!
        2040 Enable:#periodicEnable! Advertising_Handle:u8!
        2041 Own_Address_Type:@ownAddressType! Scanning_Filter_Policy:@scanFilter Scanning_PHYs:phys! \
        Scans{ Scan_Type:@scanType! Scan_Interval:u16*625us! Scan_Window:u16*625us! }
        2042 Enable:@enable! Filter_Duplicates:@duplicates! Duration:u16*10ms Period:u16*1280ms
        2043 Initiator_Filter_Policy:@initiatorFilter Own_Address_Type:@ownAddressType Peer_Address_Type:@addressType! \
        Peer_Address:address! Initiating_PHYs:phys! Connections{ Scan_Interval:u16*625us Scan_Window:u16*625us \
        Connection_Interval_Min:u16*1250us! Connection_Interval_Max:u16*1250us Max_Latency:u16 \
        Supervision_Timeout:u16*10ms! Min_CE_Length:u16*625us Max_CE_Length:u16*625us }
        2044 Options:#syncOptions Advertising_SID:u8! Advertiser_Address_Type:@addressType! Advertiser_Address:address! \
        Skip:u16 Sync_Timeout:u16*10ms Sync_CTE_Type:x8
        2045
        2046 Sync_Handle:handle!
        2047 Advertiser_Address_Type:@addressType! Advertiser_Address:address! Advertising_SID:u8!
        2048 Advertiser_Address_Type:@addressType! Advertiser_Address:address! Advertising_SID:u8!
        2049
        204A
        204B
        204C
        204D RF_TX_Path_Compensation:u16 RF_RX_Path_Compensation:u16
        204E Peer_Identity_Address_Type:@addressType! Peer_Identity_Address:address! Privacy_Mode:@privacyMode!
        2058
        2059 Sync_Handle:handle! Enable:#periodicEnable!
        205A Connection_Handle:handle! Service_Data:x16! Sync_Handle:handle!
        205B Connection_Handle:handle! Service_Data:x16! Advertising_Handle:u8!
        205C Connection_Handle:handle! Mode:u8! Skip:u16 Sync_Timeout:u16*10ms CTE_Type:x8
        205D Mode:u8! Skip:u16 Sync_Timeout:u16*10ms CTE_Type:x8
        205E Key_X_Coordinate:bytes32 Key_Y_Coordinate:bytes32 Key_Type:u8
        205F Action:u8!
        2060
        2065 CIG_ID:u8!
        2066 Connection_Handle:handle!
        2067 Connection_Handle:handle! Reason:@error!
        206A BIG_Handle:u8! Reason:@error!
        206C BIG_Handle:u8!
        206D Connection_Handle:handle!
        2074 Bit_Number:u8! Bit_Value:u8!
        2076 Connection_Handle:handle! PHY:@phy!
        2077 Connection_Handle:handle! PHY:@phy!
        2078 Connection_Handle:handle! High_Threshold:u8 High_Hysteresis:u8 Low_Threshold:u8 Low_Hysteresis:u8 \
        Min_Time_Spent:u16
        2079 Connection_Handle:handle! Enable:@enable!
        207A Connection_Handle:handle! Local_Enable:@enable! Remote_Enable:@enable!
        207C Advertising_Handle:u8! Change_Reasons:x8!
        207D Subrate_Min:u16! Subrate_Max:u16! Max_Latency:u16! Continuation_Number:u16 Supervision_Timeout:u16*10ms
        207E Connection_Handle:handle! Subrate_Min:u16! Subrate_Max:u16! Max_Latency:u16! Continuation_Number:u16 \
        Supervision_Timeout:u16*10ms
        """
    )

    static let returns = LayoutTable(
        """
        0408 BD_ADDR:address!
        040B BD_ADDR:address!
        040C BD_ADDR:address!
        040D BD_ADDR:address!
        040E BD_ADDR:address!
        041A BD_ADDR:address!
        0420 Connection_Handle:handle! LMP_Handle:x8 Reserved:x32
        042B BD_ADDR:address!
        042C BD_ADDR:address!
        042D BD_ADDR:address!
        042E BD_ADDR:address!
        042F BD_ADDR:address!
        0430 BD_ADDR:address!
        0433 BD_ADDR:address!
        0434 BD_ADDR:address!
        0809 Connection_Handle:handle! Current_Role:@role!
        080C Connection_Handle:handle! Link_Policy_Settings:x16!
        080D Connection_Handle:handle!
        080E Default_Link_Policy_Settings:x16!
        0811 Connection_Handle:handle!
        0C08 Connection_Handle:handle!
        0C0D Max_Num_Keys:u16! Num_Keys_Read:u16!
        0C12 Num_Keys_Deleted:u16!
        0C14 Local_Name:text248!
        0C15 Connection_Accept_Timeout:u16*625us!
        0C17 Page_Timeout:u16*625us!
        0C19 Scan_Enable:@scanEnable!
        0C1B Page_Scan_Interval:u16*625us! Page_Scan_Window:u16*625us!
        0C1D Inquiry_Scan_Interval:u16*625us! Inquiry_Scan_Window:u16*625us!
        0C1F Authentication_Enable:@enable!
        0C23 Class_Of_Device:x24!
        0C25 Voice_Setting:x16!
        0C2D Connection_Handle:handle! Transmit_Power_Level:i8dBm!
        0C2E Synchronous_Flow_Control_Enable:@enable!
        0C36 Connection_Handle:handle! Link_Supervision_Timeout:u16*625us!
        0C37 Connection_Handle:handle!
        0C38 Num_Supported_IAC:u8!
        0C39 Num_Current_IAC:count Codes{ IAC_LAP:x24! }
        0C42 Inquiry_Scan_Type:u8!
        0C44 Inquiry_Mode:u8!
        0C46 Page_Scan_Type:u8!
        0C51 FEC_Required:u8 Extended_Inquiry_Response:ad
        0C55 Simple_Pairing_Mode:@enable!
        0C57 C:u128 R:u128
        0C58 Tx_Power:i8dBm!
        0C5A Erroneous_Data_Reporting:@enable!
        0C60 BD_ADDR:address!
        0C68 Connection_Handle:handle! Transmit_Power_Level_GFSK:i8dBm! Transmit_Power_Level_DQPSK:i8dBm \
        Transmit_Power_Level_8DPSK:i8dBm
        0C6C LE_Supported_Host:@enable! Simultaneous_LE_Host:u8
        0C79 Secure_Connections_Host_Support:@enable!
        0C7B Connection_Handle:handle! Authenticated_Payload_Timeout:u16*10ms!
        0C7C Connection_Handle:handle!
        0C80 Extended_Inquiry_Length:u16!
        1001 HCI_Version:@version! HCI_Subversion:x16 LMP_Version:@version! Company_Identifier:@@company! LMP_Subversion:x16
        1002 Supported_Commands:bytes64
        1003 LMP_Features:x64!
        1004 Page_Number:u8! Maximum_Page_Number:u8! Extended_LMP_Features:x64!
        1005 ACL_Data_Packet_Length:u16! Synchronous_Data_Packet_Length:u8 Total_Num_ACL_Data_Packets:u16! \
        Total_Num_Synchronous_Data_Packets:u16
        1009 BD_ADDR:address!
        100A Max_ACL_Data_Packet_Length:u16! Data_Block_Length:u16! Total_Num_Data_Blocks:u16!
        100B Num_Supported_Standard_Codecs:count Standard_Codecs{ Codec_ID:u8! } \
        Num_Supported_Vendor_Specific_Codecs:count Vendor_Specific_Codecs{ Codec_ID:x32! }
        1401 Connection_Handle:handle! Failed_Contact_Counter:u16!
        1403 Connection_Handle:handle! Link_Quality:u8!
        1405 Connection_Handle:handle! RSSI:i8dBm!
        1406 Connection_Handle:handle! AFH_Mode:u8 AFH_Channel_Map:bytes10
        1408 Connection_Handle:handle! Key_Size:u8!
        1801 Loopback_Mode:u8!
        2002 LE_ACL_Data_Packet_Length:u16! Total_Num_LE_ACL_Data_Packets:u8!
        2003 LE_Features:#8leFeatures
        2007 TX_Power_Level:i8dBm!
        200F Filter_Accept_List_Size:u8!
        2015 Connection_Handle:handle! Channel_Map:x40!
        2017 Encrypted_Data:u128!
        2018 Random_Number:x64!
        201A Connection_Handle:handle!
        201B Connection_Handle:handle!
        201C LE_States:x64!
        201F Num_Packets:u16!
        2020 Connection_Handle:handle!
        2021 Connection_Handle:handle!
        2022 Connection_Handle:handle!
        2023 Suggested_Max_TX_Octets:u16! Suggested_Max_TX_Time:u16*1us!
        202A Resolving_List_Size:u8!
        202B Peer_Resolvable_Address:address!
        202C Local_Resolvable_Address:address!
        202F Supported_Max_TX_Octets:u16! Supported_Max_TX_Time:u16*1us! Supported_Max_RX_Octets:u16! \
        Supported_Max_RX_Time:u16*1us!
        2030 Connection_Handle:handle! TX_PHY:@phy! RX_PHY:@phy!
        2036 Selected_TX_Power:i8dBm!
        203A Max_Advertising_Data_Length:u16!
        203B Num_Supported_Advertising_Sets:u8!
        204A Periodic_Advertiser_List_Size:u8!
        204B Min_TX_Power:i8dBm! Max_TX_Power:i8dBm!
        204C RF_TX_Path_Compensation:u16! RF_RX_Path_Compensation:u16!
        2058 Supported_Switching_Sampling_Rates:x8 Num_Antennae:u8! Max_Switching_Pattern_Length:u8 Max_CTE_Length:u8
        205A Connection_Handle:handle!
        205B Connection_Handle:handle!
        205C Connection_Handle:handle!
        2060 LE_ACL_Data_Packet_Length:u16! Total_Num_LE_ACL_Data_Packets:u8! ISO_Data_Packet_Length:u16! \
        Total_Num_ISO_Data_Packets:u8!
        2065 CIG_ID:u8!
        2067 Connection_Handle:handle!
        206C BIG_Handle:u8!
        2076 Connection_Handle:handle! PHY:@phy! Current_TX_Power_Level:i8dBm! Max_TX_Power_Level:i8dBm!
        2078 Connection_Handle:handle!
        2079 Connection_Handle:handle!
        207A Connection_Handle:handle!
        """
    )

    /// Commands of which it is known that they return a status alone: all others that have a layout for their parameters.
    static func returns(of opcode: UInt16) -> ParameterLayout? {
        returns[opcode] ?? (parameters[opcode] == nil ? nil : .empty)
    }
}
