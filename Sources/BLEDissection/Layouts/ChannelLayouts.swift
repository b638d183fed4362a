/// The L2CAP signaling commands of LE and of BR/EDR (Vol 3, Part A, 4).
enum SignalingLayouts {
    static let commands = LayoutTable(
        """
        01 Reason:@@rejectReason! Detail?{ Data:rest }
        02 PSM:@@psm! Source_CID:x16!
        03 Destination_CID:x16! Source_CID:x16! Result:@@connectionResult! Status:@@connectionStatus
        04 Destination_CID:x16! Flags:##continuation Options?{ Options:rest }
        05 Source_CID:x16! Flags:##continuation Result:@@configureResult! Options?{ Options:rest }
        06 Destination_CID:x16! Source_CID:x16!
        07 Destination_CID:x16! Source_CID:x16!
        08 Data:rest
        09 Data:rest
        0A Information_Type:@@informationType!
        0B Information_Type:@@informationType! Result:@@informationResult! Information?{ Data:rest }
        12 Interval_Min:u16*1250us! Interval_Max:u16*1250us! Latency:u16! Timeout:u16*10ms!
        13 Result:@@updateResult!
        14 SPSM:@@psm! Source_CID:x16! MTU:u16! MPS:u16! Initial_Credits:u16!
        15 Destination_CID:x16! MTU:u16! MPS:u16! Initial_Credits:u16! Result:@@creditResult!
        16 CID:x16! Credits:u16!
        17 SPSM:@@psm! MTU:u16! MPS:u16! Initial_Credits:u16! Channels{ Source_CID:x16! }
        18 MTU:u16! MPS:u16! Initial_Credits:u16! Result:@@creditResult! Channels{ Destination_CID:x16! }
        19 MTU:u16! MPS:u16! Channels{ Destination_CID:x16! }
        1A Result:@@reconfigureResult!
        """
    )

    static let names: [UInt8: String] = [
        0x01: "Command Reject",
        0x02: "Connection Request",
        0x03: "Connection Response",
        0x04: "Configuration Request",
        0x05: "Configuration Response",
        0x06: "Disconnection Request",
        0x07: "Disconnection Response",
        0x08: "Echo Request",
        0x09: "Echo Response",
        0x0A: "Information Request",
        0x0B: "Information Response",
        0x0C: "Create Channel Request",
        0x0D: "Create Channel Response",
        0x0E: "Move Channel Request",
        0x0F: "Move Channel Response",
        0x10: "Move Channel Confirmation Request",
        0x11: "Move Channel Confirmation Response",
        0x12: "Connection Parameter Update Request",
        0x13: "Connection Parameter Update Response",
        0x14: "LE Credit Based Connection Request",
        0x15: "LE Credit Based Connection Response",
        0x16: "Flow Control Credit Indication",
        0x17: "Credit Based Connection Request",
        0x18: "Credit Based Connection Response",
        0x19: "Credit Based Reconfigure Request",
        0x1A: "Credit Based Reconfigure Response",
    ]
}

/// The PDUs of the Security Manager (Vol 3, Part H, 3).
enum SecurityLayouts {
    static let commands = LayoutTable(
        """
        01 IO_Capability:@ioCapability! OOB_Data_Flag:@oob AuthReq:#authReq! Maximum_Encryption_Key_Size:u8! \
        Initiator_Key_Distribution:#keys! Responder_Key_Distribution:#keys!
        02 IO_Capability:@ioCapability! OOB_Data_Flag:@oob AuthReq:#authReq! Maximum_Encryption_Key_Size:u8! \
        Initiator_Key_Distribution:#keys! Responder_Key_Distribution:#keys!
        03 Confirm_Value:u128!
        04 Random_Value:u128!
        05 Reason:@pairingFailed!
        06 Long_Term_Key:u128!
        07 EDIV:x16! Rand:x64!
        08 Identity_Resolving_Key:u128!
        09 Address_Type:@addressType! Address:address!
        0A Signature_Key:u128!
        0B AuthReq:#authReq!
        0C Public_Key_X:bytes32 Public_Key_Y:bytes32
        0D DHKey_Check:u128!
        0E Notification_Type:@keypress!
        """
    )

    static let names: [UInt8: String] = [
        0x01: "Pairing Request",
        0x02: "Pairing Response",
        0x03: "Pairing Confirm",
        0x04: "Pairing Random",
        0x05: "Pairing Failed",
        0x06: "Encryption Information",
        0x07: "Central Identification",
        0x08: "Identity Information",
        0x09: "Identity Address Information",
        0x0A: "Signing Information",
        0x0B: "Security Request",
        0x0C: "Pairing Public Key",
        0x0D: "Pairing DHKey Check",
        0x0E: "Pairing Keypress Notification",
    ]
}
