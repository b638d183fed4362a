"""The fields of HCI traffic in tshark, and the same fields in `ble decode --json`."""

import re
from collections.abc import Callable

# Each line has a field of tshark, with the suffix `_inferred` if its bytes are not in the packet; one of our layers and
# the members of it with the same content, at any depth; and the form, if it is not the same number:
#
#   octets    digits of the bytes, in the order in which they are sent
#   turned    digits of a number, most significant first, for which tshark has bytes
#   text      characters
#   uuid N    a UUID, of N characters if tshark has a separate field for each width
#   bits M    the bits of M in a number, for which tshark has a separate field
FIELDS = """
bthci_cmd.opcode                            command opcode
bthci_cmd.adv_data_operation                command operation
bthci_cmd.adv_duration                      command duration
bthci_cmd.adv_fragment_preference           command fragmentPreference
bthci_cmd.adv_num_sets                      command numSets
bthci_cmd.advertising_handle                command advertisingHandle
bthci_cmd.advertising_properties            command advertisingEventProperties
bthci_cmd.advertising_sid                   command advertisingSID
bthci_cmd.allow_role_switch                 command allowRoleSwitch
bthci_cmd.clock_offset                      command clockOffset : bits 0x7FFF
bthci_cmd.clock_offset_valid                command clockOffset : bits 0x8000
bthci_cmd.connection_handle                 command connectionHandle
bthci_cmd.delete_all_flag                   command deleteAll
bthci_cmd.device_name                       command localName : text
bthci_cmd.err_data_reporting                command erroneousDataReporting
bthci_cmd.feature_bit_number                command bitNumber
bthci_cmd.feature_bit_value                 command bitValue
bthci_cmd.fec_required                      command fecRequired
bthci_cmd.inq_mode                          command inquiryMode
bthci_cmd.inq_scan_type                     command inquiryScanType pageScanType scanType
bthci_cmd.interval                          command inquiryScanInterval pageScanInterval
bthci_cmd.window                            command inquiryScanWindow pageScanWindow
bthci_cmd.le_address_resolution_enable      command addressResolutionEnable
bthci_cmd.le_address_type                   command addressType
bthci_cmd.le_advts_ch_map_1                 command advertisingChannelMap primaryAdvertisingChannelMap : bits 0x01
bthci_cmd.le_advts_ch_map_2                 command advertisingChannelMap primaryAdvertisingChannelMap : bits 0x02
bthci_cmd.le_advts_ch_map_3                 command advertisingChannelMap primaryAdvertisingChannelMap : bits 0x04
bthci_cmd.le_advts_enable                   command advertisingEnable enable
bthci_cmd.le_advts_filter_policy            command advertisingFilterPolicy
bthci_cmd.le_advts_interval_max             command advertisingIntervalMax primaryAdvertisingIntervalMax
bthci_cmd.le_advts_interval_min             command advertisingIntervalMin primaryAdvertisingIntervalMin
bthci_cmd.le_advts_type                     command advertisingType
bthci_cmd.le_con_interval_max               command connectionIntervalMax intervalMax
bthci_cmd.le_con_interval_min               command connectionIntervalMin intervalMin
bthci_cmd.le_con_latency                    command maxLatency
bthci_cmd.le_direct_address_type            command peerAddressType
bthci_cmd.le_encrypted_diversifier          command encryptedDiversifier
bthci_cmd.le_event_mask                     command leEventMask
bthci_cmd.le_filter_duplicates              command filterDuplicates
bthci_cmd.le_init_phys                      command initiatingPHYs
bthci_cmd.le_initiator_filter_policy        command initiatorFilterPolicy
bthci_cmd.le_local_irk                      command localIRK : turned
bthci_cmd.le_peer_irk                       command peerIRK : turned
bthci_cmd.le_long_term_key                  command longTermKey : turned
bthci_cmd.le_max_ce_length                  command maxCELength
bthci_cmd.le_min_ce_length                  command minCELength
bthci_cmd.le_own_address_type               command ownAddressType
bthci_cmd.le_peer_address_type              command peerAddressType
bthci_cmd.le_peer_identity_address_type     command peerIdentityAddressType
bthci_cmd.le_privacy_mode                   command privacyMode
bthci_cmd.le_random_number                  command randomNumber : turned
bthci_cmd.le_rpa_timeout                    command rpaTimeout
bthci_cmd.le_scan_enable                    command enable leScanEnable
bthci_cmd.le_scan_filter_policy             command scanningFilterPolicy
bthci_cmd.le_scan_interval                  command scanInterval leScanInterval
bthci_cmd.le_scan_phys                      command scanningPHYs
bthci_cmd.le_scan_type                      command scanType leScanType
bthci_cmd.le_scan_window                    command scanWindow leScanWindow
bthci_cmd.le_simultaneous_host              command simultaneousLEHost
bthci_cmd.le_suggested_max_tx_octets        command suggestedMaxTXOctets
bthci_cmd.le_suggested_max_tx_time          command suggestedMaxTXTime
bthci_cmd.le_supported_host                 command leSupportedHost
bthci_cmd.le_supv_timeout                   command supervisionTimeout timeout
bthci_cmd.le_tx_octets                      command txOctets
bthci_cmd.le_tx_time                        command txTime
bthci_cmd.link_policy_switch                command defaultLinkPolicySettings : bits 0x01
bthci_cmd.link_policy_hold                  command defaultLinkPolicySettings : bits 0x02
bthci_cmd.link_policy_sniff                 command defaultLinkPolicySettings : bits 0x04
bthci_cmd.link_policy_park                  command defaultLinkPolicySettings : bits 0x08
bthci_cmd.max_data_length_acl               command hostACLDataPacketLength
bthci_cmd.max_data_length_sco               command hostSynchronousDataPacketLength
bthci_cmd.max_data_num_acl                  command hostTotalNumACLDataPackets
bthci_cmd.max_data_num_sco                  command hostTotalNumSynchronousDataPackets
bthci_cmd.max_extended_advertising_events   command maxExtendedAdvertisingEvents
bthci_cmd.num_curr_iac                      command numCurrentIAC
bthci_cmd.num_iac_lap                       command iacLAP
bthci_cmd.packet_type                       command packetType
bthci_cmd.page_number                       command pageNumber
bthci_cmd.page_scan_mode                    command reserved
bthci_cmd.page_scan_repetition_mode         command pageScanRepetitionMode
bthci_cmd.power_level                       command advertisingTXPower
bthci_cmd.primary_advertising_phy           command primaryAdvertisingPHY
bthci_cmd.reason                            command reason
bthci_cmd.scan_duration                     command duration
bthci_cmd.scan_enable                       command scanEnable
bthci_cmd.scan_period                       command period
bthci_cmd.scan_request_notification_enable  command scanRequestNotificationEnable
bthci_cmd.secondary_advertising_max_skip    command secondaryAdvertisingMaxSkip
bthci_cmd.secondary_advertising_phy         command secondaryAdvertisingPHY
bthci_cmd.secure_connection_host_support    command secureConnectionsHostSupport
bthci_cmd.simple_pairing_mode               command simplePairingMode
bthci_cmd.timeout                           command pageTimeout
bthci_cmd.voice.air_coding_format           command voiceSetting : bits 0x0003
bthci_cmd.voice.linear_pcm_bit_pos          command voiceSetting : bits 0x001C
bthci_cmd.voice.input_sample_size           command voiceSetting : bits 0x0020
bthci_cmd.voice.input_data_format           command voiceSetting : bits 0x00C0
bthci_cmd.voice.input_coding                command voiceSetting : bits 0x0300
bthci_evt.code                              event code
bthci_evt.le_meta_subevent                  event subevent
bthci_evt.opcode                            event commandOpcode
bthci_evt.status                            event status
bthci_evt.reason                            event reason
bthci_evt.num_command_packets               event numHCICommandPackets
bthci_evt.connection_handle                 event connectionHandle
bthci_evt.adv_handle                        event advertisingHandle
bthci_evt.advertising_sid                   event advertisingSID
bthci_evt.channel_selection_algorithm       event channelSelectionAlgorithm
bthci_evt.codec_id                          event codecID
bthci_evt.comp_id                           event companyIdentifier
bthci_evt.device_name                       event localName remoteName : text
bthci_evt.encryption_enable                 event encryptionEnabled
bthci_evt.encryption_mode                   event encryptionEnabled
bthci_evt.err_data_reporting                event erroneousDataReporting
bthci_evt.hci_vers_nr                       event hciVersion hciSubversion
bthci_evt.iso_data_pkt_len                  event isoDataPacketLength
bthci_evt.le_acl_data_pkt_len               event leACLDataPacketLength
bthci_evt.le_advts_event_type               event eventType
bthci_evt.le_con_interval                   event connectionInterval
bthci_evt.le_con_latency                    event peripheralLatency maxLatency
bthci_evt.le_direct_address_type            event directAddressType
bthci_evt.le_encrypted_diversifier          event encryptedDiversifier
bthci_evt.le_ext_advts_event_type           event eventType
bthci_evt.le_features                       event leFeatures
bthci_evt.le_master_clock_accuracy          event centralClockAccuracy
bthci_evt.le_max_interval                   event intervalMax
bthci_evt.le_min_interval                   event intervalMin
bthci_evt.le_num_reports                    event numReports
bthci_evt.le_peer_address_type              event peerAddressType addressType
bthci_evt.le_periodic_adv_list_size         event periodicAdvertiserListSize
bthci_evt.le_random_number                  event randomNumber : turned
bthci_evt.le_states                         event leStates : turned
bthci_evt.le_supv_timeout                   event supervisionTimeout timeout
bthci_evt.le_total_num_acl_data_pkts        event totalNumLEACLDataPackets
bthci_evt.le_white_list_size                event filterAcceptListSize
bthci_evt.link_type                         event linkType
bthci_evt.lmp_features                      event lmpFeatures extendedLMPFeatures : turned
bthci_evt.lmp_sub_vers_nr                   event lmpSubversion subversion
bthci_evt.lmp_vers_nr                       event lmpVersion version
bthci_evt.local_supported_cmds              event supportedCommands : octets
bthci_evt.max_adv_data_length               event maxAdvertisingDataLength
bthci_evt.max_data_length_acl               event aclDataPacketLength
bthci_evt.max_data_length_sco               event synchronousDataPacketLength
bthci_evt.max_data_num_acl                  event totalNumACLDataPackets
bthci_evt.max_data_num_sco                  event totalNumSynchronousDataPackets
bthci_evt.max_page_number                   event maximumPageNumber
bthci_evt.max_rx_octets                     event maxRXOctets
bthci_evt.max_rx_time                       event maxRXTime
bthci_evt.max_tx_octets                     event maxTXOctets
bthci_evt.max_tx_time                       event maxTXTime
bthci_evt.num_compl_ext_adv_events          event numCompletedExtendedAdvertisingEvents
bthci_evt.num_compl_packets                 event numCompletedPackets
bthci_evt.num_handles                       event numHandles
bthci_evt.num_keys_deleted                  event numKeysDeleted
bthci_evt.num_supported_adv_sets            event numSupportedAdvertisingSets
bthci_evt.number_of_supported_codecs        event numSupportedStandardCodecs
bthci_evt.number_of_supported_vendor_codecs event numSupportedVendorSpecificCodecs
bthci_evt.page_number                       event pageNumber
bthci_evt.periodic_advertising_interval     event periodicAdvertisingInterval
bthci_evt.primary_phy                       event primaryPHY
bthci_evt.resolving_list_size               event resolvingListSize
bthci_evt.role                              event role
bthci_evt.rssi                              event rssi
bthci_evt.secondary_phy                     event secondaryPHY
bthci_evt.suggested_max_rx_octets           event supportedMaxRXOctets
bthci_evt.suggested_max_rx_time             event supportedMaxRXTime
bthci_evt.suggested_max_tx_octets           event suggestedMaxTXOctets supportedMaxTXOctets
bthci_evt.suggested_max_tx_time             event suggestedMaxTXTime supportedMaxTXTime
bthci_evt.total_num_iso_data_pkts           event totalNumISODataPackets
bthci_evt.transmit_power_level              event selectedTXPower
bthci_evt.tx_power                          event txPower
bthci_acl.chandle                           acl handle
bthci_acl.pb_flag                           acl boundary
bthci_acl.bc_flag                           acl broadcast
bthci_acl.length                            acl length
btl2cap.cid                                 l2cap cid
btl2cap.length                              l2cap length
btl2cap.cmd_code                            l2cap code
btl2cap.cmd_ident                           l2cap identifier
btl2cap.dcid                                l2cap destinationCID
btl2cap.scid                                l2cap sourceCID
btl2cap.initial_credits                     l2cap initialCredits
btl2cap.le_psm                              l2cap spsm
btl2cap.le_result                           l2cap result
btl2cap.le_sdu_length                       l2cap sduLength
btl2cap.max_interval                        l2cap intervalMax
btl2cap.min_interval                        l2cap intervalMin
btl2cap.slave_latency                       l2cap latency
btl2cap.timeout_multiplier                  l2cap timeout
btl2cap.move_result                         l2cap result
btl2cap.mps                                 l2cap mps
btl2cap.option_mtu                          l2cap mtu
btl2cap.rej_reason                          l2cap reason
btl2cap.info_type                           l2cap informationType
btl2cap.payload                             l2cap data : octets
btatt.opcode                                att opcode
btatt.handle                                att handle valueHandle
btatt.starting_handle                       att startingHandle
btatt.ending_handle                         att endingHandle
btatt.group_end_handle                      att groupEndHandle
btatt.error_code                            att errorCode
btatt.req_opcode_in_error                   att requestOpcode
btatt.client_rx_mtu                         att mtu
btatt.server_rx_mtu                         att mtu
btatt.length                                att length
btatt.offset                                att offset
btatt.flags                                 att flags
btatt.uuid_format                           att format
btatt.value                                 att value : octets
btatt.uuid16                                att attributeType uuid characteristic service declaredService includedService : uuid
btatt.uuid128                               att attributeType uuid characteristic service declaredService includedService : uuid
btatt.handle_inferred                       asking handle valueHandle
btatt.uuid16_inferred                       asking attributeType uuid characteristic service declaredService includedService : uuid
btatt.uuid128_inferred                      asking attributeType uuid characteristic service declaredService includedService : uuid
btatt.request_in_frame_inferred             answers index
bthci_evt.command_in_frame                  answers index
btatt.characteristic_properties             att properties
btatt.characteristic_configuration_client   att configuration
btsmp.opcode                                smp code
btsmp.io_capability                         smp ioCapability
btsmp.oob_data_flags                        smp oobDataFlag
btsmp.authreq                               smp authreq
btsmp.max_enc_key_size                      smp maximumEncryptionKeySize
btsmp.initiator_key_distribution            smp initiatorKeyDistribution
btsmp.responder_key_distribution            smp responderKeyDistribution
btsmp.cfm_value                             smp confirmValue : turned
btsmp.random_value                          smp randomValue rand : turned
btsmp.dhkey_check                           smp dhkeyCheck : turned
btsmp.long_term_key                         smp longTermKey : turned
btsmp.ediv                                  smp ediv
btsmp.id_resolving_key                      smp identityResolvingKey : turned
btsmp.signature_key                         smp signatureKey : turned
btsmp.address_type                          smp addressType
btsmp.public_key_x                          smp publicKeyX : octets
btsmp.public_key_y                          smp publicKeyY : octets
btsmp.reason                                smp reason
btcommon.cod.class_of_device                command classOfDevice
btcommon.eir_ad.entry.type                  ad type
btcommon.eir_ad.entry.appearance            ad appearance
btcommon.eir_ad.entry.company_id            ad company
btcommon.eir_ad.entry.device_name           ad name : text
btcommon.eir_ad.entry.power_level           ad power
btcommon.eir_ad.entry.advertising_interval  ad interval
btcommon.eir_ad.entry.data                  ad data : octets
btcommon.eir_ad.entry.service_data          ad data : octets
btcommon.eir_ad.entry.uuid_16               ad uuids uuid : uuid 4
btcommon.eir_ad.entry.custom_uuid_32        ad uuids uuid : uuid 8
btcommon.eir_ad.entry.custom_uuid_128       ad uuids uuid : uuid 36
btcommon.eir_ad.entry.flags.le_limited_discoverable_mode   ad flags : bits 0x01
btcommon.eir_ad.entry.flags.le_general_discoverable_mode   ad flags : bits 0x02
btcommon.eir_ad.entry.flags.bredr_not_supported            ad flags : bits 0x04
btcommon.eir_ad.entry.flags.le_bredr_support_controller    ad flags : bits 0x08
btcommon.eir_ad.entry.flags.le_bredr_support_host          ad flags : bits 0x10
"""

