import BLEATT

extension ATTErrorCode {
    /// The error's name as one word, for JSON: `insufficientEncryption`, `applicationError0x80`.
    var identifier: String {
        if self == .cccdImproperlyConfigured { return "cccdImproperlyConfigured" }
        return description.split(separator: " ").enumerated().map { index, word in
            index == 0 ? word.lowercased() : word.prefix(1).uppercased() + word.dropFirst()
        }.joined()
    }
}
