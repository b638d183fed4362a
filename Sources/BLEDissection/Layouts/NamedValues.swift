/// The names of the values of an enumerated parameter.
final class NamedValues: Sendable {
    /// The names of the lowest values, which are nearly all names.
    private let low: [String?]
    private let names: [UInt64: String]

    /// - Parameter list: numbers with their names, `0=public 1=random`. An underscore stands for a space.
    private convenience init(_ list: String) {
        var names: [UInt64: String] = [:]
        for entry in list.split(separator: " ") {
            let parts = entry.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { continue }
            let text = parts[0].hasPrefix("0x") ? UInt64(parts[0].dropFirst(2), radix: 16) : UInt64(parts[0])
            guard let number = text else { continue }
            names[number] = String(parts[1].map { $0 == "_" ? " " : $0 })
        }
        self.init(names)
    }

    init(_ names: [UInt64: String]) {
        low = (0..<256).map { names[$0] }
        self.names = names
    }

    subscript(value: UInt64) -> String? { value < 256 ? low[Int(value)] : names[value] }

    /// The enumerations by their name in layouts.
    static let all: [String: NamedValues] = [
        "error": errors,
        "attError": attErrors,
        "company": NamedValues(companies()),
        "addressType": NamedValues(
            "0=public 1=random 2=public_identity 3=random_identity 0xFE=unresolved 0xFF=anonymous"
        ),
        "ownAddressType": NamedValues("0=public 1=random 2=resolvable_or_public 3=resolvable_or_random"),
        "role": NamedValues("0=central 1=peripheral"),
        "legacyReport": NamedValues([
            0: "ADV_IND", 1: "ADV_DIRECT_IND", 2: "ADV_SCAN_IND", 3: "ADV_NONCONN_IND", 4: "SCAN_RSP",
        ]),
        "advertisingType": NamedValues([
            0: "ADV_IND", 1: "ADV_DIRECT_IND (high duty cycle)", 2: "ADV_SCAN_IND", 3: "ADV_NONCONN_IND",
            4: "ADV_DIRECT_IND (low duty cycle)",
        ]),
        "advertisingFilter": NamedValues("0=all 1=scan_accept_list 2=connect_accept_list 3=accept_list"),
        "scanType": NamedValues("0=passive 1=active"),
        "scanFilter": NamedValues(
            "0=basic_unfiltered 1=basic_filtered 2=extended_unfiltered 3=extended_filtered "
                + "4=basic_unfiltered,_all_PDUs 5=basic_filtered,_all_PDUs 6=extended_unfiltered,_all_PDUs "
                + "7=extended_filtered,_all_PDUs 12=basic_unfiltered,_decision_PDUs 13=basic_filtered,_decision_PDUs "
                + "14=extended_unfiltered,_decision_PDUs 15=extended_filtered,_decision_PDUs"
        ),
        "initiatorFilter": NamedValues(
            "0=peer_address 1=accept_list 2=decision_PDUs 3=accept_list,_all_PDUs 4=decision_PDUs_or_accept_list"
        ),
        "testField": NamedValues("0=resolvable_tag 6=advertising_mode 7=RSSI 8=path_loss 9=AdvA"),
        "monitorCondition": NamedValues("0=RSSI_below_low_threshold 1=RSSI_at_high_threshold"),
        "frameSpaceInitiator": NamedValues("0=local_host 1=local_controller 2=peer"),
        "enable": NamedValues("0=disabled 1=enabled"),
        "duplicates": NamedValues("0=not_filtered 1=filtered 2=filtered_per_period"),
        "phy": NamedValues("0=none 1=LE_1M 2=LE_2M 3=LE_Coded 4=LE_Coded_S2"),
        "clockAccuracy": NamedValues(
            "0=500_ppm 1=250_ppm 2=150_ppm 3=100_ppm 4=75_ppm 5=50_ppm 6=30_ppm 7=20_ppm"
        ),
        "encryption": NamedValues("0=off 1=on 2=on_with_AES-CCM"),
        "version": NamedValues(
            "0=1.0b 1=1.1 2=1.2 3=2.0 4=2.1 5=3.0 6=4.0 7=4.1 8=4.2 9=5.0 10=5.1 11=5.2 12=5.3 13=5.4 14=6.0 15=6.1"
        ),
        "csRole": NamedValues("0=initiator 1=reflector"),
        "csMode": NamedValues("1=mode_1 2=mode_2 3=mode_3 0xFF=none"),
        "csRTT": NamedValues(
            "0=access_address 1=sounding_32_bits 2=sounding_96_bits 3=random_32_bits 4=random_64_bits 5=random_96_bits "
                + "6=random_128_bits"
        ),
        "csPHY": NamedValues("1=LE_1M 2=LE_2M 3=LE_2M_2BT"),
        "csSelection": NamedValues("0=algorithm_3b 1=algorithm_3c"),
        "csShape": NamedValues("0=hat 1=X"),
        "csContext": NamedValues("0=local 1=both"),
        "csAction": NamedValues("0=removed 1=created"),
        "csDone": NamedValues("0=complete 1=partial 15=aborted"),
        "syncTransferMode": NamedValues("0=ignored 1=not_reported 2=reported 3=duplicates_filtered"),
        "operation": NamedValues("0=intermediate_fragment 1=first_fragment 2=last_fragment 3=complete 4=unchanged"),
        "fragmentPreference": NamedValues("0=may_fragment 1=should_not_fragment"),
        "dataStatus": NamedValues("0=complete 1=incomplete,_more_to_come 2=incomplete,_truncated 0xFF=failed"),
        "channelSelection": NamedValues("0=algorithm_1 1=algorithm_2"),
        "privacyMode": NamedValues("0=network 1=device"),
        "powerType": NamedValues("0=current 1=maximum"),
        "powerReason": NamedValues("0=local_change 1=remote_change 2=remote_read"),
        "packing": NamedValues("0=sequential 1=interleaved"),
        "framing": NamedValues("0=unframed 1=framed 2=framed,_unsegmented"),
        "dataPathDirection": NamedValues("0=input 1=output"),
        "pathLossZone": NamedValues("0=low 1=middle 2=high"),
        "phyOptions": NamedValues("0=no_preference 1=prefer_S=2 2=prefer_S=8"),
        "advertisingCoding": NamedValues("0=no_preference 1=prefer_S=2 2=prefer_S=8 3=require_S=2 4=require_S=8"),
        "flowControl": NamedValues("0=off 1=ACL 2=synchronous 3=ACL_and_synchronous"),
        "linkType": NamedValues("0=SCO 1=ACL 2=eSCO"),
        "bufferType": NamedValues("0=synchronous 1=ACL 2=ISO"),
        "scanEnable": NamedValues("0=none 1=inquiry 2=page 3=inquiry_and_page"),
        "pageScanRepetition": NamedValues("0=R0 1=R1 2=R2"),
        "mode": NamedValues("0=active 1=hold 2=sniff 3=park"),
        "ioCapability": NamedValues(
            "0=DisplayOnly 1=DisplayYesNo 2=KeyboardOnly 3=NoInputNoOutput 4=KeyboardDisplay"
        ),
        "linkKeyType": NamedValues(
            "0=combination 3=debug_combination 4=unauthenticated_P-192 5=authenticated_P-192 6=changed_combination "
                + "7=unauthenticated_P-256 8=authenticated_P-256"
        ),
        "keypress": NamedValues("0=entry_started 1=digit_entered 2=digit_erased 3=cleared 4=entry_completed"),
        "oob": NamedValues("0=not_present 1=present"),
        "pairingFailed": NamedValues(
            "1=Passkey_Entry_Failed 2=OOB_Not_Available 3=Authentication_Requirements 4=Confirm_Value_Failed "
                + "5=Pairing_Not_Supported 6=Encryption_Key_Size 7=Command_Not_Supported 8=Unspecified_Reason "
                + "9=Repeated_Attempts 10=Invalid_Parameters 11=DHKey_Check_Failed 12=Numeric_Comparison_Failed "
                + "13=BR/EDR_Pairing_in_Progress 14=Cross-transport_Key_Derivation_Not_Allowed 15=Key_Rejected 16=Busy"
        ),
        "rejectReason": NamedValues("0=command_not_understood 1=signaling_MTU_exceeded 2=invalid_CID"),
        "creditResult": NamedValues(
            "0=successful 2=SPSM_not_supported 4=no_resources_available 5=insufficient_authentication "
                + "6=insufficient_authorization 7=encryption_key_size_too_short 8=insufficient_encryption "
                + "9=invalid_source_CID 10=source_CID_already_allocated 11=unacceptable_parameters "
                + "12=invalid_parameters 13=pending 14=authentication_pending 15=authorization_pending"
        ),
        "reconfigureResult": NamedValues(
            "0=successful 1=reduction_of_MTU_not_allowed 2=reduction_of_MPS_not_allowed 3=invalid_destination_CIDs "
                + "4=unacceptable_parameters"
        ),
        "updateResult": NamedValues("0=accepted 1=rejected"),
        "connectionResult": NamedValues(
            "0=successful 1=pending 2=PSM_not_supported 3=security_block 4=no_resources_available 6=invalid_source_CID "
                + "7=source_CID_already_allocated"
        ),
        "connectionStatus": NamedValues("0=no_further_information 1=authentication_pending 2=authorization_pending"),
        "configureResult": NamedValues(
            "0=success 1=unacceptable_parameters 2=rejected 3=unknown_options 4=pending 5=flow_specification_rejected"
        ),
        "informationType": NamedValues("1=connectionless_MTU 2=extended_features 3=fixed_channels"),
        "informationResult": NamedValues("0=success 1=not_supported"),
        "psm": psms,
        "execute": NamedValues("0=cancel_all 1=write_all"),
    ]

