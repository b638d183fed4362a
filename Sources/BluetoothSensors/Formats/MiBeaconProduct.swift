/// The models of common products, by the product number in MiBeacon. Other products are decoded without a model.
enum MiBeaconProduct {
    static func model(_ product: UInt16) -> String? {
        switch product {
        case 0x0098: "HHCCJCY01"
        case 0x015D: "HHCCPOT002"
        case 0x01AA: "LYWSDCGQ"
        case 0x02DF: "JQJCY01YM"
        case 0x0347: "CGG1"
        case 0x0387: "MHO-C401"
        case 0x03BC: "GCLS002"
        case 0x03D6: "CGH1"
        case 0x045B: "LYWSD02"
        case 0x055B: "LYWSD03MMC"
        case 0x0576: "CGD1"
        case 0x066F: "CGDK2"
        case 0x06D3: "MHO-C303"
        case 0x07F6: "MJYD02YL"
        case 0x0863: "SJWS01LM"
        case 0x098B: "MCCGQ02HL"
        case 0x0997: "JTYJGD03MI"
        case 0x0A83: "CGPR1"
        case 0x0A8D: "RTCGQ02LM"
        case 0x0C3C: "CGC1"
        case 0x1203: "XMWSDJ04MMC"
        case 0x16E4, 0x2542: "LYWSD02MMC"
        case 0x2832, 0x4C47: "MJWSD05MMC"
        default: nil
        }
    }
}
