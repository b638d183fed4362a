extension AssignedNames {
    /// Members and standards bodies that have a UUID (Assigned Numbers, 3.10 and 3.11).
    static let memberTable = """
        FCD2 Allterco Robotics (BTHome)
        FD5A Samsung
        FD5F Oculus VR, LLC
        FD60 Sercomm Corporation
        FD61 Arendi AG
        FD62 Fitbit, Inc.
        FD63 Fitbit, Inc.
        FD64 INRIA
        FD65 Razer Inc.
        FD66 Zebra Technologies Corporation
        FD67 Montblanc Simplo GmbH
        FD68 Ubique Innovation AG
        FD69 Samsung Electronics Co., Ltd.
        FD6A Emerson
        FD6B rapitag GmbH
        FD6C Samsung Electronics Co., Ltd.
        FD6D Sigma Elektro GmbH
        FD6E Polidea sp. z o.o.
        FD6F Apple (Exposure Notification)
        FD70 GuangDong Oppo Mobile Telecommunications Corp., Ltd.
        FD71 GN Hearing A/S
        FD72 Logitech International SA
        FD73 BRControls Products BV
        FD74 BRControls Products BV
        FD75 Insulet Corporation
        FD76 Insulet Corporation
        FD77 Withings
        FD78 Withings
        FD79 Withings
        FD7A Withings
        FD7B WYZE LABS, INC.
        FD7C Toshiba Information Systems(Japan) Corporation
        FD7D Center for Advanced Research Wernher Von Braun
        FD7E Samsung Electronics Co., Ltd.
        FD7F Husqvarna AB
        FD80 Phindex Technologies, Inc
        FD81 CANDY HOUSE, Inc.
        FD82 Sony Corporation
        FD83 iNFORM Technology GmbH
        FD84 Tile, Inc.
        FD85 Husqvarna AB
        FD86 Abbott
        FD87 Google LLC
        FD88 Urbanminded LTD
        FD89 Urbanminded LTD
        FD8A Signify Netherlands B.V.
        FD8B Jigowatts Inc.
        FD8C Google LLC
        FD8D quip NYC Inc.
        FD8E Motorola Solutions
        FD8F Matrix ComSec Pvt. Ltd.
        FD90 Guangzhou SuperSound Information Technology Co.,Ltd
        FD91 Groove X, Inc.
        FD92 Qualcomm Technologies International, Ltd. (QTIL)
        FD93 Bayerische Motoren Werke AG
        FD94 Hewlett Packard Enterprise
        FD95 Rigado
        FD96 Google LLC
        FD97 June Life, Inc.
        FD98 Disney Worldwide Services, Inc.
        FD99 ABB Oy
        FD9A Huawei Technologies Co., Ltd.
        FD9B Huawei Technologies Co., Ltd.
        FD9C Huawei Technologies Co., Ltd.
        FD9D Gastec Corporation
        FD9E The Coca-Cola Company
        FD9F VitalTech Affiliates LLC
        FDA0 Secugen Corporation
        FDA1 Groove X, Inc
        FDA2 Groove X, Inc
        FDA3 Inseego Corp.
        FDA4 Inseego Corp.
        FDA5 Neurostim OAB, Inc.
        FDA6 WWZN Information Technology Company Limited
        FDA7 WWZN Information Technology Company Limited
        FDA8 PSA Peugeot Citroën
        FDA9 Rhombus Systems, Inc.
        FDAA Xiaomi
        FDAB Xiaomi Inc.
        FDAC Tentacle Sync GmbH
        FDAD Houwa System Design, k.k.
        FDAE Houwa System Design, k.k.
        FDAF Wiliot LTD
        FDB0 Proxy Technologies, Inc.
        FDB1 Proxy Technologies, Inc.
        FDB2 Portable Multimedia Ltd
        FDB3 Audiodo AB
        FDB4 HP Inc
        FDB5 ECSG
        FDB6 GWA Hygiene GmbH
        FDB7 LivaNova USA Inc.
        FDB8 LivaNova USA Inc.
        FDB9 Comcast Cable Corporation
        FDBA Comcast Cable Corporation
        FDBB Profoto
        FDBC Emerson
        FDBD Clover Network, Inc.
        FDBE California Things Inc.
        FDBF California Things Inc.
        FDC0 Hunter Douglas
        FDC1 Hunter Douglas
        FDC2 Baidu Online Network Technology (Beijing) Co., Ltd
        FDC3 Baidu Online Network Technology (Beijing) Co., Ltd
        FDC4 Simavita (Aust) Pty Ltd
        FDC5 Automatic Labs
        FDC6 Eli Lilly and Company
        FDC7 Eli Lilly and Company
        FDC8 Hach – Danaher
        FDC9 Busch-Jaeger Elektro GmbH
        FDCA Fortin Electronic Systems
        FDCB Meggitt SA
        FDCC Shoof Technologies
        FDCD Qingping Technology (Beijing) Co., Ltd.
        FDCE SENNHEISER electronic GmbH & Co. KG
        FDCF Nalu Medical, Inc
        FDD0 Huawei Technologies Co., Ltd
        FDD1 Huawei Technologies Co., Ltd
        FDD2 Bose Corporation
        FDD3 FUBA Automotive Electronics GmbH
        FDD4 LX Solutions Pty Limited
        FDD5 Brompton Bicycle Ltd
        FDD6 Ministry of Supply
        FDD7 Emerson
        FDD8 Jiangsu Teranovo Tech Co., Ltd.
        FDD9 Jiangsu Teranovo Tech Co., Ltd.
        FDDA MHCS
        FDDB Samsung Electronics Co., Ltd.
        FDDC 4iiii Innovations Inc.
        FDDD Arch Systems Inc
        FDDE Noodle Technology Inc.
        FDDF Harman International
        FDE0 John Deere
        FDE1 Fortin Electronic Systems
        FDE2 Google Inc.
        FDE3 Abbott Diabetes Care
        FDE4 JUUL Labs, Inc.
        FDE5 SMK Corporation
        FDE6 Intelletto Technologies Inc
        FDE7 SECOM Co., LTD
        FDE8 Robert Bosch GmbH
        FDE9 Spacesaver Corporation
        FDEA SeeScan, Inc
        FDEB Syntronix Corporation
        FDEC Mannkind Corporation
        FDED Pole Star
        FDEE Huawei Technologies Co., Ltd.
        FDEF ART AND PROGRAM, INC.
        FDF0 Google (Audio Streaming for Hearing Aid)
        FDF1 LAMPLIGHT Co.,Ltd
        FDF2 AMICCOM Electronics Corporation
        FDF3 Amersports
        FDF4 O. E. M. Controls, Inc.
        FDF5 Milwaukee Electric Tools
        FDF6 AIAIAI ApS
        FDF7 HP Inc.
        FDF8 Onvocal
        FDF9 INIA
        FDFA Tandem Diabetes Care
        FDFB Tandem Diabetes Care
        FDFC Optrel AG
        FDFD RecursiveSoft Inc.
        FDFE ADHERIUM(NZ) LIMITED
        FDFF OSRAM GmbH
        FE00 Amazon.com Services, Inc.
        FE01 Duracell U.S. Operations Inc.
        FE02 Robert Bosch GmbH
        FE03 Amazon
        FE04 OpenPath Security Inc
        FE05 CORE Transport Technologies NZ Limited
        FE06 Qualcomm Technologies, Inc.
        FE07 Sonos, Inc.
        FE08 Microsoft
        FE09 Pillsy, Inc.
        FE0A ruwido austria gmbh
        FE0B ruwido austria gmbh
        FE0C Procter & Gamble
        FE0D Procter & Gamble
        FE0E Setec Pty Ltd
        FE0F Signify (Hue)
        FE10 Lapis Semiconductor Co., Ltd.
        FE11 GMC-I Messtechnik GmbH
        FE12 M-Way Solutions GmbH
        FE13 Apple Inc.
        FE14 Flextronics International USA Inc.
        FE15 Amazon.com Services, Inc..
        FE16 Footmarks, Inc.
        FE17 Telit Wireless Solutions GmbH
        FE18 Runtime, Inc.
        FE19 Google, Inc
        FE1A Tyto Life LLC
        FE1B Tyto Life LLC
        FE1C NetMedia, Inc.
        FE1D Illuminati Instrument Corporation
        FE1E Smart Innovations Co., Ltd
        FE1F Garmin International, Inc.
        FE20 Emerson
        FE21 Bose Corporation
        FE22 Zoll Medical Corporation
        FE23 Zoll Medical Corporation
        FE24 August Home Inc
        FE25 Apple, Inc.
        FE26 Google
        FE27 Google
        FE28 Ayla Networks
        FE29 Gibson Innovations
        FE2A DaisyWorks, Inc.
        FE2B ITT Industries
        FE2C Google (Fast Pair)
        FE2D SMART INNOVATION Co.,Ltd
        FE2E ERi,Inc.
        FE2F CRESCO Wireless, Inc
        FE30 Volkswagen AG
        FE31 Volkswagen AG
        FE32 Pro-Mark, Inc.
        FE33 CHIPOLO d.o.o.
        FE34 SmallLoop LLC
        FE35 HUAWEI Technologies Co., Ltd
        FE36 HUAWEI Technologies Co., Ltd
        FE37 Spaceek LTD
        FE38 Spaceek LTD
        FE39 TTS Tooltechnic Systems AG & Co. KG
        FE3A TTS Tooltechnic Systems AG & Co. KG
        FE3B Dobly Laboratories
        FE3C alibaba
        FE3D BD Medical
        FE3E BD Medical
        FE3F Friday Labs Limited
        FE40 Inugo Systems Limited
        FE41 Inugo Systems Limited
        FE42 Nets A/S
        FE43 Andreas Stihl AG & Co. KG
        FE44 SK Telecom
        FE45 Snapchat Inc
        FE46 B&O Play A/S
        FE47 General Motors
        FE48 General Motors
        FE49 SenionLab AB
        FE4A OMRON HEALTHCARE Co., Ltd.
        FE4B Signify Netherlands B.V. (formerly Philips Lighting B.V.)
        FE4C Volkswagen AG
        FE4D Casambi Technologies Oy
        FE4E NTT docomo
        FE4F Molekule, Inc.
        FE50 Google Inc.
        FE51 SRAM
        FE52 SetPoint Medical
        FE53 3M
        FE54 Motiv, Inc.
        FE55 Google Inc.
        FE56 Google Inc.
        FE57 Dotted Labs
        FE58 Nordic Semiconductor ASA
        FE59 Nordic Semiconductor (Secure DFU)
        FE5A Cronologics Corporation
        FE5B GT-tronics HK Ltd
        FE5C million hunters GmbH
        FE5D Grundfos A/S
        FE5E Plastc Corporation
        FE5F Eyefi, Inc.
        FE60 Lierda Science & Technology Group Co., Ltd.
        FE61 Logitech
        FE62 Indagem Tech LLC
        FE63 Connected Yard, Inc.
        FE64 Siemens AG
        FE65 CHIPOLO d.o.o.
        FE66 Intel Corporation
        FE67 Lab Sensor Solutions
        FE68 Capsule Technologies Inc.
        FE69 Capsule Technologies Inc.
        FE6A Kontakt Micro-Location Sp. z o.o.
        FE6B TASER International, Inc.
        FE6C TASER International, Inc.
        FE6D The University of Tokyo
        FE6E The University of Tokyo
        FE6F LINE Corporation
        FE70 Beijing Jingdong Century Trading Co., Ltd.
        FE71 Plume Design Inc
        FE72 Abbott (formerly St. Jude Medical, Inc.)
        FE73 Abbott (formerly St. Jude Medical, Inc.)
        FE74 unwire
        FE75 TangoMe
        FE76 TangoMe
        FE77 Hewlett-Packard Company
        FE78 Hewlett-Packard Company
        FE79 Zebra Technologies
        FE7A Bragi GmbH
        FE7B Orion Labs, Inc.
        FE7C Telit Wireless Solutions (Formerly Stollmann E+V GmbH)
        FE7D Aterica Health Inc.
        FE7E Awear Solutions Ltd
        FE7F Doppler Lab
        FE80 Doppler Lab
        FE81 Medtronic Inc.
        FE82 Medtronic Inc.
        FE83 Blue Bite
        FE84 RF Digital Corp
        FE85 RF Digital Corp
        FE86 HUAWEI Technologies Co., Ltd. ( 华为技术有限公司 )
        FE87 Qingdao Yeelink Information Technology Co., Ltd. ( 青岛亿联客信息技术有限公司 )
        FE88 SALTO SYSTEMS S.L.
        FE89 B&O Play A/S
        FE8A Apple, Inc.
        FE8B Apple, Inc.
        FE8C TRON Forum
        FE8D Interaxon Inc.
        FE8E ARM Ltd
        FE8F CSR
        FE90 JUMA
        FE91 Shanghai Imilab Technology Co.,Ltd
        FE92 Jarden Safety & Security
        FE93 OttoQ In
        FE94 OttoQ In
        FE95 Xiaomi
        FE96 Tesla Motors Inc.
        FE97 Tesla Motors Inc.
        FE98 Currant Inc
        FE99 Currant Inc
        FE9A Estimote
        FE9B Samsara Networks, Inc
        FE9C GSI Laboratories, Inc.
        FE9D Mobiquity Networks Inc
        FE9E Dialog Semiconductor B.V.
        FE9F Google
        FEA0 Google
        FEA1 Intrepid Control Systems, Inc.
        FEA2 Intrepid Control Systems, Inc.
        FEA3 ITT Industries
        FEA4 Paxton Access Ltd
        FEA5 GoPro, Inc.
        FEA6 GoPro, Inc.
        FEA7 UTC Fire and Security
        FEA8 Savant Systems LLC
        FEA9 Savant Systems LLC
        FEAA Google (Eddystone)
        FEAB Nokia
        FEAC Nokia
        FEAD Nokia
        FEAE Nokia
        FEAF Nest Labs Inc
        FEB0 Nest Labs Inc
        FEB1 Electronics Tomorrow Limited
        FEB2 Microsoft Corporation
        FEB3 Taobao
        FEB4 WiSilica Inc.
        FEB5 WiSilica Inc.
        FEB6 Vencer Co., Ltd
        FEB7 Facebook, Inc.
        FEB8 Facebook, Inc.
        FEB9 LG Electronics
        FEBA Tencent Holdings Limited
        FEBB adafruit industries
        FEBC Dexcom Inc
        FEBD Clover Network, Inc
        FEBE Bose Corporation
        FEBF Nod, Inc.
        FEC0 KDDI Corporation
        FEC1 KDDI Corporation
        FEC2 Blue Spark Technologies, Inc.
        FEC3 360fly, Inc.
        FEC4 PLUS Location Systems
        FEC5 Realtek Semiconductor Corp.
        FEC6 Kocomojo, LLC
        FEC7 Apple, Inc.
        FEC8 Apple, Inc.
        FEC9 Apple, Inc.
        FECA Apple, Inc.
        FECB Apple, Inc.
        FECC Apple, Inc.
        FECD Apple, Inc.
        FECE Apple, Inc.
        FECF Apple, Inc.
        FED0 Apple, Inc.
        FED1 Apple, Inc.
        FED2 Apple, Inc.
        FED3 Apple, Inc.
        FED4 Apple, Inc.
        FED5 Plantronics Inc.
        FED6 Broadcom
        FED7 Broadcom
        FED8 Google
        FED9 Pebble Technology Corporation
        FEDA ISSC Technologies Corp.
        FEDB Perka, Inc.
        FEDC Jawbone
        FEDD Jawbone
        FEDE Coin, Inc.
        FEDF Design SHIFT
        FEE0 Anhui Huami
        FEE1 Anhui Huami Information Technology Co., Ltd.
        FEE2 Anki, Inc.
        FEE3 Anki, Inc.
        FEE4 Nordic Semiconductor ASA
        FEE5 Nordic Semiconductor ASA
        FEE6 Silvair, Inc.
        FEE7 Tencent
        FEE8 Quintic Corp.
        FEE9 Quintic Corp.
        FEEA Swirl Networks, Inc.
        FEEB Swirl Networks, Inc.
        FEEC Tile
        FEED Tile
        FEEE Polar Electro Oy
        FEEF Polar Electro Oy
        FEF0 Intel
        FEF1 CSR
        FEF2 CSR
        FEF3 Google
        FEF4 Google
        FEF5 Dialog Semiconductor GmbH
        FEF6 Wicentric, Inc.
        FEF7 Aplix Corporation
        FEF8 Aplix Corporation
        FEF9 PayPal, Inc.
        FEFA PayPal, Inc.
        FEFB Telit Wireless Solutions (Formerly Stollmann E+V GmbH)
        FEFC Gimbal, Inc.
        FEFD Gimbal, Inc.
        FEFE GN ReSound A/S
        FEFF GN Netcom
        FFF6 Matter
        FFFC AirFuel Alliance
        FFFD Fast IDentity Online Alliance (FIDO)
        FFFE Alliance for Wireless Power (A4WP)
        """
}
