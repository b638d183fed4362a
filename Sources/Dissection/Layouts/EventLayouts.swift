/// The parameters of events (Vol 4, Part E, 7.7). Command Complete, whose parameters depend on the command, is not here.
enum EventLayouts {
    static let events = LayoutTable(
        """
        01 Status:@error!
        02 Num_Responses:count Responses{ BD_ADDR:address! Page_Scan_Repetition_Mode:@pageScanRepetition \
        Reserved:bytes2 Class_Of_Device:x24 Clock_Offset:x16 }
        03 Status:@error! Connection_Handle:handle! BD_ADDR:address! Link_Type:@linkType! Encryption_Enabled:@enable
        04 BD_ADDR:address! Class_Of_Device:x24! Link_Type:@linkType!
        05 Status:@error Connection_Handle:handle! Reason:@error!
        06 Status:@error! Connection_Handle:handle!
        07 Status:@error! BD_ADDR:address! Remote_Name:text248!
        08 Status:@error! Connection_Handle:handle! Encryption_Enabled:@encryption!
        09 Status:@error! Connection_Handle:handle!
        0B Status:@error! Connection_Handle:handle! LMP_Features:x64!
        0C Status:@error! Connection_Handle:handle! Version:@version! Company_Identifier:@@company! Subversion:x16
        0D Status:@error! Connection_Handle:handle! Reserved:x8 Service_Type:u8 Token_Rate:u32 Peak_Bandwidth:u32 \
        Latency:u32 Delay_Variation:u32
        0F Status:@error! Num_HCI_Command_Packets:u8 Command_Opcode:x16
        10 Hardware_Code:x8!
        11 Connection_Handle:handle!
        12 Status:@error! BD_ADDR:address! New_Role:@role!
        13 Num_Handles:count Connections{ Connection_Handle:handle! Num_Completed_Packets:u16! }
        14 Status:@error! Connection_Handle:handle! Current_Mode:@mode! Interval:u16*625us!
        15 Num_Keys:count Keys{ BD_ADDR:address! Link_Key:u128 }
        16 BD_ADDR:address!
        17 BD_ADDR:address!
        18 BD_ADDR:address! Link_Key:u128 Key_Type:@linkKeyType!
        1A Link_Type:@linkType!
        1B Connection_Handle:handle! LMP_Max_Slots:u8!
        1C Status:@error! Connection_Handle:handle! Clock_Offset:x16!
        1D Status:@error! Connection_Handle:handle! Packet_Type:x16!
        1E Connection_Handle:handle!
        20 BD_ADDR:address! Page_Scan_Repetition_Mode:@pageScanRepetition!
        22 Num_Responses:count Responses{ BD_ADDR:address! Page_Scan_Repetition_Mode:@pageScanRepetition Reserved:x8 \
        Class_Of_Device:x24 Clock_Offset:x16 RSSI:i8dBm! }
        23 Status:@error! Connection_Handle:handle! Page_Number:u8! Maximum_Page_Number:u8 Extended_LMP_Features:x64!
        2C Status:@error! Connection_Handle:handle! BD_ADDR:address! Link_Type:@linkType! Transmission_Interval:u8 \
        Retransmission_Window:u8 RX_Packet_Length:u16 TX_Packet_Length:u16 Air_Mode:u8
        2D Status:@error! Connection_Handle:handle! Transmission_Interval:u8 Retransmission_Window:u8 \
        RX_Packet_Length:u16 TX_Packet_Length:u16
        2E Status:@error! Connection_Handle:handle! Max_TX_Latency:u16*625us Max_RX_Latency:u16*625us \
        Min_Remote_Timeout:u16*625us Min_Local_Timeout:u16*625us
        2F Num_Responses:u8 BD_ADDR:address! Page_Scan_Repetition_Mode:@pageScanRepetition Reserved:x8 \
        Class_Of_Device:x24 Clock_Offset:x16 RSSI:i8dBm! Extended_Inquiry_Response:ad!
        30 Status:@error! Connection_Handle:handle!
        31 BD_ADDR:address!
        32 BD_ADDR:address! IO_Capability:@ioCapability! OOB_Data_Present:u8 Authentication_Requirements:u8
        33 BD_ADDR:address! Numeric_Value:u32!
        34 BD_ADDR:address!
        35 BD_ADDR:address!
        36 Status:@error! BD_ADDR:address!
        38 Connection_Handle:handle! Link_Supervision_Timeout:u16*625us!
        39 Connection_Handle:handle!
        3B BD_ADDR:address! Passkey:u32!
        3C BD_ADDR:address! Notification_Type:@keypress!
        3D BD_ADDR:address! Host_Supported_Features:x64!
        57 Connection_Handle:handle!
        59 Status:@error! Connection_Handle:handle! Encryption_Enabled:@encryption! Encryption_Key_Size:u8!
        """
    )