# Addresses, in any members.
ADDRESSES = {
    "bthci_cmd.bd_addr": "command",
    "bthci_evt.bd_addr": "event",
    "bthci_evt.direct_bd_addr": "event",
    "bthci_evt.le_local_rpa": "event",
    "bthci_evt.le_peer_rpa": "event",
    "btsmp.bd_addr": "smp",
}

# Fields of which `ble decode` has more: addresses that tshark has under other names, and values of which tshark shows
# only the part that it does not know from a profile. The values of tshark must be among ours.
PARTIAL = {
    "btatt.handle_inferred", "btatt.uuid16", "btatt.uuid16_inferred", "btatt.uuid128", "btatt.uuid128_inferred",
    "btatt.value", "btcommon.eir_ad.entry.data", "btcommon.eir_ad.entry.service_data", *ADDRESSES,
}  # fmt: skip

# Fields of tshark that are not compared, with the reasons.
NOT_COMPARED = (
    (r"_ws\..*|.*\.expert\..*|.*\.(bad_data|invalid_usage|too_few|exceeded|full|unknown|undecoded|unused)", "remarks"),
    (r".*(_in_frame|_in|_delta|continuation_to|invalid_session)", "tshark's references to other packets"),
    (r"bthci_acl\.(src|dst)\..*|bthci_acl\.mode|btl2cap\.(connect_in|psm)", "tshark's information about the link"),
    (r"btl2cap\.le_sdu\..*|bthci_acl\.data", "fragments: ours are not reassembled if the frame is a part"),
    (r".*(param_length|cmd_length|entry\.length|data_length)", "lengths of bytes that are compared themselves"),
    (r".*(_param|_set|\.entry|_data|\.codecs|vendor_codecs|handles_info|\.command|unknown_command_code)", "headings"),
    (r"bthci_cmd\.parameter|bthci_evt\.ret_params", "headings"),
    (r"data(\..*)?", "packets of vendors' H4 types, which both show as bytes"),
    (r"bthci_vendor\..*", "commands and events of vendors, which ours shows as bytes"),
    (r"btamp\..*", "the AMP Manager's channel, which the specification no longer has"),
    (r".*\.opcode\.(ogf|ocf|method|command|authentication_signature)", "bits of what is compared"),
    (r".*(le_phys|le_scan_phys|adv_properties|packet_type|le_event_mask|event_type)\..*", "bits of what is compared"),
    (r".*(le_features|lmp_features)\..*", "bits of what is compared"),
    (r"bthci_evt\.le_states_.*|bthci_cmd\.voice\.unused|.*[._]reserved.*", "bits of what is compared"),
    (r"btatt\.(characteristic_\w+|uuid)\..*|btsmp\.(\w+_flags?|key_dist_\w+)", "bits of what is compared"),
    (r"btcommon\.cod\..*", "bits of the class of device"),
    (r"btatt\.(service_uuid|characteristic_uuid).*", "the position of an attribute, which ours shows once"),
    (r"btatt\..*", "the meaning of a value in its profile"),
    (r"btl2cap\.(control.*|fcs)", "fields of BR/EDR's frames"),
)
NOT_COMPARED = tuple((re.compile(pattern), reason) for pattern, reason in NOT_COMPARED)


