extension AssignedNames {
    /// Services, declarations, descriptors, characteristics and some members (Assigned Numbers, 3).
    static let uuidTable = """
        0001 SDP
        0002 UDP
        0003 RFCOMM
        0004 TCP
        0005 TCP-BIN
        0006 TCS-AT
        0007 ATT
        0008 OBEX
        0009 IP
        000A FTP
        000C HTTP
        000E WSP
        000F BNEP
        0010 UPNP
        0011 HIDP
        0012 HardcopyControlChannel
        0014 HardcopyDataChannel
        0016 HardcopyNotification
        0017 AVCTP
        0019 AVDTP
        001B CMTP
        001E MCAPControlChannel
        001F MCAPDataChannel
        0100 L2CAP
        1000 ServiceDiscoveryServerServiceClassID
        1001 BrowseGroupDescriptorServiceClassID
        1101 SerialPort
        1102 LANAccessUsingPPP
        1103 DialupNetworking
        1104 IrMCSync
        1105 OBEXObjectPush
        1106 OBEXFileTransfer
        1107 IrMCSyncCommand
        1108 Headset
        1109 CordlessTelephony
        110A AudioSource
        110B AudioSink
        110C A/V_RemoteControlTarget
        110D AdvancedAudioDistribution
        110E A/V_RemoteControl
        110F A/V_RemoteControlController
        1110 Intercom
        1111 Fax
        1112 Headset - Audio Gateway
        1113 WAP
        1114 WAP_CLIENT
        1115 PANU
        1116 NAP
        1117 GN
        1118 DirectPrinting
        1119 ReferencePrinting
        111A Basic Imaging Profile
        111B ImagingResponder
        111C ImagingAutomaticArchive
        111D ImagingReferencedObjects
        111E Handsfree
        111F HandsfreeAudioGateway
        1120 DirectPrintingReferenceObjectsService
        1121 ReflectedUI
        1122 BasicPrinting
        1123 PrintingStatus
        1124 HumanInterfaceDeviceService
        1125 HardcopyCableReplacement
        1126 HCR_Print
        1127 HCR_Scan
        1128 Common_ISDN_Access
        112D SIM_Access
        112E Phonebook Access - PCE
        112F Phonebook Access - PSE
        1130 Phonebook Access
        1131 Headset - HS
        1132 Message Access Server
        1133 Message Notification Server
        1134 Message Access Profile
        1135 GNSS
        1136 GNSS_Server
        1137 3D Display
        1138 3D Glasses
        1139 3D Synchronization
        113A MPS Profile
        113B MPS SC
        113C CTN Access Service
        113D CTN Notification Service
        113E CTN Profile
        1200 PnPInformation
        1201 GenericNetworking
        1202 GenericFileTransfer
        1203 GenericAudio
        1204 GenericTelephony
        1205 UPNP_Service
        1206 UPNP_IP_Service
        1300 ESDP_UPNP_IP_PAN
        1301 ESDP_UPNP_IP_LAP
        1302 ESDP_UPNP_L2CAP
        1303 VideoSource
        1304 VideoSink
        1305 VideoDistribution
        1400 HDP
        1401 HDP Source
        1402 HDP Sink
        1800 Generic Access
        1801 Generic Attribute
        1802 Immediate Alert
        1803 Link Loss
        1804 TX Power
        1805 Current Time
        1806 Reference Time Update
        1807 Next DST Change
        1808 Glucose
        1809 Health Thermometer
        180A Device Information
        180D Heart Rate
        180E Phone Alert Status
        180F Battery
        1810 Blood Pressure
        1811 Alert Notification
        1812 Human Interface Device
        1813 Scan Parameters
        1814 Running Speed and Cadence
        1815 Automation IO
        1816 Cycling Speed and Cadence
        1818 Cycling Power
        1819 Location and Navigation
        181A Environmental Sensing
        181B Body Composition
        181C User Data
        181D Weight Scale
        181E Bond Management
        181F Continuous Glucose Monitoring
        1820 Internet Protocol Support
        1821 Indoor Positioning
        1822 Pulse Oximeter
        1823 HTTP Proxy
        1824 Transport Discovery
        1825 Object Transfer
        1826 Fitness Machine
        1827 Mesh Provisioning
        1828 Mesh Proxy
        1829 Reconnection Configuration
        183A Insulin Delivery
        183B Binary Sensor
        183C Emergency Configuration
        183D Authorization Control
        183E Physical Activity Monitor
        183F Elapsed Time
        1840 Generic Health Sensor
        1843 Audio Input Control
        1844 Volume Control
        1845 Volume Offset Control
        1846 Coordinated Set Identification
        1847 Device Time
        1848 Media Control
        1849 Generic Media Control
        184A Constant Tone Extension
        184B Telephone Bearer
        184C Generic Telephone Bearer
        184D Microphone Control
        184E Audio Stream Control
        184F Broadcast Audio Scan
        1850 Published Audio Capabilities
        1851 Basic Audio Announcement
        1852 Broadcast Audio Announcement
        1853 Common Audio
        1854 Hearing Access
        1855 Telephony and Media Audio
        1856 Public Broadcast Announcement
        1857 Electronic Shelf Label
        1858 Gaming Audio
        1859 Mesh Audio Solicitation
        2800 Primary Service
        2801 Secondary Service
        2802 Include
        2803 Characteristic
        2900 Characteristic Extended Properties
        2901 Characteristic User Description
        2902 Client Characteristic Configuration
        2903 Server Characteristic Configuration
        2904 Characteristic Presentation Format
        2905 Characteristic Aggregate Format
        2906 Valid Range
        2907 External Report Reference
        2908 Report Reference
        2909 Number of Digitals
        290A Value Trigger Setting
        290B Environmental Sensing Configuration
        290C Environmental Sensing Measurement
        290D Environmental Sensing Trigger Setting
        290E Time Trigger Setting
        290F Complete BR-EDR Transport Block Data
        2910 Observation Schedule
        2911 Valid Range and Accuracy
        2A00 Device Name
        2A01 Appearance
        2A02 Peripheral Privacy Flag
        2A03 Reconnection Address
        2A04 Peripheral Preferred Connection Parameters
        2A05 Service Changed
        2A06 Alert Level
        2A07 Tx Power Level
        2A19 Battery Level
        2A1C Temperature Measurement
        2A1D Temperature Type
        2A1E Intermediate Temperature
        2A21 Measurement Interval
        2A22 Boot Keyboard Input Report
        2A23 System ID
        2A24 Model Number String
        2A25 Serial Number String
        2A26 Firmware Revision String
        2A27 Hardware Revision String
        2A28 Software Revision String
        2A29 Manufacturer Name String
        2A2A IEEE 11073-20601 Regulatory Certification Data List
        2A2B Current Time
        2A31 Scan Refresh
        2A32 Boot Keyboard Output Report
        2A33 Boot Mouse Input Report
        2A34 Glucose Measurement Context
        2A35 Blood Pressure Measurement
        2A36 Intermediate Cuff Pressure
        2A37 Heart Rate Measurement
        2A38 Body Sensor Location
        2A39 Heart Rate Control Point
        2A3F Alert Status
        2A40 Ringer Control Point
        2A41 Ringer Setting
        2A42 Alert Category ID Bit Mask
        2A43 Alert Category ID
        2A44 Alert Notification Control Point
        2A45 Unread Alert Status
        2A46 New Alert
        2A47 Supported New Alert Category
        2A48 Supported Unread Alert Category
        2A49 Blood Pressure Feature
        2A4A HID Information
        2A4B Report Map
        2A4C HID Control Point
        2A4D Report
        2A4E Protocol Mode
        2A50 PnP ID
        2A51 Glucose Feature
        2A52 Record Access Control Point
        2A53 RSC Measurement
        2A54 RSC Feature
        2A55 SC Control Point
        2A5B CSC Measurement
        2A5C CSC Feature
        2A5D Sensor Location
        2A5E PLX Spot-Check Measurement
        2A5F PLX Continuous Measurement
        2A60 PLX Features
        2A63 Cycling Power Measurement
        2A64 Cycling Power Vector
        2A65 Cycling Power Feature
        2A66 Cycling Power Control Point
        2A67 Location and Speed
        2A68 Navigation
        2A69 Position Quality
        2A6A LN Feature
        2A6B LN Control Point
        2A6C Elevation
        2A6D Pressure
        2A6E Temperature
        2A6F Humidity
        2A70 True Wind Speed
        2A71 True Wind Direction
        2A72 Apparent Wind Speed
        2A73 Apparent Wind Direction
        2A74 Gust Factor
        2A75 Pollen Concentration
        2A76 UV Index
        2A77 Irradiance
        2A78 Rainfall
        2A79 Wind Chill
        2A7A Heat Index
        2A7B Dew Point
        2A8A First Name
        2A98 Weight
        2A9B Body Composition Feature
        2A9C Body Composition Measurement
        2A9D Weight Measurement
        2A9E Weight Scale Feature
        2AA6 Central Address Resolution
        2AA7 CGM Measurement
        2AA8 CGM Feature
        2AC9 Resolvable Private Address Only
        2B29 Client Supported Features
        2B2A Database Hash
        2B3A Server Supported Features
        2B51 TMAP Role
        2B77 Audio Input State
        2B78 Gain Settings Attribute
        2B79 Audio Input Type
        2B7A Audio Input Status
        2B7B Audio Input Control Point
        2B7C Audio Input Description
        2B7D Volume State
        2B7E Volume Control Point
        2B7F Volume Flags
        2B80 Volume Offset State
        2B81 Audio Location
        2B82 Volume Offset Control Point
        2B83 Audio Output Description
        2B84 Set Identity Resolving Key
        2B85 Coordinated Set Size
        2B86 Set Member Lock
        2B87 Set Member Rank
        2B93 Media Player Name
        2B94 Media Player Icon Object ID
        2B95 Media Player Icon URL
        2B96 Track Changed
        2B97 Track Title
        2B98 Track Duration
        2B99 Track Position
        2B9A Playback Speed
        2B9B Seeking Speed
        2B9C Current Track Segments Object ID
        2B9D Current Track Object ID
        2B9E Next Track Object ID
        2B9F Parent Group Object ID
        2BA0 Current Group Object ID
        2BA1 Playing Order
        2BA2 Playing Orders Supported
        2BA3 Media State
        2BA4 Media Control Point
        2BA5 Media Control Point Opcodes Supported
        2BA6 Search Results Object ID
        2BA7 Search Control Point
        2BB3 Bearer Provider Name
        2BB4 Bearer UCI
        2BB5 Bearer Technology
        2BB6 Bearer URI Schemes Supported List
        2BB7 Bearer Signal Strength
        2BB8 Bearer Signal Strength Reporting Interval
        2BB9 Bearer List Current Calls
        2BBA Content Control ID
        2BBB Status Flags
        2BBC Incoming Call Target Bearer URI
        2BBD Call State
        2BBE Call Control Point
        2BBF Call Control Point Optional Opcodes
        2BC0 Termination Reason
        2BC1 Incoming Call
        2BC2 Call Friendly Name
        2BC3 Mute
        2BC4 Sink ASE
        2BC5 Source ASE
        2BC6 ASE Control Point
        2BC7 Broadcast Audio Scan Control Point
        2BC8 Broadcast Receive State
        2BC9 Sink PAC
        2BCA Sink Audio Location
        2BCB Source PAC
        2BCC Source Audio Location
        2BCD Available Audio Contexts
        2BCE Supported Audio Contexts
        2BDA Hearing Aid Features
        2BDB Hearing Aid Preset Control Point
        2BDC Active Preset Index
        2BF5 E GATT Security Levels
        2C00 GMAP Role
        2C01 UGG Features
        2C02 UGT Features
        2C03 BGS Features
        2C04 BGR Features
        2C1A Coordinated Set Name
        FCD2 Allterco Robotics (BTHome)
        FD5A Samsung
        FD6F Apple (Exposure Notification)
        FDAA Xiaomi
        FDF0 Audio Streaming for Hearing Aid
        FE03 Amazon
        FE0F Signify (Hue)
        FE2C Google (Fast Pair)
        FE59 Nordic Semiconductor (Secure DFU)
        FE61 Logitech
        FE95 Xiaomi
        FE9F Google
        FEA0 Google
        FEAA Google (Eddystone)
        FEE0 Anhui Huami
        FEE7 Tencent
        FEEC Tile
        FEED Tile
        FEF3 Google
        FFF6 Matter
        """
}