    /// The services with an assigned PSM or SPSM (Assigned Numbers, 2.7).
    static let psms = NamedValues(
        "1=SDP 3=RFCOMM 5=TCS-BIN 7=TCS-BIN-CORDLESS 15=BNEP 17=HID_Control 19=HID_Interrupt 21=UPnP 23=AVCTP 25=AVDTP "
            + "27=AVCTP_Browsing 29=UDI_C-Plane 31=ATT 33=3DSP 35=LE_IPSP 37=OTS 39=EATT"
    )

    static let leRoles = NamedValues("0=only_peripheral 1=only_central 2=peripheral_preferred 3=central_preferred")

    /// AD types (Assigned Numbers, 2.3).
    static let adTypes = NamedValues(
        "0x01=Flags 0x02=Incomplete_16-bit_Service_UUIDs 0x03=Complete_16-bit_Service_UUIDs "
            + "0x04=Incomplete_32-bit_Service_UUIDs 0x05=Complete_32-bit_Service_UUIDs "
            + "0x06=Incomplete_128-bit_Service_UUIDs 0x07=Complete_128-bit_Service_UUIDs 0x08=Shortened_Local_Name "
            + "0x09=Complete_Local_Name 0x0A=Tx_Power_Level 0x0D=Class_of_Device 0x0E=Simple_Pairing_Hash_C-192 "
            + "0x0F=Simple_Pairing_Randomizer_R-192 0x10=Device_ID 0x11=Security_Manager_Out_of_Band_Flags "
            + "0x12=Peripheral_Connection_Interval_Range 0x14=16-bit_Service_Solicitation_UUIDs "
            + "0x15=128-bit_Service_Solicitation_UUIDs 0x16=Service_Data_(16-bit_UUID) 0x17=Public_Target_Address "
            + "0x18=Random_Target_Address 0x19=Appearance 0x1A=Advertising_Interval 0x1B=LE_Bluetooth_Device_Address "
            + "0x1C=LE_Role 0x1D=Simple_Pairing_Hash_C-256 0x1E=Simple_Pairing_Randomizer_R-256 "
            + "0x1F=32-bit_Service_Solicitation_UUIDs 0x20=Service_Data_(32-bit_UUID) "
            + "0x21=Service_Data_(128-bit_UUID) 0x22=LE_Secure_Connections_Confirmation_Value "
            + "0x23=LE_Secure_Connections_Random_Value 0x24=URI 0x25=Indoor_Positioning 0x26=Transport_Discovery_Data "
            + "0x27=LE_Supported_Features 0x28=Channel_Map_Update_Indication 0x29=PB-ADV 0x2A=Mesh_Message "
            + "0x2B=Mesh_Beacon 0x2C=BIGInfo 0x2D=Broadcast_Code 0x2E=Resolvable_Set_Identifier "
            + "0x2F=Advertising_Interval_(long) 0x30=Broadcast_Name 0x31=Encrypted_Advertising_Data "
            + "0x32=Periodic_Advertising_Response_Timing_Information 0x34=Electronic_Shelf_Label "
            + "0x3D=3D_Information_Data 0xFF=Manufacturer_Specific_Data"
    )
}