def every(value, names: set[str]) -> list:
    """All values of the given names at any depth, in the order of the packet."""
    if isinstance(value, dict):
        return [
            each
            for key, member in value.items()
            for each in ([member] if key in names else []) + every(member, names)
        ]
    return [each for element in value for each in every(element, names)] if isinstance(value, list) else []


def plain(value, names: set[str]) -> list:
    """The numbers and texts under the names, and those of a list."""
    found = []
    for each in every(value, names):
        if isinstance(each, list):
            found += [element for element in each if not isinstance(element, (dict, list))]
        elif not isinstance(each, dict):
            found.append(each)
    return found


def addresses(value) -> list[str]:
    if isinstance(value, dict):
        return [each for member in value.values() for each in addresses(member)]
    if isinstance(value, list):
        return [each for element in value for each in addresses(element)]
    return [value.lower()] if isinstance(value, str) and re.fullmatch(r"(\w\w:){5}\w\w", value) else []


def layer(packet: dict, name: str):
    """One of our layers. `ad`: the AD structures of a command or event; `asking`: an ATT PDU and the request that it
    answers."""
    match name:
        case "ad":
            lists = {"data", "advertisingData", "scanResponseData", "extendedInquiryResponse"}
            found = every([packet.get("command"), packet.get("event")], lists)
            return [each for each in found if isinstance(each, list)]
        case "asking":
            return [packet.get("att"), packet.get("request")]
    return packet.get(name)