    static let leEvents = LayoutTable(
        """
        01 Status:@error! Connection_Handle:handle! Role:@role! Peer_Address_Type:@addressType! Peer_Address:address! \
        Connection_Interval:u16*1250us! Peripheral_Latency:u16! Supervision_Timeout:u16*10ms! \
        Central_Clock_Accuracy:@clockAccuracy
        02 Num_Reports:count Reports{ Event_Type:@legacyReport! Address_Type:@addressType! Address:address! Data:ad8! \
        RSSI:i8dBm! }
        03 Status:@error! Connection_Handle:handle! Connection_Interval:u16*1250us! Peripheral_Latency:u16! \
        Supervision_Timeout:u16*10ms!
        04 Status:@error! Connection_Handle:handle! LE_Features:#8leFeatures
        05 Connection_Handle:handle! Random_Number:x64 Encrypted_Diversifier:x16!
        06 Connection_Handle:handle! Interval_Min:u16*1250us! Interval_Max:u16*1250us! Max_Latency:u16! Timeout:u16*10ms!
        07 Connection_Handle:handle! Max_TX_Octets:u16! Max_TX_Time:u16*1us! Max_RX_Octets:u16! Max_RX_Time:u16*1us!
        08 Status:@error! Key_X_Coordinate:bytes32 Key_Y_Coordinate:bytes32
        09 Status:@error! DH_Key:bytes32
        0A Status:@error! Connection_Handle:handle! Role:@role! Peer_Address_Type:@addressType! Peer_Address:address! \
        Local_Resolvable_Private_Address:address Peer_Resolvable_Private_Address:address Connection_Interval:u16*1250us! \
        Peripheral_Latency:u16! Supervision_Timeout:u16*10ms! Central_Clock_Accuracy:@clockAccuracy
        0B Num_Reports:count Reports{ Event_Type:@legacyReport! Address_Type:@addressType! Address:address! \
        Direct_Address_Type:@addressType! Direct_Address:address! RSSI:i8dBm! }
        0C Status:@error! Connection_Handle:handle! TX_PHY:@phy! RX_PHY:@phy!
        0D Num_Reports:count Reports{ Event_Type:##extendedReport! Address_Type:@addressType! Address:address! \
        Primary_PHY:@phy Secondary_PHY:@phy Advertising_SID:u8 TX_Power:i8dBm RSSI:i8dBm! \
        Periodic_Advertising_Interval:u16*1250us Direct_Address_Type:@addressType Direct_Address:address Data:ad8! }
        0E Status:@error! Sync_Handle:handle! Advertising_SID:u8! Advertiser_Address_Type:@addressType! \
        Advertiser_Address:address! Advertiser_PHY:@phy! Periodic_Advertising_Interval:u16*1250us! \
        Advertiser_Clock_Accuracy:@clockAccuracy
        0F Sync_Handle:handle! TX_Power:i8dBm RSSI:i8dBm! CTE_Type:x8 Data_Status:@dataStatus Data:ad8!
        10 Sync_Handle:handle!
        11
        12 Status:@error! Advertising_Handle:u8! Connection_Handle:handle! Num_Completed_Extended_Advertising_Events:u8!
        13 Advertising_Handle:u8! Scanner_Address_Type:@addressType! Scanner_Address:address!
        14 Connection_Handle:handle! Channel_Selection_Algorithm:@channelSelection!
        17 Status:@error! Connection_Handle:handle!
        18 Status:@error! Connection_Handle:handle! Service_Data:x16! Sync_Handle:handle! Advertising_SID:u8 \
        Advertiser_Address_Type:@addressType! Advertiser_Address:address! Advertiser_PHY:@phy \
        Periodic_Advertising_Interval:u16*1250us Advertiser_Clock_Accuracy:@clockAccuracy
        1A ACL_Connection_Handle:handle! CIS_Connection_Handle:handle! CIG_ID:u8! CIS_ID:u8!
        1C BIG_Handle:u8! Reason:@error!
        1E BIG_Handle:u8! Reason:@error!
        1F Status:@error! Connection_Handle:handle! Peer_Clock_Accuracy:@clockAccuracy!
        20 Connection_Handle:handle! Current_Path_Loss:u8! Zone_Entered:u8!
        21 Status:@error! Connection_Handle:handle! Reason:u8! PHY:@phy! TX_Power_Level:i8dBm! TX_Power_Level_Flag:x8 \
        Delta:i8
        23 Status:@error! Connection_Handle:handle! Subrate_Factor:u16! Peripheral_Latency:u16! Continuation_Number:u16 \
        Supervision_Timeout:u16*10ms!
        29 Status:@error! Connection_Handle:handle! Role:@role! Peer_Address_Type:@addressType! Peer_Address:address! \
        Local_Resolvable_Private_Address:address Peer_Resolvable_Private_Address:address Connection_Interval:u16*1250us! \
        Peripheral_Latency:u16! Supervision_Timeout:u16*10ms! Central_Clock_Accuracy:@clockAccuracy \
        Advertising_Handle:x8 Sync_Handle:handle
        """
    )
}