def number(text) -> int:
    return {"True": 1, "False": 0}[text] if text in ("True", "False") else int(text, 0)


def uuid(text: str) -> str:
    """The digits of a UUID: tshark has the number for 16 and 32 bits, the bytes for 128."""
    return re.sub(r"[^0-9a-f]", "", text.lower().removeprefix("0x"))


def turned(value: int | str) -> str:
    """The digits of a number with the least significant byte first, as it is sent."""
    digits = value.removeprefix("0x") if isinstance(value, str) else f"{value:016x}"
    return bytes.fromhex(digits)[::-1].hex()


class Shown:
    """A field in tshark: its text, and the bytes from which it was made."""

    def __init__(self, text: str, octets: str):
        self.text, self.octets = text, octets

    @property
    def number(self) -> int:
        return number(self.text)

    @property
    def characters(self) -> str:
        return bytes.fromhex(self.octets).split(b"\0")[0].decode(errors="replace")

    @property
    def uuids(self) -> tuple[str, str]:
        """UUIDs of 128 bits in either order: tshark shows them as they are sent, unless they are in its own list."""
        return uuid(self.text), turned(uuid(self.text))


class Field:
    """The way in which one field of tshark is compared."""

    def __init__(self, name: str, find: Callable[[dict], list], form: str):
        self.find = find
        self.isPartial = name in PARTIAL
        self.form, _, argument = form.partition(" ")
        self.mask = int(argument, 0) if self.form == "bits" else 0
        self.width = int(argument) if self.form == "uuid" and argument else 0

    def ours(self, packet: dict) -> list:
        """The value in a line of `ble decode --json` for the field."""
        found = self.find(packet)
        match self.form:
            case "octets" | "address":
                return found
            case "text":
                return [each.split("\0")[0] for each in found]
            case "turned":
                return [turned(each) for each in found]
            case "uuid":
                return [uuid(each) for each in found if not self.width or len(each) == self.width]
            case "bits":
                lowest = self.mask & -self.mask
                return [(number(str(each)) & self.mask) // lowest for each in found]
        return [number(str(each)) for each in found]

    def theirs(self, shown: list[Shown], ours: list) -> list:
        match self.form:
            case "octets" | "turned":
                return [each.octets for each in shown]
            case "text":
                return [each.characters for each in shown]
            case "address":
                return [each.text.lower() for each in shown]
            case "uuid":
                return [each.uuids[1] if each.uuids[1] in ours else each.uuids[0] for each in shown]
        return [each.number for each in shown]

    def agrees(self, ours: list, theirs: list) -> bool:
        if self.isPartial:
            return set(theirs) <= set(ours)
        if self.form == "turned":  # tshark omits the last bytes of features that it does not know
            return [one[: len(other)] for one, other in zip(ours, theirs)] == theirs and len(ours) == len(theirs)
        return ours == theirs


def member(name: str, place: str, form: str = "") -> Field:
    kind, *members = place.split()
    return Field(name, lambda packet: plain(layer(packet, kind), set(members)), form)


def table() -> dict[str, Field]:
    fields = {}
    for line in FIELDS.strip().splitlines():
        name, place = line.split(maxsplit=1)
        place, _, form = place.partition(" : ")
        fields[name] = member(name, place, form)
    for name, kind in ADDRESSES.items():
        fields[name] = Field(name, lambda packet, kind=kind: addresses(packet.get(kind)), "address")
    directions, types = ("hostToController", "controllerToHost"), ("", "command", "acl", "synchronous", "event", "iso")
    fields["hci_h4.direction"] = Field("", lambda packet: [directions.index(packet["direction"])], "")
    fields["hci_h4.type"] = Field("", lambda packet: [packet_type(packet, types)], "")
    for page, mask in (("", "eventMask"), ("2", "eventMaskPage2")):
        for bit in range(64):
            name = f"bthci_cmd.evt_mask{page}_{bit // 8}{bit % 8}"
            fields[name] = member(name, f"command {mask}", f"bits {1 << bit:#x}")
    return fields


def packet_type(packet: dict, types: tuple[str, ...]) -> int:
    """The H4 packet type. A vendor's type, which the specification does not define, is the first byte of a note."""
    if packet["type"] in types:
        return types.index(packet["type"])
    return int(packet["note"]["data"][:2], 16)


def reason_not_to_compare(name: str) -> str | None:
    return next((reason for pattern, reason in NOT_COMPARED if pattern.fullmatch(name)), None)
